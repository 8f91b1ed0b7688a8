// Package line is who waits for what, and whose turn it is.
//
// A [Line] is those who wait for one thing that they share, such as a model's
// quota. Each of them belongs to a flow, such as a project. Flows of a higher rank
// have their turns first: those of a lower one have none as long as any of these
// wait. Between flows of the same rank turns are shared by weight, within a flow it
// is first come, first served among those of the same priority. Whoever has the turn
// asks, and sleeps until the time that it was told; the others sleep until it is
// their turn. While anybody waits, nobody else of the same rank or a lower one should
// take anything: see [Line.Held] and [Hall.Ahead].
//
// Who is denied by something that is its flow's own, and not the line's, steps
// aside: others have their turns meanwhile. A [Hall] is lines whose flows are the
// same, so that those who have stepped aside in several lines are served in order
// too.
package line

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrCrowded is the error of who finds as many of its flow in line as may be.
var ErrCrowded = errors.New("ratelimit: too many wait already")

// Line is one line. Make it with [Hall.NewLine].
type Line struct {
	hall    *Hall
	waiting atomic.Int32
	users   int // of the hall's own lines

	flows map[string]*flow
	debts map[string]int64 // of flows that have left with a deficit below zero, as long as anybody waits
	ready ready            // those flows that have not stepped aside
	turn  *waiter          // whose turn it is: nil only if no flow is ready
	held  bool             // the line has denied who has the turn, or who had it before
	told                   // the last whom it has denied
}

// Ticket is how somebody stands in line.
type Ticket struct {
	Flow     string
	Rank     int   // of the flow: higher comes first
	Weight   int   // of the flow among those of its rank, from 1
	Priority int   // in the flow: higher comes first
	Cost     int64 // of having a turn, of [Whole]
	Most     int   // of the flow may wait; 0 is any number

	// What it was told if it has asked already.
	Denied bool // by the line
	Aside  bool // by what is its flow's own: then
	Again  time.Duration
	By     string
}

// Answer is what who has the turn was told.
type Answer struct {
	Done  bool
	Again time.Duration // when to ask again
	Aside bool          // it is something of the flow's own that denies
	By    string        // which limit
}

// waiter is somebody in line.
type waiter struct {
	Ticket
	flow    *flow
	place   *list.Element // in the flow
	arrived int64
	aside   bool
	poke    chan struct{} // holds a token when it should look again
}

// told is when to ask again, and which limit has denied.
type told struct {
	due time.Time
	by  string
}

// NewLine returns an empty line.
func (h *Hall) NewLine() *Line { return &Line{hall: h, flows: map[string]*flow{}} }

// Waiting returns how many are in line.
func (l *Line) Waiting() int { return int(l.waiting.Load()) }

// Ahead is who comes before whoever comes now.
type Ahead struct {
	Again time.Duration // when they ask again
	By    string        // which limit has denied them
}

// Held reports whether the line has denied somebody who still waits, so that
// nobody else of a flow of such a rank should take anything.
func (l *Line) Held(rank int) (a Ahead, held bool) {
	if l.waiting.Load() == 0 {
		return a, false
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	if !l.held || l.ready.rank() < rank {
		return a, false
	}
	return Ahead{time.Until(l.due), l.by}, true
}

// Wait calls ask in turn until it is done, or fails, or ctx ends.
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
		if l.mayAsk(w) {
			answer, err := ask()
			if err != nil || answer.Done {
				passed = err == nil
				return err
			}
			again = answer.Again
			l.wasTold(w, answer)
			if timer == nil {
				timer = time.NewTimer(again)
				defer timer.Stop()
				due = timer.C
			} else {
				timer.Reset(again)
			}
		}
		select {
		case <-w.poke:
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
		f = &flow{name: t.Flow, rank: t.Rank, deficit: -l.debts[t.Flow]}
		delete(l.debts, t.Flow)
		l.flows[t.Flow] = f
		l.ready.add(f)
	}
	if t.Most > 0 && f.waiters.Len() >= t.Most {
		return nil, fmt.Errorf("%w: %d calls of the project: try again later", ErrCrowded, f.waiters.Len())
	}
	l.rank(f, t.Rank)
	f.weight = int64(max(t.Weight, 1))
	t.Cost = max(t.Cost, least)
	w := &waiter{Ticket: t, flow: f, arrived: l.hall.arrivals, poke: make(chan struct{}, 1)}
	l.hall.arrivals++
	l.waiting.Add(1)
	before := f.first()
	f.enter(w)
	if t.Aside && !f.lacks {
		l.lacksOwn(f, told{time.Now().Add(t.Again), t.By})
	}
	if before != nil && f.first() == w {
		before.look() // its place is not the first any more
	}
	l.pass()
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
	held := w.aside || f.first() == w // up the others of its flow
	f.waiters.Remove(w.place)
	l.waiting.Add(-1)
	l.hall.comeBack(w)
	switch {
	case f.waiters.Len() == 0:
		l.hall.lacks(f, false)
		l.takeOut(f)
		delete(l.flows, f.name)
		l.remember(f.name, -f.deficit)
	case held:
		l.putBackUnlessAside(f)
	}
	if l.turn == w {
		l.turn = nil
	}
	l.pass()
}

