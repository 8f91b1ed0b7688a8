package limit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// ErrNever is the error of a wait for an amount that can never pass: it is larger than its
// limit, or negative, or the limit is not valid.
var ErrNever = errors.New("ratelimit: it can never pass")

// ErrFull is the error of a [Queue] in which as many callers wait as may.
var ErrFull = errors.New("ratelimit: the queue is full")

// line is the calls that wait for one counter, in the order in which they came.
type line struct {
	waiters list.List   // of *waiter
	timer   *time.Timer // calls serve at due
	due     int64       // the time at which the first waiter may pass
	from    int64       // the first waiter passes as of this time or later
}

// first returns the first waiter of a line, or nil.
func (l *line) first() *waiter {
	if l == nil {
		return nil
	}
	return l.waiters.Front().Value.(*waiter)
}

// place identifies a line: the one of a key, in a book.
type place struct {
	book *book
	hash uint64
}

func placesOf(demands []demand) []place {
	places := make([]place, len(demands))
	for i := range demands {
		places[i] = place{demands[i].book, demands[i].hash}
	}
	return places
}

func (p place) line() *line { return p.book.lines[p.hash] }

// waiter is a call that waits for one or several counters. It stands in the line of the
// counter that denies it longest, and no call behind it passes there. It leaves the other
// counters to other calls until it has waited as long as it still must: then it stands
// in all lines. So a call that waits long for one counter does not keep other calls
// from the rest, and still gets all counters at one time.
//
// Lines are ordered by tickets. Of calls that wait for each other's counters, the one
// that came first is first in all lines, so there is no deadlock.
type waiter struct {
	places []place       // of the demands, in the order of their books
	passed chan struct{} // closed when the call has passed

	// Guarded by the books' waiting mutexes:
	ticket  uint64
	arrived int64
	demands []demand
	stands  []*list.Element // the element in the line of each place; nil if the call does not stand there
	left    bool            // the call has passed, or has given up
}

var tickets atomic.Uint64

// wait takes what is demanded, in turn. At most room calls may wait for a counter.
func wait(ctx context.Context, demands []demand, room int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not waiting: %w", err)
	}
	d, queued := consider(demands, toTake, present, nil)
	switch deadline, ok := ctx.Deadline(); {
	case d.Allowed:
		return nil
	case d.RetryAfter == Never:
		return impossible(demands)
	case ok:
		if queued {
			d.RetryAfter = turn(demands)
		}
		if time.Until(deadline) < d.RetryAfter {
			return fmt.Errorf("ratelimit: limit %v passes it in %v, after the deadline: %w", d.Limit, d.RetryAfter, context.DeadlineExceeded)
		}
	}
	w := newWaiter(demands)
	if room < math.MaxInt {
		serve(w.places) // lets calls pass whose timers are late, so that the line is not longer than it should be
	}
	if !w.join(room) {
		return ErrFull
	}
	select {
	case <-w.passed:
		return nil
	case <-ctx.Done():
	}
	if !w.giveUp() {
		return nil
	}
	return fmt.Errorf("ratelimit: waiting for limit %v: %w", d.Limit, ctx.Err())
}

// impossible returns the error that says why the demands can never pass.
func impossible(demands []demand) error {
	for _, d := range demands {
		for _, l := range d.limits {
			switch err := l.Validate(); {
			case err != nil:
				return fmt.Errorf("%w: %s", ErrNever, strings.TrimPrefix(err.Error(), "ratelimit: "))
			case d.n < 0:
				return fmt.Errorf("%w: a negative amount under limit %v", ErrNever, l)
			case d.n > l.burst:
				return fmt.Errorf("%w: %d under limit %v, of which at most %d can pass at once", ErrNever, d.n, l, l.burst)
			}
		}
	}
	return ErrNever
}

func newWaiter(demands []demand) *waiter {
	w := &waiter{passed: make(chan struct{})}
	for _, d := range demands {
		if len(d.limits) > 0 {
			w.demands = append(w.demands, d)
		}
	}
	w.places = placesOf(w.demands)
	w.stands = make([]*list.Element, len(w.places))
	return w
}

// join lets w pass, or puts it into a line. It returns false if a line is full.
func (w *waiter) join(room int) bool {
	lockLines(w.places)
	for _, p := range w.places {
		if l := p.line(); l != nil && l.waiters.Len() >= room {
			unlockLines(w.places)
			return false
		}
	}
	w.ticket, w.arrived = tickets.Add(1), clock()
	passed, freed := w.pass()
	unlockLines(w.places)
	if passed {
		close(w.passed)
	}
	serve(freed)
	return true
}

// giveUp removes w from its lines. It returns false if w has passed.
func (w *waiter) giveUp() bool {
	lockLines(w.places)
	gave := !w.left
	if gave {
		w.leave(clock())
	}
	unlockLines(w.places)
	if gave {
		serve(w.places)
	}
	return gave
}

// serve lets calls pass that may: the first ones of the lines at places, and then those
// that become the first of a line by that.
func serve(places []place) {
	due := append(make([]place, 0, 8), places...)
	for len(due) > 0 {
		p := due[len(due)-1]
		due = due[:len(due)-1]
		p.book.waiting.Lock()
		w := p.line().first()
		p.book.waiting.Unlock()
		if w == nil {
			continue
		}
		passed, freed := w.passAll(p)
		for _, w := range passed { // after the lines are unlocked, because the calls may ask again at once
			close(w.passed)
		}
		if len(passed) > 0 {
			due = append(due, w.places...)
		}
		due = append(due, freed...)
	}
}

