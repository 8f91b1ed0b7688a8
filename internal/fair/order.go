package fair

import "slices"

// Order returns the calls of the waiters, by their Ticket.Call, in the order in which they pass if none
// comes or leaves and the limits deny only the one that has the turn. Waiters whose flows have stepped
// aside, or wait for their shares, come last.
func (l *Line) Order() (calls []any) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	var copies ready // because to go through the rounds changes the flows
	var order, rest []*waiter
	for _, f := range l.flows {
		for e := f.waiters.Front(); e != nil && f.element == nil; e = e.Next() {
			rest = append(rest, e.Value.(*waiter))
		}
	}
	for _, c := range l.ready {
		for e := c.flows.Front(); e != nil; e = e.Next() {
			f := e.Value.(*flow)
			copied := &flow{rank: f.rank, weight: f.weight, deficit: f.deficit, visited: f.visited}
			copied.waiters.PushBackList(&f.waiters)
			copies.add(copied)
		}
	}
	for f := copies.next(); f != nil; f = copies.next() {
		w := f.waiters.Remove(f.waiters.Front()).(*waiter)
		f.deficit -= w.Cost
		order = append(order, w)
		if f.waiters.Len() == 0 {
			copies.remove(f)
		}
	}
	if i := slices.Index(order, l.turn); i > 0 {
		order = slices.Insert(slices.Delete(order, i, i+1), 0, l.turn)
	}
	slices.SortFunc(rest, (*waiter).compare)
	for _, w := range append(order, rest...) {
		calls = append(calls, w.Call)
	}
	return calls
}
