package ratelimit

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// line is those who wait for a model, first come, first served. The first asks,
// and sleeps until the time that it was told, or until something is given back;
// the others sleep until it is their turn. So there is one timer, whatever the
// length of the line. While anybody waits, nobody else takes anything.
type line struct {
	length atomic.Int32            // of waiters
	told   atomic.Pointer[refusal] // the last answer to whoever was first

	mu      sync.Mutex
	waiters list.List // of *waiter
}

type waiter struct {
	turn  chan struct{} // closed when it is the first
	freed chan struct{} // holds a token when something was given back
}

// refusal is what the first was told, and when it may come back.
type refusal struct {
	outcome outcome
	due     int64
}

// wait calls ask in turn until it is done, or fails, or ctx ends. A denial says
// when to ask again.
func (l *line) wait(ctx context.Context, ask func() (again time.Duration, done bool, err error)) error {
	w, place := l.join()
	defer l.leave(place)
	select {
	case <-w.turn:
	case <-ctx.Done():
		return fmt.Errorf("ratelimit: waiting in line: %w", ctx.Err())
	}
	var timer *time.Timer
	for {
		again, done, err := ask()
		if done || err != nil {
			return err
		}
		if timer == nil {
			timer = time.NewTimer(again)
			defer timer.Stop()
		} else {
			timer.Reset(again)
		}
		select {
		case <-timer.C:
		case <-w.freed:
		case <-ctx.Done():
			return fmt.Errorf("ratelimit: waiting for capacity, which would have come in %v: %w", again, ctx.Err())
		}
	}
}

func (l *line) join() (*waiter, *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{turn: make(chan struct{}), freed: make(chan struct{}, 1)}
	if l.waiters.Len() == 0 {
		close(w.turn)
	}
	l.length.Add(1)
	return w, l.waiters.PushBack(w)
}

// leave lets the next take its turn, if it was the first that leaves.
func (l *line) leave(place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.waiters.Front() == place
	l.waiters.Remove(place)
	l.length.Add(-1)
	if next := l.waiters.Front(); first && next != nil {
		close(next.Value.(*waiter).turn)
	}
}

// wake lets the first ask again: something was given back.
func (l *line) wake() {
	if l.length.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.waiters.Front(); first != nil {
		select {
		case first.Value.(*waiter).freed <- struct{}{}:
		default:
		}
	}
}