// mayAsk reports whether it is w's turn. If not, w is poked when it should look
// again.
func (l *Line) mayAsk(w *waiter) bool {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	may := l.comesFirst(w)
	if may {
		select {
		case <-w.poke: // it is looking
		default:
		}
		l.hall.asks(w)
	}
	return may
}

func (l *Line) comesFirst(w *waiter) bool {
	f := w.flow
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
	if q := l.hall.aside[f.name]; len(q) > 0 && q[0].before(w) {
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

// waitsForTurn notes that it is not what is the flow's own that w waits for.
func (l *Line) waitsForTurn(w *waiter) {
	l.hall.lacks(w.flow, false)
	l.hall.comeBack(w)
}

// wasTold notes what w was told. If it is denied by what is its flow's own, it
// lets others have their turns.
func (l *Line) wasTold(w *waiter, a Answer) {
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	defer l.hall.hasAsked(w) // not before it is aside: a wake must find it
	said := told{time.Now().Add(a.Again), a.By}
	l.held, w.Denied = !a.Aside, !a.Aside
	if a.Aside {
		l.lacksOwn(w.flow, said)
		l.goAside(w)
		return
	}
	l.told = said
	l.waitsForTurn(w)
}

func (l *Line) goAside(w *waiter) {
	f := w.flow
	f.deficit = min(f.deficit, w.Cost)
	l.takeOut(f)
	l.hall.lacks(f, true)
	l.hall.goAside(w)
	if l.turn == w {
		l.turn = nil
	}
	l.pass()
}

// lacksOwn notes that a flow was denied by what is its own.
func (l *Line) lacksOwn(f *flow, t told) {
	l.hall.lacks(f, true)
	l.hall.lacking[f.name].told = t
}

// takeOut takes a flow out of those that are ready, and putBack puts it back.
func (l *Line) takeOut(f *flow) {
	if f.place != nil {
		l.ready.remove(f)
	}
}

func (l *Line) putBack(f *flow) {
	if f.place == nil {
		l.ready.add(f)
	}
}

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
	was := f.place != nil
	l.takeOut(f)
	if f.rank = to; was {
		l.putBack(f)
	}
}

// outranked reports whether a flow of a higher rank is ready.
func (l *Line) outranked(f *flow) bool { return l.ready.rank() > f.rank }

// pass gives the turn to whoever is next, if nobody has it. Who has it and has been
// outranked is told, and lets go of it: it may be asking.
func (l *Line) pass() {
	if l.turn != nil {
		if l.outranked(l.turn.flow) {
			l.turn.look()
		}
		return
	}
	f := l.ready.next()
	if f == nil {
		l.held = false
		return
	}
	l.turn = f.first()
	l.held = l.held || l.turn.Denied
	l.turn.look()
}

// mostDebts is how many flows' debts are remembered.
const mostDebts = 1 << 14

// remember notes what a flow owes that has left. When nobody waits any more, all is
// forgotten.
func (l *Line) remember(flow string, debt int64) {
	switch {
	case len(l.flows) == 0:
		l.debts = nil
	case debt > 0 && len(l.debts) < mostDebts:
		if l.debts == nil {
			l.debts = map[string]int64{}
		}
		l.debts[flow] = min(l.debts[flow]+debt, Whole)
	}
}

// Charge corrects what a turn of a flow has cost by so much more, or less, as long
// as anybody waits. Nobody gains more by it than its next turn.
func (l *Line) Charge(flow string, more int64) {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	f := l.flows[flow]
	switch {
	case f == nil:
		l.remember(flow, more)
	case more > 0:
		f.deficit -= min(more, Whole)
	default:
		f.deficit = max(f.deficit, min(f.deficit-more, f.first().Cost))
	}
}

// Wake lets who has the turn ask again: something was given back.
func (l *Line) Wake() {
	if l.waiting.Load() == 0 {
		return
	}
	l.hall.mu.Lock()
	defer l.hall.mu.Unlock()
	if l.turn != nil {
		l.turn.look()
	}
}

// look lets w look again whether it is its turn.
func (w *waiter) look() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// compare says who of two in a flow comes first.
func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(other.Priority, w.Priority), cmp.Compare(w.arrived, other.arrived))
}

func (w *waiter) before(other *waiter) bool { return w.compare(other) < 0 }
