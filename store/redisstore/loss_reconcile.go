package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// nextBill returns the next bill of g. If there is none and the state of Redis is known, it removes
// g.
func (b *ledgers) nextBill(g *ledger, located bool) (next *bill, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.gone {
		return nil, true
	}
	next = g.nextBill(b.clock())
	if next != nil || !located {
		return next, false
	}
	g.paid = true
	b.remove(g)
	return nil, true
}

// reconcile charges Redis for what g owes, and removes g. If another caller is doing that, it waits
// for it.
func (l *fallback) reconcile(ctx context.Context, g *ledger) error {
	select {
	case g.paying <- struct{}{}:
		defer func() { <-g.paying }()
	case <-ctx.Done():
		return fmt.Errorf("ratelimit: not asked: %w", ctx.Err())
	}
	paid, err := l.pay(ctx, g)
	if paid > 0 {
		l.reportDecided()
		l.emit(Event{Kind: Reconciled, Keys: 1, Charged: paid})
	}
	return err
}

// pay pays bill after bill, and removes g once Redis has reported the resulting state of its key,
// from which the node starts if Redis is lost again.
func (l *fallback) pay(ctx context.Context, g *ledger) (paid int64, err error) {
	located := l.mode != Share
	for {
		b, done := l.ledgers.nextBill(g, located)
		switch {
		case done:
			return paid, nil
		case b != nil:
			if err := l.charge(ctx, g, b); err != nil {
				return paid, err
			}
			paid += b.n
			located = l.mode != Share
		default:
			if err := l.locate(ctx, g); err != nil {
				return paid, err
			}
			located = true
		}
	}
}

// charge pays a bill. A bill that may have reached Redis is sent again unchanged, so Redis is
// charged once.
func (l *fallback) charge(ctx context.Context, g *ledger, b *bill) error {
	if b.receipt == nil {
		r, err := l.below.owe(ctx, store.Charge{Key: g.key, Limits: b.limits})
		if err != nil {
			return err
		}
		l.ledgers.update(g, func(g *ledger) { g.markSent(b, r, l.clock()) })
	}
	if err := l.below.Settle(ctx, b.receipt, []int64{b.n}); err != nil {
		return err
	}
	l.ledgers.update(g, func(g *ledger) { g.bill = nil })
	return nil
}

// locate asks Redis for the state of the key of g.
func (l *fallback) locate(ctx context.Context, g *ledger) error {
	charge := store.Charge{Key: g.key}
	l.ledgers.update(g, func(g *ledger) { charge.Limits = g.limits })
	_, err := l.peekBelow(ctx, []store.Charge{charge})
	return err
}

const (
	sweepers   = 16          // ledgers that are paid at the same time
	sweepEvery = time.Second // at most, unless Redis is known to be back
)

// sweep pays what all ledgers owe, as far as possible.
func (l *fallback) sweep(ctx context.Context) {
	work := make(chan *ledger)
	var done sync.WaitGroup
	for range sweepers {
		done.Go(func() {
			for g := range work {
				l.reconcile(ctx, g) // after an error, a later sweep pays the rest
			}
		})
	}
	for _, g := range l.ledgers.all() {
		work <- g
	}
	close(work)
	done.Wait()
}

// sweeper sweeps in the background.
type sweeper struct {
	mu      sync.Mutex
	last    time.Time // when the last sweep began
	closed  bool
	running sync.WaitGroup
}

// wake starts a sweep, unless it is not urgent and there was one within the last second.
func (l *fallback) wake(urgent bool) {
	if !l.inDebt() {
		return
	}
	s := &l.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !urgent && time.Since(s.last) < sweepEvery {
		return
	}
	s.last = time.Now()
	s.running.Go(func() { l.sweep(context.Background()) })
}

// stop waits for the running sweeps. No other begins any more.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}
