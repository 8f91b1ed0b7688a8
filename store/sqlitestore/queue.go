package sqlitestore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// operation is a call that waits for a transaction. A caller that finds no transaction running
// begins one, and runs all waiting calls in it. After that it wakes the first caller that has come
// since, which runs the next transaction. So no caller works for others for ever, and no goroutine
// is needed.
type operation struct {
	ctx    context.Context
	since  time.Time // when the call came
	number uint64    // how many calls had come with it

	// step is the call's part of a shared transaction. After an error it must have changed nothing;
	// the error is that of this call alone.
	step   func(*batch) error
	writes bool // step may write

	exclusive func() error // runs instead of step, outside of any shared transaction
	closes    bool         // the store is closed: no call may come after this one

	wake chan bool       // gets true if the caller is to run the next transaction, and false if the call is done; nil: see submitLater
	done func(err error) // is called when a call is done that nobody waits for
	err  error
}

// submit puts o into the queue and waits until it is done. If the context ends before a transaction
// has begun to run o, the call is withdrawn, and has done nothing. Once a transaction runs o, submit
// returns its result, whether the context has ended or not.
func (s *Store) submit(o *operation) error {
	o.wake = make(chan bool, 1)
	if err := o.ctx.Err(); err != nil && !s.closed.Load() {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	s.mu.Lock()
	if err := s.enqueue(o); err != nil {
		s.mu.Unlock()
		return err
	}
	work := !s.working
	s.working = true
	s.mu.Unlock()
	if !work {
		var left bool
		if work, left = s.wait(o); left {
			return s.gaveUp(o.ctx)
		}
	}
	if work {
		s.work(o)
	}
	return o.err
}

// enqueue puts o into the queue. The caller has locked mu.
func (s *Store) enqueue(o *operation) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	s.closed.Store(o.closes)
	s.came++
	o.since, o.number = time.Now(), s.came
	s.queue = append(s.queue, o)
	return nil
}

// maxLater is how long a call that nobody waits for stays in the queue of an idle store.
const maxLater = 2 * time.Millisecond

// submitLater puts o into the queue and does not wait. The next call runs o in its own transaction, before its own
// step; if none comes for a moment, o gets a transaction of its own.
func (s *Store) submitLater(o *operation) {
	o.ctx = context.Background()
	s.mu.Lock()
	err := s.enqueue(o)
	arm := err == nil && !s.armed
	s.armed = s.armed || arm
	s.mu.Unlock()
	switch {
	case err != nil:
		o.done(err)
	case arm:
		time.AfterFunc(maxLater, s.workLater)
	}
}

// workLater runs the calls that nobody waits for and no other call has run for so long.
func (s *Store) workLater() {
	s.mu.Lock()
	if s.armed = len(s.queue) > 0; !s.armed {
		s.mu.Unlock()
		return
	}
	rest := maxLater - time.Since(s.queue[0].since)
	work := rest <= 0 && !s.working
	s.working = s.working || work
	s.mu.Unlock()
	if rest <= 0 {
		rest = maxLater
	}
	time.AfterFunc(rest, s.workLater) // until the queue is empty
	if work {
		s.work(nil)
	}
}

// wait waits until o is done. It returns early if the caller of o is to run the next transaction, or
// if its context has ended and it has left.
func (s *Store) wait(o *operation) (work, left bool) {
	select {
	case work = <-o.wake:
		return work, false
	case <-o.ctx.Done():
	}
	if s.leave(o) {
		select {
		case <-o.wake: // it was to run the next transaction
			s.handOver()
		default:
		}
		return false, true
	}
	return <-o.wake, false
}

// leave removes o from the queue, and reports whether it was still there: then no transaction runs it.
func (s *Store) leave(o *operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, o)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	return i >= 0
}

// handOver lets the next caller in the queue run a transaction.
func (s *Store) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.queue, (*operation).waits)
	if s.working = i >= 0; s.working {
		s.queue[i].wake <- true
	}
}

// waits reports whether a caller waits for o.
func (o *operation) waits() bool { return o.wake != nil }

// work runs transactions until o is done, which is the first call in the queue that a caller waits for. Without o it
// runs one transaction.
func (s *Store) work(o *operation) {
	defer s.handOver()
	if o == nil {
		s.runBatch(&operation{ctx: context.Background(), since: time.Now()})
		return
	}
	for s.queued(o) {
		if o.exclusive != nil && s.isFirst(o) {
			s.leave(o)
			o.err = o.exclusive()
			return
		}
		s.runBatch(o)
	}
}

func (s *Store) queued(o *operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.queue, o)
}

func (s *Store) isFirst(o *operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue[0] == o
}

// runBatch runs the calls at the front of the queue that can share a transaction, on behalf of o. If no transaction can
// begin, they fail up to o; or o alone, if its context has ended.
func (s *Store) runBatch(o *operation) {
	if s.unsettled.Load() > 0 { // others call the store: those that can run come first, since a shared transaction costs less
		runtime.Gosched()
	}
	writes, came := s.look()
	if err := s.begin(o.ctx, o.since, writes); err != nil {
		if o.ctx.Err() != nil {
			s.leave(o)
			o.err = err
			return
		}
		s.failTo(o, err)
		return
	}
	ops := s.takeBatch(writes, came)
	defer s.finish(ops, o)
	s.execute(ops, writes)
}

// finish wakes the callers of ops, but for that of o, because their calls are done.
func (s *Store) finish(ops []*operation, o *operation) {
	for _, other := range ops {
		switch {
		case other.done != nil:
			other.done(other.err)
		case other != o:
			other.wake <- false
		}
	}
}

// failTo takes the calls before o, for which nobody waits, off the queue, and fails them; and o itself, unless it only
// reads and can be done without them.
func (s *Store) failTo(o *operation, err error) {
	s.mu.Lock()
	n := slices.IndexFunc(s.queue, (*operation).waits)
	if n < 0 {
		n = len(s.queue)
	} else if s.queue[n] == o && (o.writes || n == 0) {
		n++
	}
	failed := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	s.mu.Unlock()
	for _, other := range failed {
		other.err = err
	}
	s.finish(failed, o)
}

// look reports whether any of the calls that can share the next transaction writes, and how many calls have come.
func (s *Store) look() (writes bool, came uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queue[:s.shareable()], func(o *operation) bool { return o.writes }), s.came
}

// takeBatch takes the calls that can share a transaction off the front of the queue. A transaction that only reads sees
// the file as it was when it began, so a call that has come since is not one of them: another process may have changed
// the file before that call.
func (s *Store) takeBatch(writes bool, came uint64) []*operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.shareable()
	if !writes {
		if first := slices.IndexFunc(s.queue[:n], func(o *operation) bool { return o.writes || o.number > came }); first >= 0 {
			n = first
		}
	}
	ops := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return ops
}

// shareable returns how many calls at the front of the queue can share a transaction.
func (s *Store) shareable() int {
	n := min(len(s.queue), s.maxBatch)
	if first := slices.IndexFunc(s.queue[:n], func(o *operation) bool { return o.exclusive != nil }); first >= 0 {
		return first
	}
	return n
}
