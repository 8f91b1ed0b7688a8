package fair

import "slices"

// yield gives other flows their turns until w asks again: those that are not in the group that rests, if that is not
// empty.
func (l *Line) yield(w *waiter, a Answer, d denial) {
	f := w.flow
	f.deficit = min(f.deficit, w.Cost)
	w.Denied = false
	l.waitsForTurn(w)
	if a.Group == "" {
		f.yields, f.denial = true, d
		l.ready.remove(f)
	} else {
		l.resting[a.Group] = w
		for _, other := range l.flows {
			if slices.Contains(other.groups, a.Group) {
				l.ready.remove(other)
			}
		}
	}
	if a.Held {
		w.yielded = l.yielded.PushBack(w)
	}
	if l.turn == w {
		l.turn, l.denying = nil, false
	}
	l.pass()
}

// endYield ends that w has yielded, and the rest of the group for which w asks again.
func (l *Line) endYield(w *waiter) {
	if w.yielded != nil {
		l.yielded.Remove(w.yielded)
		w.yielded = nil
	}
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

// Wake lets the waiter that has the turn ask again, because something was given back, and when none has it, those that have
// yielded for what calls hold. If nothing was given back, but others hold or want less than before, the one that has the
// turn need not ask: the line's limits have denied it.
func (l *Line) Wake(given bool) {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	l.wakes++
	switch {
	case l.turn == nil:
		l.wakeHeld()
	case given:
		l.turn.wake()
	}
}

// wakeHeld wakes the waiters that have yielded for what calls hold, and have not asked since the last Wake.
func (l *Line) wakeHeld() {
	for e := l.yielded.Front(); e != nil && e.Value.(*waiter).asked < l.wakes; e = l.yielded.Front() {
		e.Value.(*waiter).wake()
		e.Value.(*waiter).yielded = nil
		l.yielded.Remove(e)
	}
}
