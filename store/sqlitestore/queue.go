package sqlitestore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// op is a call that waits for its turn. Whoever finds nobody at work begins a
// transaction, and carries in it all who wait by then. After that it hands the
// work over to the first who has come since, so nobody works for others for
// ever, and no goroutine is needed for it.
type op struct {
	ctx   context.Context
	since time.Time

	// step is its part in a transaction that it shares. Its error is its
	// alone, and it has changed nothing then.
	step   func(*batch) error
	writes bool // step may

	alone func() error // it does instead, while nobody else works
	last  bool         // nobody may enter after it

	turn chan bool // true: to work; false: it is done
	err  error
}

// enter waits until o is done. If o's context ends before a transaction has
// begun to carry it, it leaves, and nothing has happened. Otherwise what it
// says is what happened, whether the context has ended or not.
func (s *Store) enter(o *op) error {
	o.since = time.Now()
	o.turn = make(chan bool, 1)
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return store.ErrClosed
	}
	if err := o.ctx.Err(); err != nil {
		s.mu.Unlock()
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	s.closed.Store(o.last)
	s.queue = append(s.queue, o)
	work := !s.working
	s.working = true
	s.mu.Unlock()
	if !work {
		var left bool
		if work, left = s.wait(o); left {
			return s.left(o.ctx)
		}
	}
	if work {
		s.work(o)
	}
	return o.err
}

// wait returns whether o is to work, or has left.
func (s *Store) wait(o *op) (work, left bool) {
	select {
	case work = <-o.turn:
		return work, false
	case <-o.ctx.Done():
	}
	if s.leave(o) {
		select {
		case <-o.turn: // it was to work
			s.handOver()
		default:
		}
		return false, true
	}
	return <-o.turn, false
}

// leave takes o out of the queue, unless a transaction carries it.
func (s *Store) leave(o *op) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, o)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	return i >= 0
}

// handOver lets the next in the queue work.
func (s *Store) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working = len(s.queue) > 0; s.working {
		s.queue[0].turn <- true
	}
}

// work carries o, which is the first of the queue, and others with it.
func (s *Store) work(o *op) {
	defer s.handOver()
	if o.alone != nil {
		s.leave(o)
		o.err = o.alone()
		return
	}
	s.gather()
	writes := s.anyWrites()
	if o.err = s.begin(o.ctx, o.since, writes); o.err != nil {
		s.leave(o)
		return
	}
	began := time.Now()
	ops := s.draw(writes)
	s.carried = len(ops)
	defer func() {
		for _, other := range ops {
			if other != o {
				other.turn <- false
			}
		}
	}()
	s.carry(ops)
	s.took = time.Since(began)
}

// crowded is how many calls a transaction carries at least if it is worth to wait
// for those whom the next one could.
const crowded = 8

const moment = time.Millisecond

// gather lets those come again whom the last transaction has carried: the more
// there are in the next, the less it costs each of them. While many are busy
// elsewhere in between, it waits for as long as the last one took, or a moment.
func (s *Store) gather() {
	if s.carried < 2 {
		return
	}
	runtime.Gosched()
	if s.carried >= crowded && s.waiting() < s.carried {
		time.Sleep(min(s.took, moment))
	}
}

func (s *Store) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func (s *Store) anyWrites() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queue[:s.sharing()], func(o *op) bool { return o.writes })
}

// draw takes those who can share a transaction off the front of the queue.
func (s *Store) draw(writes bool) []*op {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sharing()
	if !writes {
		if first := slices.IndexFunc(s.queue[:n], func(o *op) bool { return o.writes }); first >= 0 {
			n = first
		}
	}
	ops := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return ops
}

// sharing returns how many at the front of the queue can share a transaction.
func (s *Store) sharing() int {
	n := min(len(s.queue), s.most)
	if first := slices.IndexFunc(s.queue[:n], func(o *op) bool { return o.alone != nil }); first >= 0 {
		return first
	}
	return n
}
