package fair

import "slices"

// rests reports whether a group that the flow is in rests.
func (l *Line) rests(f *flow) bool {
	return len(l.resting) > 0 && slices.ContainsFunc(f.groups, func(g string) bool { return l.resting[g] != nil })
}

// rest gives the flows of a group no turns until w asks again.
func (l *Line) rest(w *waiter, group string) {
	if l.resting == nil {
		l.resting = map[string]*waiter{}
	}
	l.resting[group] = w
	for _, f := range l.flows {
		if slices.Contains(f.groups, group) {
			l.takeOut(f)
		}
	}
}

// endRest ends the rest of the group for which w asks again.
func (l *Line) endRest(w *waiter) {
	for group, by := range l.resting {
		if by != w {
			continue
		}
		delete(l.resting, group)
		for _, f := range l.flows {
			if slices.Contains(f.groups, group) && !f.yields && f.waiters.Len() > 0 {
				l.putBackUnlessAside(f)
			}
		}
	}
}
