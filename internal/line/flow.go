package line

import "container/list"

// Whole is the cost of a turn that uses up all that there is.
const Whole = 1 << 32

// least is what a turn costs at least, so that nobody has any number of them in a
// row by asking for next to nothing.
const least = quantum / 16

// quantum is what a flow of weight 1 gains in a round: so little that a flow
// whose turns are cheap does not have many in a row.
const quantum = Whole / 256

// flow is those who belong together.
type flow struct {
	name    string
	weight  int64
	rank    int
	waiters list.List     // of *waiter, who comes first first
	circle  *circle       // of its rank, if it is ready,
	place   *list.Element // and where it stands there, or nil
	lacks   bool          // it waits for what is its own: see Hall.lacks

	// Deficit round robin: whenever a round comes to a flow it gains its
	// quantum, and has turns while it has gained as much as they cost.
	deficit int64
	visited bool // the round is at this flow, which has its quantum
}

func (f *flow) first() *waiter {
	if front := f.waiters.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// enter puts w behind those who come before it: most often behind all.
func (f *flow) enter(w *waiter) {
	for e := f.waiters.Back(); e != nil; e = e.Prev() {
		if !w.before(e.Value.(*waiter)) {
			w.place = f.waiters.InsertAfter(w, e)
			return
		}
	}
	w.place = f.waiters.PushFront(w)
}

func (f *flow) gain() int64 { return quantum * f.weight }
