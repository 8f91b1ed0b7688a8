package fair

import "container/list"

// WholeTurn is the cost of a turn that uses the whole limit.
const WholeTurn = 1 << 32

// minCost is the smallest cost of a turn, so that a flow whose calls cost next to nothing does not
// have any number of turns in a row.
const minCost = quantum / 16

// quantum is what a flow of weight 1 gains in a round. It is small, so that a flow with cheap turns
// does not have many in a row.
const quantum = WholeTurn / 256

// flow is the waiting calls that belong together, such as those of one project.
type flow struct {
	name        string
	groups      []string // that the flow is in
	weight      int64
	rank        int
	waiters     list.List     // of *waiter, in the order in which they are served
	circle      *circle       // the circle of its rank; nil if the flow is not ready
	element     *list.Element // the flow's element in the circle; nil if the flow is not ready
	waitsForOwn bool          // the flow waits for its own limits: see Hall.setWaitsForOwn
	yields      bool          // the flow waits for its share of the line's limits
	denial                    // by its share, if it yields

	// deficit and visited belong to the deficit round robin: when a round reaches a flow, its deficit
	// grows by a quantum for each unit of its weight, and it has turns as long as its deficit covers what they cost.
	deficit int64
	visited bool // the round is at this flow, which has got its gain
}

func (f *flow) first() *waiter {
	if front := f.waiters.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// enter inserts w behind the waiters that are served before it. Most often these are all.
func (f *flow) enter(w *waiter) {
	for e := f.waiters.Back(); e != nil; e = e.Prev() {
		if !w.before(e.Value.(*waiter)) {
			w.element = f.waiters.InsertAfter(w, e)
			return
		}
	}
	w.element = f.waiters.PushFront(w)
}
