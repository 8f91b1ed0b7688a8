package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// coalescer merges concurrent takes of the same amount of the same key into one call. The results are
// those of calls one after another, at the cost of one call. While Redis is asked for a take, equal
// takes that arrive wait; when the answer is there, one call asks for all of them.
type coalescer struct {
	remote *remote

	mu      sync.Mutex
	groups  map[takeKey]*sameTakes
	closed  bool
	serving sync.WaitGroup // the calls of all groups
}

// takeKey is what equal takes have in common.
type takeKey struct {
	key   string
	n     int64
	first limit.Limit
}

// sameTakes are equal takes, of which Redis is being asked for one or several. The lock of the
// coalescer guards them.
type sameTakes struct {
	limits  []limit.Limit
	waiting []*coalescedTake
	denied  bool // the last call was denied
}

// coalescedTake is a take that waits for the shared call.
type coalescedTake struct {
	done chan struct{} // closed when the take has its answer
	left bool          // the caller has left before that; guarded by the lock of the coalescer

	receipt   store.Receipt
	decisions []limit.Decision
	err       error
}

// take takes one charge.
func (c *coalescer) take(ctx context.Context, charge store.Charge) (store.Receipt, []limit.Decision, error) {
	alone := []store.Charge{charge}
	if len(charge.Limits) == 0 || charge.N == 0 {
		return c.remote.takeTogether(ctx, alone)
	}
	w := takeKey{charge.Key, charge.N, charge.Limits[0]}
	c.mu.Lock()
	g := c.groups[w]
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, nil, store.ErrClosed
	case g == nil:
		g = &sameTakes{limits: charge.Limits}
		if c.groups == nil {
			c.groups = map[takeKey]*sameTakes{}
		}
		c.groups[w] = g
		c.serving.Add(1)
		c.mu.Unlock()
		defer c.next(w, g)
		return c.remote.takeTogether(ctx, alone)
	case !slices.Equal(g.limits, charge.Limits):
		c.mu.Unlock()
		return c.remote.takeTogether(ctx, alone)
	}
	m := &coalescedTake{done: make(chan struct{})}
	g.waiting = append(g.waiting, m)
	c.mu.Unlock()
	return c.wait(ctx, m)
}

// wait waits for the answer to m, at most for the timeout.
func (c *coalescer) wait(ctx context.Context, m *coalescedTake) (store.Receipt, []limit.Decision, error) {
	timer := time.NewTimer(c.remote.timeout)
	defer timer.Stop()
	select {
	case <-m.done:
		return m.receipt, m.decisions, m.err
	case <-ctx.Done():
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-m.done:
		return m.receipt, m.decisions, m.err
	default:
		m.left = true
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("ratelimit: waiting for redis: %w", err)
	}
	return nil, nil, fmt.Errorf("%w: no answer within %v", ErrLost, c.remote.timeout)
}

// next serves the takes that have come in the meantime, or forgets the group.
func (c *coalescer) next(w takeKey, g *sameTakes) {
	defer c.serving.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(g.waiting) == 0 {
		delete(c.groups, w)
		return
	}
	c.serving.Go(func() { c.serveWaiting(w, g) })
}

// close waits for all calls. The caller has closed the link, so they fail soon.
func (c *coalescer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.serving.Wait()
}

// serveWaiting asks for the waiting takes, until none waits, and then forgets the group.
func (c *coalescer) serveWaiting(w takeKey, g *sameTakes) {
	for {
		c.mu.Lock()
		all := slices.DeleteFunc(g.waiting, func(m *coalescedTake) bool { return m.left })
		g.waiting = nil
		if len(all) == 0 {
			delete(c.groups, w)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.serveAll(w, g, all)
	}
}

// serveAll asks for the takes of all members in one call. If not all of them can pass, it asks for as
// many as can. The others get the answer to the first of them that is denied.
func (c *coalescer) serveAll(w takeKey, g *sameTakes, all []*coalescedTake) {
	size := len(all)
	if g.denied {
		size = 1
	}
	for len(all) > 0 {
		size = min(size, len(all), maxTimes(g.limits, w.n))
		t, err := c.remote.ask(context.Background(), []store.Charge{{Key: w.key, Limits: g.limits, N: int64(size) * w.n}})
		switch {
		case err != nil:
			c.answerAll(all, nil, err)
			return
		case t.status == allowed:
			c.admit(t, w.n, all[:size])
			all, size, g.denied = all[size:], len(all)-size, false
		case size == 1:
			g.denied = true
			c.answerAll(all, t.decisions(false), nil)
			return
		default:
			size = max(min(timesLeft(t.decisions(false), w.n), size-1), 1)
		}
	}
}

// maxTimes returns how many takes of n all limits can admit at once.
func maxTimes(limits []limit.Limit, n int64) int {
	most := int64(1 << 20)
	for _, l := range limits {
		most = min(most, l.Burst()/n)
	}
	return int(max(most, 1))
}

// timesLeft returns how many takes of n all limits have left, by their decisions.
func timesLeft(decisions []limit.Decision, n int64) int {
	least := int64(1 << 20)
	for _, d := range decisions {
		least = min(least, d.Remaining/n)
	}
	return int(least)
}

// admit gives each member its part of what was taken for all, with the decisions that it would have
// got if Redis had been asked for one take after another. The parts of callers that have left are given
// back.
func (c *coalescer) admit(t takeAnswer, n int64, members []*coalescedTake) {
	f := &t.accounts[0]
	f.charge.N = n
	var unclaimed []*chargeReceipt
	for _, m := range members {
		m.decisions = f.decide(nil, t.at, true)
		take := f.take(t.at)
		m.receipt = c.remote.receipt([]*chargeReceipt{take})
		if !c.finish(m) {
			unclaimed = append(unclaimed, take)
		}
	}
	for _, take := range unclaimed {
		c.remote.send(c.remote.settle([]*chargeReceipt{take}, []int64{0}, false))
	}
}

// answerAll gives all takes the same answer.
func (c *coalescer) answerAll(members []*coalescedTake, decisions []limit.Decision, err error) {
	for _, m := range members {
		m.decisions, m.err = slices.Clone(decisions), err
		c.finish(m)
	}
}

// finish wakes the caller of m. It returns false if the caller has left.
func (c *coalescer) finish(m *coalescedTake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.left {
		return false
	}
	close(m.done)
	return true
}
