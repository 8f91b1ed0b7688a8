package fair

import "time"

// Overtake asks for a call while the call that has the turn, whose Ticket.Call is first, is denied by
// the line's limits for a time. The call must not pass if that makes the first one pass later: then
// the answer is Delays.
type Overtake func(first any, deniedFor time.Duration) (Answer, error)

// maxConsidered bounds for how many flows the line considers at a time whether they overtake.
const maxConsidered = 64

// offer lets a waiter try to overtake the one that has the turn, which gathers what it asks for. One
// waiter tries at a time: the first of a flow of the same rank, whose turn costs less.
func (l *Line) offer() {
	if l.overtaking != nil || l.turn == nil || l.gathering != l.turn || l.outranked(l.turn.flow) {
		return
	}
	circle := l.turn.flow.circle
	if circle == nil { // a call of the flow that has come before this one has stepped aside
		return
	}
	considered := 0
	for e := circle.flows.Front(); e != nil && considered < maxConsidered; e = e.Next() {
		if f := e.Value.(*flow); f != l.turn.flow && l.mayOvertake(f.first()) {
			l.overtaking = f.first()
			l.overtaking.wake()
			return
		}
		considered++
	}
}

// mayOvertake reports whether w may try to overtake: its turn costs less than one that was refused,
// its flow is not further ahead than the turn of the waiter that gathers would bring it level, and the
// limits have not denied it at this time.
func (l *Line) mayOvertake(w *waiter) bool {
	f := w.flow
	if w.Overtake == nil || w.Cost >= l.tooLarge || w.Cost-f.deficit > l.turn.Cost/l.turn.flow.weight*f.weight {
		return false
	}
	return w.refusedAt != l.wakes || !time.Now().Before(w.retry)
}

// overtake returns how w asks, if it is the one that may try to overtake now, and nil otherwise.
func (l *Line) overtake(w *waiter) func() (Answer, error) {
	if l.overtaking == w { // it was offered a while ago
		l.overtaking = nil
	}
	l.offer()
	if l.overtaking != w {
		return nil
	}
	first, deniedFor := l.turn.Call, time.Until(l.due)
	w.denials = l.denials
	return func() (Answer, error) { return w.Overtake(first, deniedFor) }
}

// refused records that w has not overtaken.
func (l *Line) refused(w *waiter, a Answer) {
	l.overtaking = nil
	switch {
	case a.Aside:
		l.deniedByOwn(w.flow, newDenial(a))
		l.goAside(w)
	case a.Delays && w.denials == l.denials:
		l.tooLarge = min(l.tooLarge, w.Cost)
	case !a.Delays:
		w.retry, w.refusedAt = time.Now().Add(a.Again), l.wakes
	}
	l.offer()
}

// TryOvertake lets a call that does not wait overtake the one that has the turn, if it may, and
// reports whether it has.
func (l *Line) TryOvertake(t Ticket) (passed bool, err error) {
	w, err := l.join(t)
	if err != nil {
		return false, err
	}
	defer func() { l.leave(w, passed) }()
	overtake := l.mayAsk(w, nil)
	if overtake == nil {
		return false, nil
	}
	a, err := overtake()
	if err != nil || a.Done {
		return err == nil, err
	}
	a.Aside = false // nobody waits for the flow's own limits
	l.answered(w, a)
	return false, nil
}
