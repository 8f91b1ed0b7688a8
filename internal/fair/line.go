package fair

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
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
	debts   map[string]int64 // what flows have used beyond their gain when their last call left; kept while any call waits
	ready   ready            // the flows that have not stepped aside
	turn    *waiter          // the waiter that has the turn; nil only if no flow is ready
	denying bool             // the line's limits have denied the waiter that has the turn, or the one before it
	denial                   // the answer to the last waiter that the line's limits have denied

	gathering  *waiter // the last waiter that the line's limits have denied until a known time
	denials    int64   // how often the line's limits have denied a waiter that had the turn
	tooLarge   int64   // a waiter whose turn costs as much delays the one that gathers
	overtaking *waiter // the waiter that may try to overtake now, or does

	resting map[string]*waiter // the groups whose flows yield, each with the waiter that asks for it again
	wakes   int64              // how often Wake was called; from 1
}

// Ticket describes a call that joins a line.
type Ticket struct {
	Flow       string
	Groups     []string // that the flow is in, such as the projects above a user: see [Answer].Group
	Rank       int      // the rank of the flow: flows of a higher rank are served first
	Weight     int      // the weight of the flow among those of its rank, from 1
	Priority   int      // the priority of the call in its flow: a higher one is served first
	Cost       int64    // the cost of the call's turn, as a part of [WholeTurn]
	MaxWaiting int      // how many calls of the flow may wait; 0 means any number

	Denied bool   // the call has asked before it joins, and the line's limits have denied it
	Answer Answer // the answer to the call, if its flow's own limits have denied it

	Call     any      // what the call asks for, for those that may overtake it; nil: no call may
	Overtake Overtake // lets the call overtake another; nil: it never does
}

// Answer is the answer to a waiter that has the turn and asks.
type Answer struct {
	Done  bool          // the waiter need not wait any more
	Again time.Duration // the time after which to ask again
	Aside bool          // the flow's own limits deny the call, and not the line's
	Yield bool          // the flow's share of the line's limits denies the call: others have their turns meanwhile
	Group string        // of a call that yields: the group whose share denies it, so that all flows in it yield; empty: the flow's own does
	Held  bool          // of a call that yields: what it waits for comes back when a call ends, so that it asks again then
	By    string        // the limit that denies the call
	Guess bool          // Again is a guess: nobody knows when By lets a call pass

	Delays bool // the call would delay the one that it asks to overtake
}

// waiter is a call in a line.
type waiter struct {
	Ticket
	flow    *flow
	element *list.Element // the waiter's element in the flow
	arrived int64         // the number of its arrival in the hall
	aside   bool          // the waiter has stepped aside
	asked   int64         // Line.wakes when the waiter asked last
	held    bool          // the waiter has yielded for what calls hold
	woken   chan struct{} // holds a value when the waiter should check whether it has the turn

	denials   int64     // Line.denials when the waiter asked to overtake
	retry     time.Time // until when the limits have denied the waiter when it asked to overtake
	refusedAt int64     // Line.wakes at that time
}

// denial says when a denied waiter asks again, and which limit has denied it.
type denial struct {
	due   time.Time
	by    string
	guess bool // due is a guess
}

func newDenial(a Answer) denial { return denial{time.Now().Add(a.Again), a.By, a.Guess} }

func (d denial) ahead() Ahead { return Ahead{Again: time.Until(d.due), By: d.by, Guess: d.guess} }

// NewLine returns an empty line.
func (h *Hall) NewLine() *Line { return &Line{hall: h, flows: map[string]*flow{}, wakes: 1} }

// Waiting returns how many calls are in the line.
func (l *Line) Waiting() int { return int(l.waiting.Load()) }

