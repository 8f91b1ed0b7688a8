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

// ErrFull is the error of a [Queue] in which no more callers may wait.
var ErrFull = errors.New("ratelimit: the queue is full")

// line is the calls that wait for one counter, in the order of their tickets.
type line struct {
	waiters list.List   // of *waiter
	timer   *time.Timer // calls serve when the first waiter may pass
	due     int64       // the time for which timer is set
	from    int64       // the first waiter may not pass as of an earlier time: see paced
}

// first returns the first waiter of a line, or nil.
func (l *line) first() *waiter {
	if l == nil {
		return nil
	}
	return l.waiters.Front().Value.(*waiter)
}

// lineKey identifies a counter, and so the line of calls that wait for it.
type lineKey struct {
	book *book
	hash uint64
}

func lineKeysOf(demands []demand) []lineKey {
	keys := make([]lineKey, len(demands))
	for i := range demands {
		keys[i] = lineKey{demands[i].book, demands[i].hash}
	}
	return keys
}

// line returns the line of the counter, or nil if no call waits for it.
func (k lineKey) line() *line { return k.book.lines[k.hash] }

// waiter is a call that waits for one or several counters. It joins the line of the
// counter that denies it for the longest time, and no call behind it passes there. It
// leaves its other counters to other calls until it has waited as long as it still has to
// wait: then it joins the lines of all its counters. So a call that waits long for one
// counter does not keep other calls from the rest, and still gets all counters at once.
//
// Lines are ordered by tickets. Of calls that wait for each other's counters, the one
// that came first is first in all lines, so there is no deadlock.
type waiter struct {
	keys   []lineKey     // of the demands, in the order of their books
	passed chan struct{} // closed when the call has passed

	// Guarded by the books' waiting mutexes:
	ticket   uint64
	arrived  int64
	demands  []demand
	elements []*list.Element // the waiter's element in the line of each key; nil if it is not in that line
	left     bool            // the call has passed, or has given up
}

var tickets atomic.Uint64

