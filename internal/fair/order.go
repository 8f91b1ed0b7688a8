package fair

import "slices"

// Order returns the calls of the waiters, by their Ticket.Call, in the order in which they pass if none
// comes or leaves and the limits deny only the one that has the turn. Waiters whose flows have stepped
// aside, or wait for their shares, come last.
func (l *Line) Order() (calls []any) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	var order []*waiter
	for _, c := range l.ready {
		order = c.order(order)
	}
	if i := slices.Index(order, l.turn); i > 0 {
		order = slices.Insert(slices.Delete(order, i, i+1), 0, l.turn)
	}
	var rest []*waiter
	for _, f := range l.flows {
		if f.element == nil {
			rest = append(rest, f.all()...)
		}
	}
	slices.SortFunc(rest, (*waiter).compare)
	for _, w := range append(order, rest...) {
		calls = append(calls, w.Call)
	}
	return calls
}

// order appends the waiters of a circle in the order of their turns. It goes through the rounds with
// copies of the flows.
func (c *circle) order(list []*waiter) []*waiter {
	rest := &circle{}
	for e := c.flows.Front(); e != nil; e = e.Next() {
		f := e.Value.(*flow)
		copied := &flow{weight: f.weight, deficit: f.deficit, visited: f.visited}
		copied.waiters.PushBackList(&f.waiters)
		copied.element = rest.flows.PushBack(copied)
	}
	for rest.flows.Len() > 0 {
		f := rest.round()
		if f == nil {
			rest.skip()
			continue
		}
		w := f.waiters.Remove(f.waiters.Front()).(*waiter)
		f.deficit -= w.Cost
		list = append(list, w)
		if f.waiters.Len() == 0 {
			rest.flows.Remove(f.element)
		}
	}
	return list
}

// all returns the waiters of a flow, in the order in which they are served.
func (f *flow) all() (list []*waiter) {
	for e := f.waiters.Front(); e != nil; e = e.Next() {
		list = append(list, e.Value.(*waiter))
	}
	return list
}
