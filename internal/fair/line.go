package fair

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// ErrCrowded is the error of a call whose flow already has as many waiting calls as it may have.
var ErrCrowded = errors.New("ratelimit: too many wait already")

// Line is a queue of calls that wait for a limit that several flows have in common, such as a model's quota. Make it
// with [Hall.NewLine].
//
// Each call belongs to a flow, such as the calls of one project. Flows of a higher rank have their turns first: flows of
// a lower rank have none while a call of a higher rank waits. Flows of the same rank divide the turns by their weights.
// Within a flow, calls of a higher priority come first, and calls of the same priority are served first come, first
// served. The call that has the turn asks the limits. If they deny it, it sleeps until they say that it may pass, and
// asks again. All other calls sleep until they have the turn. While a call waits, no new call of the same rank or a lower
// one should take anything: see [Line.Ahead] and [Hall.Ahead].
//
// While the call that has the turn is denied until a known time, smaller calls of other flows of its rank may overtake
// it, if that does not make it pass later: see [Overtake]. A call that is denied by its flow's own limits, and not by the
// line's, steps aside, and other flows have their turns meanwhile.
type Line struct {
	hall    *Hall
	waiting atomic.Int32
	users   int // the number of calls that use the line, if it is one of Hall.own

	flows   map[string]*flow
	ready   ready   // the flows that have not stepped aside
	turn    *waiter // the waiter that has the turn; nil only if no flow is ready
	denying bool    // the line's limits have denied the waiter that has the turn, or the one before it
	denial          // the answer to the last waiter that the line's limits have denied

	gathering  *waiter // the last waiter that the line's limits have denied until a known time
	denials    int64   // how often the line's limits have denied a waiter that had the turn
	tooLarge   int64   // a waiter whose turn costs as much delays the one that gathers
	overtaking *waiter // the waiter that may try to overtake now, or does

	resting map[string]*waiter // the groups whose flows yield, each with the waiter that asks for it again
	yielded list.List          // of *waiter: those that have yielded for what calls hold, in the order in which they asked
	wakes   int64              // how often Wake was called; from 1
}

// NewLine returns an empty line.
func (h *Hall) NewLine() *Line {
	return &Line{hall: h, flows: map[string]*flow{}, resting: map[string]*waiter{}, wakes: 1}
}

// Waiting returns how many calls are in the line.
func (l *Line) Waiting() int { return int(l.waiting.Load()) }

// Ahead reports whether the line's limits have denied a call that still waits, so that no new call
// of a flow of this rank should take anything; or whether calls of the same flow wait for its share.
func (l *Line) Ahead(flow string, rank int) (a Ahead, waiting bool) {
	if l.waiting.Load() == 0 {
		return a, false
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	if f := l.flows[flow]; f != nil && f.yields {
		return f.denial.ahead(), true
	}
	if !l.denying || l.ready.rank() < rank {
		return a, false
	}
	return l.denial.ahead(), true
}

// Wait joins the line and calls ask whenever the call has the turn, until the answer is Done, ask
// fails, or ctx ends.
func (l *Line) Wait(ctx context.Context, t Ticket, ask func() (Answer, error)) error {
	w, err := l.join(t)
	if err != nil {
		return err
	}
	passed := false
	defer func() { l.leave(w, passed) }()
	var due <-chan time.Time
	var again time.Duration
	for {
		if ask := l.mayAsk(w, ask); ask != nil {
			answer, err := ask()
			if err != nil || answer.Done {
				passed = err == nil
				return err
			}
			l.answered(w, answer)
			if answer.Delays {
				continue // until it is woken
			}
			again = answer.Again
			due = time.After(again)
		}
		select {
		case <-w.woken:
		case <-due:
		case <-ctx.Done():
			return gaveUp(ctx, again)
		}
	}
}

func gaveUp(ctx context.Context, again time.Duration) error {
	if again == 0 {
		return fmt.Errorf("ratelimit: waiting in line: %w", ctx.Err())
	}
	return fmt.Errorf("ratelimit: waiting for capacity, which would have come in %v: %w", again, ctx.Err())
}

func (l *Line) join(t Ticket) (*waiter, error) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	f := l.flows[t.Flow]
	if f == nil {
		f = &flow{name: t.Flow, groups: t.Groups, rank: t.Rank}
		l.flows[t.Flow] = f
		l.putBack(f)
	}
	if t.MaxWaiting > 0 && f.waiters.Len() >= t.MaxWaiting {
		return nil, fmt.Errorf("%w: %d calls of the project: try again later", ErrCrowded, f.waiters.Len())
	}
	if f.rank != t.Rank && f.element != nil {
		l.ready.remove(f)
		f.rank = t.Rank
		l.putBack(f)
	}
	f.rank = t.Rank
	f.weight = int64(max(t.Weight, 1))
	t.Cost = max(t.Cost, minCost)
	w := &waiter{Ticket: t, flow: f, arrived: l.hall.arrivals, woken: make(chan struct{}, 1)}
	l.hall.arrivals++
	l.waiting.Add(1)
	wasFirst := f.first()
	f.enter(w)
	if t.Answer.Aside && !f.waitsForOwn {
		l.deniedByOwn(f, newDenial(t.Answer))
	}
	if wasFirst != nil && f.first() == w {
		wasFirst.wake()
	}
	l.pass()
	l.offer()
	return w, nil
}