// wait waits until the demands may pass in turn, and charges them. At most room calls may
// wait for a counter.
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
		if left := time.Until(deadline); left < d.RetryAfter {
			return &DeadlineError{d.Limit.String(), d.RetryAfter, left}
		}
	}
	w := newWaiter(demands)
	if room < math.MaxInt {
		serve(w.keys) // lets calls pass whose timers are late, so that they do not count as waiting
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

// newWaiter returns a waiter for those demands that have limits.
func newWaiter(demands []demand) *waiter {
	w := &waiter{passed: make(chan struct{})}
	for _, d := range demands {
		if len(d.limits) > 0 {
			w.demands = append(w.demands, d)
		}
	}
	w.keys = lineKeysOf(w.demands)
	w.elements = make([]*list.Element, len(w.keys))
	return w
}

// join lets w pass, or puts it into a line. It returns false if a line is full.
func (w *waiter) join(room int) bool {
	lockLines(w.keys)
	for _, k := range w.keys {
		if l := k.line(); l != nil && l.waiters.Len() >= room {
			unlockLines(w.keys)
			return false
		}
	}
	w.ticket, w.arrived = tickets.Add(1), clock()
	passed, freed := w.pass()
	unlockLines(w.keys)
	if passed {
		close(w.passed)
	}
	serve(freed)
	return true
}

// giveUp removes w from its lines. It returns false if w has passed.
func (w *waiter) giveUp() bool {
	lockLines(w.keys)
	waiting := !w.left
	if waiting {
		w.leave(clock())
	}
	unlockLines(w.keys)
	if waiting {
		serve(w.keys)
	}
	return waiting
}

// serve lets the first calls of the lines pass if they may, and then the calls that are
// the first of a line because of that.
func serve(keys []lineKey) {
	due := append(make([]lineKey, 0, 8), keys...)
	for len(due) > 0 {
		k := due[len(due)-1]
		due = due[:len(due)-1]
		k.book.waiting.Lock()
		w := k.line().first()
		k.book.waiting.Unlock()
		if w == nil {
			continue
		}
		passed, freed := w.passAll(k)
		for _, w := range passed { // after the lines are unlocked, because the calls may ask again at once
			close(w.passed)
		}
		if len(passed) > 0 {
			due = append(due, w.keys...)
		}
		due = append(due, freed...)
	}
}

// atOnce is how many calls one goroutine lets pass before another takes over.
const atOnce = 64

// passAll lets w, which is the first in the line of k, pass if it may, and then the calls
// behind it that wait for the same counters. It returns the calls that have passed, and
// the lines that calls have left without passing.
func (w *waiter) passAll(k lineKey) (passed []*waiter, freed []lineKey) {
	lockLines(w.keys)
	defer unlockLines(w.keys)
	keys := w.keys
	for w != nil && slices.Equal(w.keys, keys) {
		if len(passed) == atOnce {
			w.wakeAt(k, 0)
			break
		}
		ok, left := w.pass()
		freed = append(freed, left...)
		if !ok {
			break
		}
		passed = append(passed, w)
		w = k.line().first()
	}
	return passed, freed
}

// maxLate is how late a timer may be without a loss of rate: see paced.
const maxLate = int64(2 * time.Millisecond)

// pass lets w pass if no call in its lines came before it and all limits allow it.
// Otherwise it puts w into the line where it must wait. The caller has locked the lines.
// freed are the lines that w has left to other calls.
func (w *waiter) pass() (passed bool, freed []lineKey) {
	if w.left {
		return false, nil
	}
	now := clock()
	for i, k := range w.keys {
		if first := k.line().first(); first != nil && first.ticket < w.ticket && w.demands[i].n > 0 {
			return false, w.stand(i, k.line().due-now, now)
		}
	}
	at := now
	if l := w.paced(); l != nil {
		at = max(w.arrived, l.from, now-maxLate)
	}
	for {
		d := decide(w.demands, inTurn, at, nil)
		if d.Allowed {
			w.leave(at)
			return true, nil
		}
		at += int64(d.RetryAfter)
		if at > now {
			i := w.blockedBy(now)
			freed = w.stand(i, at-now, now)
			if w.keys[i].line().first() == w { // a demand of zero may be behind others
				w.wakeAt(w.keys[i], at-now)
			}
			return false, freed
		}
	}
}

// paced returns the line of w if w takes from one counter only, and all limits are
// buckets; otherwise nil. If the timer was a little late, such a call passes as of the
// time at which it could have passed, so that the calls in the line get all of the rate.
// That is safe because no other call takes anything while w is in the line.
func (w *waiter) paced() (in *line) {
	for i := range w.demands {
		d := &w.demands[i]
		if slices.ContainsFunc(d.limits, func(l Limit) bool { return !l.algorithm.bursts() }) {
			return nil
		}
		if d.n == 0 {
			continue
		}
		if in != nil || w.elements[i] == nil {
			return nil
		}
		in = w.keys[i].line()
	}
	return in
}

// blockedBy returns the index of the demand that is denied for the longest time.
func (w *waiter) blockedBy(now int64) (index int) {
	if len(w.demands) == 1 {
		return 0
	}
	var longest time.Duration
	for i := range w.demands {
		d, _ := consider(w.demands[i:i+1], toPeek, now, nil)
		if !d.Allowed && d.RetryAfter > longest {
			index, longest = i, d.RetryAfter
		}
	}
	return index
}

// stand puts w into the line of the demand at index blocked, which is denied for a time,
// and into the lines of all other demands if w has waited for that time already. It
// returns the lines that w has left.
func (w *waiter) stand(blocked int, denied, now int64) (freed []lineKey) {
	all := denied <= now-w.arrived
	for i, k := range w.keys {
		switch {
		case i == blocked || all && w.demands[i].n > 0:
			w.standIn(i)
		case w.elements[i] != nil:
			k.line().from = max(k.line().from, now)
			w.leaveLine(i)
			freed = append(freed, k)
		}
	}
	return freed
}

// standIn puts w into the line of its i-th demand, behind all earlier tickets.
func (w *waiter) standIn(i int) {
	if w.elements[i] != nil {
		return
	}
	k := w.keys[i]
	if k.line() == nil {
		k.book.lines[k.hash] = new(line)
		w.demands[i].setAwaited(true)
		now := clock()
		k.line().from, k.line().due = now, now
	}
	l := k.line()
	after := l.waiters.Back()
	for after != nil && after.Value.(*waiter).ticket > w.ticket {
		after = after.Prev()
	}
	if after == nil {
		w.elements[i] = l.waiters.PushFront(w)
	} else {
		w.elements[i] = l.waiters.InsertAfter(w, after)
	}
}

// leaveLine removes w from the line of its i-th demand.
func (w *waiter) leaveLine(i int) {
	k := w.keys[i]
	l := k.line()
	l.waiters.Remove(w.elements[i])
	w.elements[i] = nil
	if l.waiters.Len() > 0 {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	delete(k.book.lines, k.hash)
	w.demands[i].setAwaited(false)
}

// leave removes w from all its lines. Calls that wait for any of its counters may not pass
// as of a time before at.
func (w *waiter) leave(at int64) {
	w.left = true
	for i, k := range w.keys {
		if l := k.line(); l != nil {
			l.from = max(l.from, at)
		}
		if w.elements[i] != nil {
			w.leaveLine(i)
		}
	}
}

// wakeAt sets the timer of a line of which w is the first.
func (w *waiter) wakeAt(k lineKey, after int64) {
	l := k.line()
	l.due = clock() + after
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Duration(after), func() { serve([]lineKey{k}) })
	} else {
		l.timer.Reset(time.Duration(after))
	}
}

// lockLines locks the lines of keys, which are in the order of their books.
func lockLines(keys []lineKey) {
	for _, k := range keys {
		k.book.waiting.Lock()
	}
}

func unlockLines(keys []lineKey) {
	for _, k := range keys {
		k.book.waiting.Unlock()
	}
}