// Ahead describes the waiting calls that come before a new one.
type Ahead struct {
	Again time.Duration // the time after which the first of them asks again
	By    string        // the limit that has denied it
	Guess bool          // Again is a guess: nobody knows when By lets a call pass
	Own   bool          // By is a limit of the flow's own
}

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
	var timer *time.Timer
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
			if timer == nil {
				timer = time.NewTimer(again)
				defer timer.Stop()
				due = timer.C
			} else {
				timer.Reset(again)
			}
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
		f = &flow{name: t.Flow, groups: t.Groups, rank: t.Rank, deficit: -l.debts[t.Flow]}
		delete(l.debts, t.Flow)
		l.flows[t.Flow] = f
		l.putBack(f)
	}
	if t.MaxWaiting > 0 && f.waiters.Len() >= t.MaxWaiting {
		return nil, fmt.Errorf("%w: %d calls of the project: try again later", ErrCrowded, f.waiters.Len())
	}
	l.rank(f, t.Rank)
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
	l.endRest(w)
	blocking := w.aside || f.first() == w // calls of its flow behind this one wait until it has left
	f.waiters.Remove(w.element)
	l.waiting.Add(-1)
	l.hall.comeBack(w)
	switch {
	case f.waiters.Len() == 0:
		l.hall.setWaitsForOwn(f, false)
		l.takeOut(f)
		delete(l.flows, f.name)
		l.remember(f.name, -f.deficit)
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
	l.endRest(w)
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
		w.held = a.Held
		l.yield(w, a.Group, denial)
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

// yield gives other flows their turns until w asks again: those that are not in the group that rests, if that is not
// empty.
func (l *Line) yield(w *waiter, group string, d denial) {
	f := w.flow
	f.deficit = min(f.deficit, w.Cost)
	w.Denied = false
	l.waitsForTurn(w)
	if group == "" {
		f.yields, f.denial = true, d
		l.takeOut(f)
	} else {
		l.rest(w, group)
	}
	if l.turn == w {
		l.turn, l.denying = nil, false
	}
	l.pass()
}

// goAside lets w step aside, and with it its flow: the flow has no turns until w comes back.
func (l *Line) goAside(w *waiter) {
	f := w.flow
	f.deficit = min(f.deficit, w.Cost)
	l.takeOut(f)
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

// takeOut removes a flow from those that are ready.
func (l *Line) takeOut(f *flow) {
	if f.element != nil {
		l.ready.remove(f)
	}
}

// putBack adds a flow to those that are ready, unless a group that it is in rests.
func (l *Line) putBack(f *flow) {
	f.yields = false
	if f.element == nil && !l.rests(f) {
		l.ready.add(f)
	}
}

// putBackUnlessAside adds a flow to those that are ready, unless its first waiter has stepped aside.
func (l *Line) putBackUnlessAside(f *flow) {
	if !f.first().aside {
		l.putBack(f)
	}
}

// rank changes the rank of a flow.
func (l *Line) rank(f *flow, to int) {
	if f.rank == to {
		return
	}
	isReady := f.element != nil
	l.takeOut(f)
	if f.rank = to; isReady {
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

// maxDebts is how many flows' debts a line remembers.
const maxDebts = 1 << 14

// remember adds to the debt of a flow of which no call waits. When the line is empty, it forgets all
// debts.
func (l *Line) remember(flow string, debt int64) {
	switch {
	case len(l.flows) == 0:
		l.debts = nil
	case debt > 0 && len(l.debts) < maxDebts:
		if l.debts == nil {
			l.debts = map[string]int64{}
		}
		l.debts[flow] = min(l.debts[flow]+debt, WholeTurn)
	}
}

// Charge corrects what a turn of a flow has cost, by more or, if more is negative, by less. It does
// nothing if no call waits. A flow gains at most its next turn by it.
func (l *Line) Charge(flow string, more int64) {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	f := l.flows[flow]
	if f != nil {
		f.beyond = max(more, 0)
	}
	switch {
	case f == nil:
		l.remember(flow, more)
	case more > 0:
		f.deficit -= min(more, WholeTurn)
	default:
		f.deficit = max(f.deficit, min(f.deficit-more, f.first().Cost))
	}
}

// Wake lets the waiter that has the turn ask again, because something was given back, and when none has it, those that have
// yielded for what calls hold.
func (l *Line) Wake() {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	l.wakes++
	if l.turn != nil {
		l.turn.wake()
	} else {
		l.wakeHeld()
	}
}

// WakeHeld is Wake because others hold or want less than before: a call that the line's limits have denied need not ask.
func (l *Line) WakeHeld() {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	l.wakes++
	if l.turn == nil {
		l.wakeHeld()
	}
}

// wakeHeld lets those ask again that have yielded for what calls hold, and have not asked since the last Wake.
func (l *Line) wakeHeld() {
	wake := func(w *waiter) {
		if w.held && !w.aside && w.asked < l.wakes {
			w.wake()
		}
	}
	for _, w := range l.resting {
		wake(w)
	}
	for _, f := range l.flows {
		if f.yields {
			wake(f.first())
		}
	}
}

// wake lets w check again whether it has the turn, and ask if it has.
func (w *waiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// compare orders two waiters of a flow: by priority, and then by arrival.
func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(other.Priority, w.Priority), cmp.Compare(w.arrived, other.arrived))
}

func (w *waiter) before(other *waiter) bool { return w.compare(other) < 0 }
