package redisstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// nextBill returns the next bill of g. If there is none, and Redis has reported the state of the key
// since the last one, it removes g and returns true for done. If keep is set, g is kept for a recovery.
func (b *ledgers) nextBill(g *ledger, stateKnown, keep bool) (next *bill, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.removed {
		return nil, true
	}
	next = g.nextBill(b.clock())
	if next != nil || !stateKnown {
		return next, false
	}
	g.paid = true
	b.remove(g)
	if keep {
		b.kept[g.key] = g
	}
	return nil, true
}

// reconcile charges Redis for what g has admitted without it, and removes g. If another caller is
// doing that, reconcile waits for it.
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
		l.emit(store.Event{Kind: store.Reconciled, Keys: 1, Charged: paid})
	}
	return err
}

// pay pays the bills of g one after another, and removes g. With Share, it first asks Redis for the
// resulting state of the key, from which the node starts if Redis is lost again.
func (l *fallback) pay(ctx context.Context, g *ledger) (paid int64, err error) {
	stateKnown := l.mode != Share
	for {
		b, done := l.ledgers.nextBill(g, stateKnown, l.nodes != nil && l.nodes.recovery.of(l.groupOf(g.key)))
		switch {
		case done:
			return paid, nil
		case b != nil:
			if err := l.charge(ctx, g, b); err != nil {
				return paid, err
			}
			paid += b.n
			stateKnown = l.mode != Share
		default:
			if err := l.observeKey(ctx, g); err != nil {
				return paid, err
			}
			stateKnown = true
		}
	}
}

// charge pays a bill. If the bill may have reached Redis before, it is sent again unchanged, so that
// Redis is charged once.
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

// observeKey asks Redis for the state of the key of g, and records it.
func (l *fallback) observeKey(ctx context.Context, g *ledger) error {
	charge := store.Charge{Key: g.key}
	l.ledgers.update(g, func(g *ledger) { charge.Limits = g.limits })
	_, err := l.peekBelow(ctx, []store.Charge{charge})
	return err
}

const (
	sweepers   = 16          // how many ledgers a sweep reconciles at the same time
	sweepEvery = time.Second // the shortest time between two sweeps, unless Redis has just come back
)

// sweep reconciles all ledgers, if Redis answers.
func (l *fallback) sweep(ctx context.Context) {
	work := make(chan *ledger)
	var done sync.WaitGroup
	for range sweepers {
		done.Go(func() {
			for g := range work {
				l.reconcile(ctx, g) // after an error, a later sweep does the rest
			}
		})
	}
	for _, g := range l.ledgers.all() {
		work <- g
	}
	close(work)
	done.Wait()
}

// sweeper runs sweeps in the background.
type sweeper struct {
	mu      sync.Mutex
	last    time.Time // when the last sweep began
	closed  bool
	running sync.WaitGroup
}

// wake starts a sweep if there are ledgers. If it is not urgent, there is at most one sweep a second.
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
	s.running.Go(func() {
		l.sweep(context.Background())
		if l.inDebt() && l.lost.Load() == 0 { // an answer was late; perhaps no call comes that would wake a sweep
			time.AfterFunc(sweepEvery, func() { l.wake(false) })
		}
	})
}

// stop waits for the running sweeps. No sweep begins after it.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}
