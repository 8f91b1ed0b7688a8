package limit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ErrNever is the error of a wait that could never end: what it waits for is
// larger than its limit, or negative, or the limit is not valid.
var ErrNever = errors.New("ratelimit: this can never pass")

// ErrFull is the error of a [Queue] that has no place left.
var ErrFull = errors.New("ratelimit: the queue is full")

// line is those who wait for one counter, first come first.
type line struct {
	waiters list.List   // of *waiter
	timer   *time.Timer // ticks when the first may pass: the first to hear it serves the line
	due     int64       // when that is
	from    int64       // the earliest time as of which the first can pass
}

func newLine() *line {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &line{timer: timer}
}

// place is where to find a line: under a book's lock.
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

// waiter stands in the line of every counter that it demands. Because it joins
// all of them at once, two who share lines stand in the same order in each, and
// never wait for each other.
type waiter struct {
	places   []place // in the order of their books
	elements []*list.Element
	turn     <-chan time.Time // of the first line's timer
	passed   chan struct{}    // closed when it has

	// Guarded by the books:
	demands []demand
	arrived int64
	left    bool // its lines
}

// wait takes what is demanded, in turn. room is how many may wait at a time.
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
	w := &waiter{places: placesOf(demands), demands: slices.Clone(demands), passed: make(chan struct{})}
	if room < math.MaxInt {
		serve(w.places) // so that who is due has left, even if its timer is late
	}
	first, ok := w.join(room)
	if !ok {
		return ErrFull
	}
	if first {
		serve(w.places)
	}
	for {
		select {
		case <-w.passed:
			return nil
		case <-w.turn:
			serve(w.places)
		case <-ctx.Done():
			if w.giveUp() {
				return fmt.Errorf("ratelimit: waiting for limit %v: %w", d.Limit, ctx.Err())
			}
			return nil
		}
	}
}

// impossible says why the demands can never pass.
func impossible(demands []demand) error {
	for _, d := range demands {
		for _, l := range d.limits {
			if err := l.Validate(); err != nil {
				return fmt.Errorf("%w: %w", err, ErrNever)
			}
			if l.never(d.n) {
				return fmt.Errorf("ratelimit: %d under limit %v: from 0 to %d can pass at once: %w", d.n, l, l.burst, ErrNever)
			}
		}
	}
	return ErrNever
}

// join puts w at the end of its lines, unless one is full, and says whether it
// is the first in all of them.
func (w *waiter) join(room int) (first, ok bool) {
	lockLines(w.places)
	defer unlockLines(w.places)
	first = true
	for _, p := range w.places {
		if l := p.line(); l != nil && l.waiters.Len() >= room {
			return false, false
		} else if l != nil {
			first = false
		}
	}
	for i, p := range w.places {
		if p.line() == nil {
			p.book.lines[p.hash] = newLine()
			w.demands[i].await(true)
		}
	}
	w.arrived = clock()
	for _, p := range w.places {
		l := p.line()
		if l.waiters.Len() == 0 {
			l.from, l.due = w.arrived, w.arrived
		}
		w.elements = append(w.elements, l.waiters.PushBack(w))
	}
	w.turn = w.places[0].line().timer.C
	return first, true
}

// giveUp takes w out of its lines, and returns false if it has passed.
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

// serve lets pass whoever may, of those who are first in the lines at places,
// and of those whom that brings to the front of theirs.
func serve(places []place) {
	due := append(make([]place, 0, 8), places...)
	for len(due) > 0 {
		p := due[len(due)-1]
		due = due[:len(due)-1]
		w := p.first()
		if w == nil {
			continue
		}
		passed := w.passAll()
		for _, w := range passed { // they come back for more, so not before the lines are unlocked
			close(w.passed)
		}
		if len(passed) > 0 {
			due = append(due, w.places...)
		}
	}
}

func (p place) first() *waiter {
	p.book.waiting.Lock()
	defer p.book.waiting.Unlock()
	return p.line().first()
}

func (l *line) first() *waiter {
	if l == nil {
		return nil
	}
	return l.waiters.Front().Value.(*waiter)
}

// passAll lets w pass, if it may, and then those behind it who stand in the
// same lines. It returns who has passed.
func (w *waiter) passAll() (passed []*waiter) {
	lockLines(w.places)
	defer unlockLines(w.places)
	places := w.places
	for w != nil && slices.Equal(w.places, places) && w.pass() {
		passed = append(passed, w)
		w = places[0].line().first()
	}
	return passed
}

// pass lets w pass if it is first in all of its lines and its time has come.
// The lines are locked.
func (w *waiter) pass() bool {
	if w.left {
		return false
	}
	now := clock()
	at := w.arrived
	for i, p := range w.places {
		if p.line().waiters.Front() != w.elements[i] {
			return false
		}
		at = max(at, p.line().from)
	}
	if !w.paced() {
		at = now
	}
	for {
		d := decide(w.demands, inTurn, at, nil)
		if d.Allowed {
			w.leave(at)
			return true
		}
		if at += int64(d.RetryAfter); at > now {
			w.wakeAt(at, now)
			return false
		}
	}
}

// paced reports whether only buckets hold w. It can pass them as of the time
// at which it might have, even if its timer was late, so that those who wait
// get all of the rate. While it waited, nobody else has taken anything.
func (w *waiter) paced() bool {
	for i := range w.demands {
		for _, l := range w.demands[i].limits {
			if !l.algorithm.bursts() {
				return false
			}
		}
	}
	return true
}

// wakeAt sets the timer by which w, the first of its lines, is served.
func (w *waiter) wakeAt(at, now int64) {
	for _, p := range w.places {
		p.line().due = at
	}
	w.places[0].line().timer.Reset(time.Duration(at - now))
}

// leave takes w out of its lines. Who comes after it passes at the time at or
// later.
func (w *waiter) leave(at int64) {
	w.left = true
	for i, p := range w.places {
		l := p.line()
		l.from = max(l.from, at)
		l.waiters.Remove(w.elements[i])
		if l.waiters.Len() > 0 {
			continue
		}
		l.timer.Stop()
		delete(p.book.lines, p.hash)
		w.demands[i].await(false)
	}
}

// lockLines locks the books of places, which are in their order.
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
