package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// payment is the payment of a ledger that is under way. Other callers that need the key wait for
// it.
type payment struct {
	done chan struct{}
	err  error // valid once it is done
}

// claim begins a payment of g, or returns the one that is under way. It returns neither if there is
// nothing to pay any more.
func (b *ledgers) claim(g *ledger) (mine, others *payment) {
	s := b.shard(g.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.gone || g.payment != nil {
		return nil, g.payment
	}
	g.payment = &payment{done: make(chan struct{})}
	return g.payment, nil
}

// end ends a payment of g.
func (b *ledgers) end(g *ledger, p *payment, err error) {
	s := b.shard(g.key)
	s.mu.Lock()
	g.payment = nil
	s.mu.Unlock()
	p.err = err
	close(p.done)
}

// nextBill returns the next bill of g. If there is none and the state of Redis is known, it closes
// g.
func (b *ledgers) nextBill(g *ledger, located bool) *bill {
	s := b.shard(g.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.gone {
		return nil
	}
	bill := g.nextBill(b.clock())
	if bill == nil && located {
		g.paid = true
		b.remove(s, g)
	}
	return bill
}

// update changes g under the lock of its shard.
func (b *ledgers) update(g *ledger, change func(g *ledger)) {
	s := b.shard(g.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	change(g)
}

// reconcile charges Redis for what g owes, and closes g. If another caller is doing that, it waits
// for it.
func (l *fallback) reconcile(ctx context.Context, g *ledger) error {
	for {
		mine, others := l.ledgers.claim(g)
		if mine != nil {
			n, err := l.pay(ctx, g)
			l.ledgers.end(g, mine, err)
			l.reportPaid(n)
			return err
		}
		if others == nil {
			return nil
		}
		select {
		case <-others.done:
		case <-ctx.Done():
			return fmt.Errorf("ratelimit: not asked: %w", ctx.Err())
		}
		if errors.Is(others.err, ErrLost) {
			return others.err
		}
	}
}

// pay pays bill after bill, and closes g once Redis has reported the resulting state of its key,
// from which the node starts if Redis is lost again.
func (l *fallback) pay(ctx context.Context, g *ledger) (paid int64, err error) {
	located := l.observed == nil
	for {
		b := l.ledgers.nextBill(g, located)
		switch {
		case b != nil:
			if err := l.charge(ctx, g, b); err != nil {
				return paid, err
			}
			paid += b.n
			located = l.observed == nil
		case located:
			return paid, nil
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

// reportPaid reports what was paid.
func (l *fallback) reportPaid(n int64) {
	if n == 0 {
		return
	}
	l.reportDecided()
	l.emit(Event{Kind: Reconciled, Keys: 1, Charged: n})
}

const (
	sweepers   = 16          // ledgers that are paid at the same time
	sweepEvery = time.Second // at least, unless Redis is known to be back
)

// sweep pays what all ledgers owe, as far as possible.
func (l *fallback) sweep(ctx context.Context) {
	all := l.ledgers.all()
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(sweepers, len(all)) {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				l.reconcile(ctx, all[i]) // after an error, a later sweep pays the rest
			}
		})
	}
	done.Wait()
}

// sweeper sweeps in the background, one sweep at a time.
type sweeper struct {
	mu      sync.Mutex
	last    time.Time
	running bool
	again   bool
	closed  bool
	done    sync.WaitGroup
}

// wake starts a sweep, unless it is not urgent and there was one within the last second.
func (l *fallback) wake(pressing bool) {
	if l.ledgers.count.Load() == 0 {
		return
	}
	s := &l.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || !pressing && time.Since(s.last) < sweepEvery:
	case s.running:
		s.again = s.again || pressing
	default:
		s.running = true
		s.done.Go(l.sweeps)
	}
}

func (l *fallback) sweeps() {
	s := &l.sweeper
	for more := true; more; {
		l.sweep(context.Background())
		s.mu.Lock()
		more = s.again && !s.closed
		s.again, s.running, s.last = false, more, time.Now()
		s.mu.Unlock()
	}
}

// stop waits for the running sweep. No other begins any more.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.done.Wait()
}
