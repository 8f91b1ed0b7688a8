package line

import "container/list"

// Whole is the cost of a turn that uses the whole limit.
const Whole = 1 << 32

// least is the smallest cost of a turn, so that a flow does not have any number of turns in a row
// for requests that cost next to nothing.
const least = quantum / 16

// quantum is what a flow of weight 1 gains in a round. It is small, so that a flow with cheap turns
// does not have many in a row.
const quantum = Whole / 256

// flow is the waiting calls that belong together, such as those of one project.
type flow struct {
	name        string
	weight      int64
	rank        int
	waiters     list.List     // of *waiter, in the order in which they are served
	circle      *circle       // the circle of its rank, if the flow is ready
	element     *list.Element // its element of the circle; nil if the flow is not ready
	waitsForOwn bool          // the flow waits for its own limits: see Hall.setWaitsForOwn

	// deficit and visited are those of deficit round robin: when a round reaches a flow, it gains
	// its quantum, and it has turns while it has gained as much as they cost.
	deficit int64
	visited bool // the round is at this flow, which has its quantum
}

func (f *flow) first() *waiter {
	if front := f.waiters.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// enter inserts w behind the waiters that come before it: most often behind all.
func (f *flow) enter(w *waiter) {
	for e := f.waiters.Back(); e != nil; e = e.Prev() {
		if !w.before(e.Value.(*waiter)) {
			w.element = f.waiters.InsertAfter(w, e)
			return
		}
	}
	w.element = f.waiters.PushFront(w)
}

func (f *flow) gain() int64 { return quantum * f.weight }