// atOnce is how many calls one goroutine lets pass before another takes over.
const atOnce = 64

// passAll lets w pass if it may, and then the calls behind it in the line at p that wait
// for the same counters. It returns the calls that have passed, and the lines that calls
// have left.
func (w *waiter) passAll(p place) (passed []*waiter, freed []place) {
	lockLines(w.places)
	defer unlockLines(w.places)
	places := w.places
	for w != nil && slices.Equal(w.places, places) {
		if len(passed) == atOnce {
			w.wakeAt(p, 0)
			break
		}
		ok, left := w.pass()
		freed = append(freed, left...)
		if !ok {
			break
		}
		passed = append(passed, w)
		w = p.line().first()
	}
	return passed, freed
}

// late is how late a timer may be without a loss of rate: see paced.
const late = int64(2 * time.Millisecond)

// pass lets w pass if no call in its lines came before it and all limits allow it.
// Otherwise it puts w into the line where it must wait. The caller has locked the lines.
// freed are the lines that w has left to other calls.
func (w *waiter) pass() (passed bool, freed []place) {
	if w.left {
		return false, nil
	}
	now := clock()
	for i, p := range w.places {
		if first := p.line().first(); first != nil && first.ticket < w.ticket && w.demands[i].n > 0 {
			return false, w.stand(i, p.line().due-now, now)
		}
	}
	at := now
	if l := w.paced(); l != nil {
		at = max(w.arrived, l.from, now-late)
	}
	for {
		d := decide(w.demands, inTurn, at, nil)
		if d.Allowed {
			w.leave(at)
			return true, nil
		}
		if at += int64(d.RetryAfter); at > now {
			i := w.blockedBy(now)
			freed = w.stand(i, at-now, now)
			if w.places[i].line().first() == w { // a demand of zero may stand behind others
				w.wakeAt(w.places[i], at-now)
			}
			return false, freed
		}
	}
}

// paced returns the line of w if w asks for an amount of one counter only, and all limits
// are buckets; otherwise nil. If its timer was a little late, such a call passes as of
// the time at which it could have passed, so that the calls in line get all of the rate.
// While it stood in the line, no other call has taken anything.
func (w *waiter) paced() (in *line) {
	for i := range w.demands {
		d := &w.demands[i]
		if slices.ContainsFunc(d.limits, func(l Limit) bool { return !l.algorithm.bursts() }) {
			return nil
		}
		if d.n == 0 {
			continue
		}
		if in != nil || w.stands[i] == nil {
			return nil
		}
		in = w.places[i].line()
	}
	return in
}

// blockedBy returns the index of the demand that is denied longest.
func (w *waiter) blockedBy(now int64) (longest int) {
	if len(w.demands) == 1 {
		return 0
	}
	var most time.Duration
	for i := range w.demands {
		d, _ := consider(w.demands[i:i+1], toPeek, now, nil)
		if !d.Allowed && d.RetryAfter > most {
			longest, most = i, d.RetryAfter
		}
	}
	return longest
}

// stand puts w into the line of the demand at index blocked, which is denied for so long,
// and into all other lines if w has waited as long already. It returns the lines that w
// has left.
func (w *waiter) stand(blocked int, while, now int64) (freed []place) {
	all := while <= now-w.arrived
	for i, p := range w.places {
		switch {
		case i == blocked || all && w.demands[i].n > 0:
			w.standIn(i)
		case w.stands[i] != nil:
			p.line().from = max(p.line().from, now)
			w.leaveLine(i)
			freed = append(freed, p)
		}
	}
	return freed
}

func (w *waiter) standIn(i int) {
	if w.stands[i] != nil {
		return
	}
	p := w.places[i]
	if p.line() == nil {
		p.book.lines[p.hash] = new(line)
		w.demands[i].setAwaited(true)
		now := clock()
		p.line().from, p.line().due = now, now
	}
	l := p.line()
	after := l.waiters.Back()
	for after != nil && after.Value.(*waiter).ticket > w.ticket {
		after = after.Prev()
	}
	if after == nil {
		w.stands[i] = l.waiters.PushFront(w)
	} else {
		w.stands[i] = l.waiters.InsertAfter(w, after)
	}
}

// leaveLine removes w from the line at its i-th place.
func (w *waiter) leaveLine(i int) {
	p := w.places[i]
	l := p.line()
	l.waiters.Remove(w.stands[i])
	w.stands[i] = nil
	if l.waiters.Len() > 0 {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	delete(p.book.lines, p.hash)
	w.demands[i].setAwaited(false)
}

// leave removes w from all its lines. Calls behind it pass as of the time at or later,
// also in the lines of its other counters.
func (w *waiter) leave(at int64) {
	w.left = true
	for i, p := range w.places {
		if l := p.line(); l != nil {
			l.from = max(l.from, at)
		}
		if w.stands[i] != nil {
			w.leaveLine(i)
		}
	}
}

// wakeAt sets the timer of a line of which w is the first.
func (w *waiter) wakeAt(p place, after int64) {
	l := p.line()
	l.due = clock() + after
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Duration(after), func() { serve([]place{p}) })
	} else {
		l.timer.Reset(time.Duration(after))
	}
}

// lockLines locks the lines of all places. The places are in the order of their books.
func lockLines(places []place) {
	for _, p := range places {
		p.book.waiting.Lock()
	}
}

func unlockLines(places []place) {
	for _, p := range places {
		p.book.waiting.Unlock()
	}
}