func (l *Line) leave(w *waiter, passed bool) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	f := w.flow
	if passed {
		f.deficit -= w.Cost
	}
	l.hall.hasAsked(w)
	l.endYield(w)
	blocking := w.aside || f.first() == w // calls of its flow behind this one wait until it has left
	f.waiters.Remove(w.element)
	l.waiting.Add(-1)
	l.hall.comeBack(w)
	switch {
	case f.waiters.Len() == 0:
		l.hall.setWaitsForOwn(f, false)
		l.ready.remove(f)
		delete(l.flows, f.name)
	case blocking:
		l.putBackUnlessAside(f)
	}
	if l.turn == w {
		l.turn = nil
	}
	if l.overtaking == w {
		l.overtaking = nil
		if f.element != nil && passed {
			f.circle.flows.MoveToBack(f.element) // others overtake next
		}
	}
	l.pass()
	l.offer()
}

// mayAsk returns how w asks now, and records that it does: by ask if it has the turn, or to overtake
// the waiter that has it. If it is nil, w may not ask, and is woken when it should check again.
func (l *Line) mayAsk(w *waiter, ask func() (Answer, error)) func() (Answer, error) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	if !l.comesFirst(w) {
		ask = l.overtake(w)
	} else if l.overtaking == w {
		l.overtaking = nil
	}
	if ask != nil {
		select {
		case <-w.woken: // w need not be woken for this turn any more
		default:
		}
		l.hall.asks(w)
		w.asked = l.wakes
	}
	return ask
}

// comesFirst gives the turn to w if w is due, and reports whether w has it. A waiter that is not the
// first of its flow loses the turn. A waiter whose flow has an earlier call aside, in any line of the
// hall, steps aside too.
func (l *Line) comesFirst(w *waiter) bool {
	f := w.flow
	l.endYield(w)
	if f.first() != w {
		if l.turn == w {
			l.turn = nil
		}
		if w.aside {
			l.hall.comeBack(w)
			l.putBackUnlessAside(f)
		}
		l.pass()
		return false
	}
	if q := l.hall.aside[f.name]; len(q) > 0 && q[0].before(w) || l.hall.asksBefore(w) {
		l.goAside(w)
		return false
	}
	l.putBack(f)
	if l.turn == w && l.outranked(f) {
		l.turn = nil
	}
	l.pass()
	if l.turn != w {
		l.waitsForTurn(w)
	}
	return l.turn == w
}

// waitsForTurn records that w waits for its turn, and not for its flow's own limits.
func (l *Line) waitsForTurn(w *waiter) {
	l.hall.setWaitsForOwn(w.flow, false)
	l.hall.comeBack(w)
}

// answered records the denial of w. If its flow's own limits have denied w, w steps aside, so that
// other flows have their turns.
func (l *Line) answered(w *waiter, a Answer) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	defer l.hall.hasAsked(w) // at the end, so that Hall.Idle finds w either asking or aside
	if l.overtaking == w {
		l.refused(w, a)
		return
	}
	denial := newDenial(a)
	if a.Yield {
		l.yield(w, a, denial)
		return
	}
	l.denying, w.Denied = !a.Aside, !a.Aside
	if a.Aside {
		l.deniedByOwn(w.flow, denial)
		l.goAside(w)
		return
	}
	l.denial = denial
	l.denials++
	l.waitsForTurn(w)
	if l.gathering = nil; !a.Guess && w.Call != nil {
		l.gathering, l.tooLarge = w, w.Cost
		l.offer()
	}
}

// goAside moves w aside, and with it its flow: the flow has no turns until w comes back.
func (l *Line) goAside(w *waiter) {
	f := w.flow
	f.deficit = min(f.deficit, w.Cost)
	l.ready.remove(f)
	l.hall.setWaitsForOwn(f, true)
	l.hall.goAside(w)
	if l.turn == w {
		l.turn = nil
	}
	l.pass()
}

// deniedByOwn records that a flow was denied by its own limits.
func (l *Line) deniedByOwn(f *flow, d denial) {
	l.hall.setWaitsForOwn(f, true)
	l.hall.ownWaits[f.name].denial = d
}

// putBack adds a flow to those that are ready, unless a group that it is in rests.
func (l *Line) putBack(f *flow) {
	f.yields = false
	if f.element == nil && !slices.ContainsFunc(f.groups, func(g string) bool { return l.resting[g] != nil }) {
		l.ready.add(f)
	}
}

// putBackUnlessAside adds a flow to those that are ready, unless its first waiter has stepped aside.
func (l *Line) putBackUnlessAside(f *flow) {
	if !f.first().aside {
		l.putBack(f)
	}
}

// outranked reports whether a flow of a higher rank is ready.
func (l *Line) outranked(f *flow) bool { return l.ready.rank() > f.rank }

// pass gives the turn to the next waiter, if no waiter has it. If none is ready, those ask again that have yielded for what
// calls hold, and have not asked since something was given back. A waiter that has the turn while a flow
// of a higher rank is ready is woken to give up the turn by itself, because it may be asking.
func (l *Line) pass() {
	if l.turn != nil {
		if l.outranked(l.turn.flow) {
			l.turn.wake()
		}
		return
	}
	f := l.ready.next()
	if f == nil {
		l.denying = false
		l.wakeHeld()
		return
	}
	l.turn = f.first()
	l.denying = l.denying || l.turn.Denied
	l.turn.wake()
}
