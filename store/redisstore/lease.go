package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// leases lets this node take slices of limits by itself. A slice is taken from the limit before any
// of it is used, and counts as used until what was used of it is charged and the rest is given
// back. So nothing overshoots, and meanwhile the other nodes have that much less.
type leases struct {
	*fallback
	remote *remote
	term   time.Duration

	mu      sync.Mutex
	keys    map[string]*leasedKey
	closed  bool
	running sync.WaitGroup // leases that are being acquired or given back
}

const (
	maxSlice     = 16   // a lease is at most such a part of the smallest limit
	hotTakes     = 8    // takes of a key in a term from which on it is leased
	maxKeyStates = 8192 // keys that are watched
)

// leasedKey is what this node knows of one key. The lock of leases guards it.
type leasedKey struct {
	lease     *lease    // nil: none
	since     time.Time // the start of the term in which takes are counted
	takes     int64     // in the term
	amount    int64     // taken in the term
	acquiring bool      // a caller is acquiring a lease
}

// lease is a lease that this node has, or had.
type lease struct {
	name      string
	charge    store.Charge     // what was set aside
	decisions []limit.Decision // on the charge, by limit
	until     time.Time        // by this node's clock: earlier than by the server's
	timer     *time.Timer

	// The lock of leases guards these. Once the lease is over, left does not change.
	left  int64
	takes int64
	over  bool

	done    chan struct{}  // closed when the server was told what was spent
	charged *chargeReceipt // what the server has charged for it; nil: all of it, or unknown
}

// spent returns what was taken from the lease.
func (h *lease) spent() int64 { return h.charge.N - h.left }

func newLeases(below *fallback, remote *remote, term time.Duration) *leases {
	return &leases{fallback: below, remote: remote, term: term, keys: map[string]*leasedKey{}}
}

// leaseReceipt is the receipt of a take from leases.
type leaseReceipt struct {
	leases  *leases
	parts   []leasePart // one for each charge
	settled atomic.Bool

	onePart     [1]leasePart // the memory of parts, if there is one
	oneDecision [1]limit.Decision
}

// leasePart is what was taken from one lease. Only the settling goroutine uses it.
type leasePart struct {
	of   *lease
	n    int64
	debt store.Receipt // of what was used beyond, until it is charged
}

// Take implements [store.Store].
func (l *leases) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if ctx.Err() != nil {
		return l.fallback.Take(ctx, charges)
	}
	now := time.Now()
	if receipt, decisions := l.takeLocally(charges, now); receipt != nil {
		return receipt, decisions, nil
	}
	wanted, spent := l.countTakes(charges, now)
	for _, h := range spent {
		go l.finish(h)
	}
	for _, h := range spent { // until then, what is left of the lease counts as used
		select {
		case <-h.done:
		case <-ctx.Done():
		}
	}
	granted := len(wanted) > 0
	for _, c := range wanted {
		granted = l.acquire(ctx, c) && granted
	}
	if granted {
		if receipt, decisions := l.takeLocally(charges, time.Now()); receipt != nil {
			return receipt, decisions, nil
		}
	}
	return l.fallback.Take(ctx, charges)
}

// takeLocally takes all of the charges from leases, or none.
func (l *leases) takeLocally(charges []store.Charge, now time.Time) (store.Receipt, []limit.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range charges {
		key := charges[i].Key
		if l.find(&charges[i], now) == nil || slices.ContainsFunc(charges[:i], func(other store.Charge) bool { return other.Key == key }) {
			return nil, nil
		}
	}
	if len(charges) == 0 {
		return nil, nil
	}
	r := &leaseReceipt{leases: l}
	r.parts = r.onePart[:0]
	decisions := r.oneDecision[:0]
	for i := range charges {
		h, n := l.keys[charges[i].Key].lease, charges[i].N
		h.left -= n
		h.takes++
		r.parts = append(r.parts, leasePart{of: h, n: n})
		for _, d := range h.decisions {
			d.Used -= h.left
			d.Remaining += h.left
			decisions = append(decisions, d)
		}
	}
	return r, decisions
}

// find returns the lease that a charge may be taken from, or nil.
func (l *leases) find(c *store.Charge, now time.Time) *lease {
	s := l.keys[c.Key]
	if s == nil || s.lease == nil || c.N < 0 || c.N > s.lease.left || !now.Before(s.lease.until) || !slices.Equal(c.Limits, s.lease.charge.Limits) {
		return nil
	}
	return s.lease
}

// countTakes counts takes that leases could not serve. It returns the charges whose keys should be
// leased, and the leases that are used up, which are over now.
func (l *leases) countTakes(charges []store.Charge, now time.Time) (wanted []store.Charge, spent []*lease) {
	if store.Validate(charges) != nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil
	}
	for i := range charges {
		c := &charges[i]
		s := l.keyState(c.Key)
		if now.Sub(s.since) >= l.term {
			s.since, s.takes, s.amount = now, 0, 0
		}
		s.takes++
		s.amount += c.N
		if h := s.lease; h != nil && (c.N > h.left || !slices.Equal(c.Limits, h.charge.Limits)) {
			l.retire(s)
			s.takes += h.takes
			s.amount += h.spent()
			spent = append(spent, h)
		}
		if slice := l.sliceSize(s, c); slice > 0 {
			s.acquiring = true
			l.running.Add(1)
			wanted = append(wanted, store.Charge{Key: c.Key, Limits: c.Limits, N: slice})
		}
	}
	return wanted, spent
}

// keyState returns the state of a key. If there are too many, it drops those of keys without a
// lease.
func (l *leases) keyState(key string) *leasedKey {
	if s := l.keys[key]; s != nil {
		return s
	}
	if len(l.keys) >= maxKeyStates {
		maps.DeleteFunc(l.keys, func(_ string, s *leasedKey) bool { return s.lease == nil && !s.acquiring })
	}
	s := &leasedKey{since: time.Now()}
	l.keys[key] = s
	return s
}

// sliceSize returns how much to lease of a key: about twice as much as was taken in a term, and no
// more than a part of the smallest limit. Zero means that a lease is not worth it.
func (l *leases) sliceSize(s *leasedKey, c *store.Charge) int64 {
	if s.lease != nil || s.acquiring || s.takes < hotTakes || len(c.Limits) == 0 || l.inDebt() {
		return 0
	}
	most := 2 * max(s.amount, c.N)
	for _, limit := range c.Limits {
		most = min(most, limit.Burst()/maxSlice)
		if l.term > limit.Period()/2 {
			return 0
		}
	}
	if most < 2*c.N {
		return 0
	}
	return most
}

// acquire acquires a lease, and reports whether it was granted.
func (l *leases) acquire(ctx context.Context, c store.Charge) bool {
	defer l.running.Done()
	until := time.Now().Add(l.term - l.term/8) // so that the end arrives before the server's own end of the lease
	name, decisions := l.grant(ctx, c)
	l.mu.Lock()
	s := l.keyState(c.Key)
	s.acquiring, s.since, s.takes, s.amount = false, time.Now(), 0, 0
	if name == "" {
		l.mu.Unlock()
		return false
	}
	h := &lease{name: name, charge: c, decisions: decisions, until: until, left: c.N, done: make(chan struct{})}
	h.timer = time.AfterFunc(time.Until(until), func() { l.expire(s, h) })
	s.lease = h
	closed := l.closed
	if closed {
		l.retire(s)
	}
	l.mu.Unlock()
	if closed {
		l.finish(h)
	}
	return !closed
}

// grant asks Redis for a lease, unless Redis does not know yet of everything that was admitted. It
// returns no name if there is none. In case Redis is lost next, leased amounts count as used.
func (l *leases) grant(ctx context.Context, c store.Charge) (name string, decisions []limit.Decision) {
	charges := []store.Charge{c}
	pending := l.ledgers.beginCall(charges, true)
	if !l.inDebt() {
		name, decisions, _ = l.remote.lease(ctx, c, l.term)
	}
	l.ledgers.endCall(charges, pending, decisions, name != "")
	return name, decisions
}

// expire ends a lease whose time is over, unless it has ended before.
func (l *leases) expire(s *leasedKey, h *lease) {
	l.mu.Lock()
	if l.closed || s.lease != h {
		l.mu.Unlock()
		return
	}
	l.retire(s)
	if h.takes < hotTakes {
		delete(l.keys, h.charge.Key) // not hot any more
	} else { // the next take acquires a lease again, if it comes soon
		s.since, s.takes, s.amount = time.Now(), hotTakes, h.spent()
	}
	l.mu.Unlock()
	l.finish(h)
}

// retire ends the lease of a key for this node. The caller then calls finish.
func (l *leases) retire(s *leasedKey) {
	s.lease.over = true
	s.lease.timer.Stop()
	s.lease = nil
	l.running.Add(1)
}

// finish tells the server what was spent of a lease. If that fails, the server charges all of it
// when its time is over.
func (l *leases) finish(h *lease) {
	defer l.running.Done()
	defer close(h.done)
	c := h.charge
	c.N = h.spent()
	h.charged, _ = l.remote.end(context.Background(), c, h.name)
}

// Settle implements [store.Store]. Amounts that were not used go back to their lease, or to the
// limits if the lease is over.
func (l *leases) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	receipt, ok := r.(*leaseReceipt)
	if !ok {
		return l.fallback.Settle(ctx, r, actual)
	}
	if receipt.leases != l || len(actual) != len(receipt.parts) {
		return store.ErrReceipt
	}
	if !receipt.settled.CompareAndSwap(false, true) {
		return nil
	}
	for i := range receipt.parts {
		p := &receipt.parts[i]
		if actual[i] < 0 || actual[i] == p.n || l.settleWithin(p, actual[i]) {
			continue
		}
		done, err := l.settleLate(ctx, p, actual[i])
		if done {
			p.n = actual[i]
		}
		if err != nil {
			receipt.settled.Store(false)
			return err
		}
	}
	return nil
}

// settleWithin settles a part within its lease, unless the lease is over or has not enough left.
func (l *leases) settleWithin(p *leasePart, actual int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if more := actual - p.n; !p.of.over && more <= p.of.left {
		p.of.left -= more
		p.n = actual
		return true
	}
	return false
}

// settleLate settles a part of a lease that is over, or has not enough left: what was used beyond
// it is a debt.
func (l *leases) settleLate(ctx context.Context, p *leasePart, actual int64) (done bool, err error) {
	if actual > p.n {
		if p.debt == nil {
			if p.debt, err = l.owe(ctx, p.of.charge); err != nil {
				return false, err
			}
		}
		err = l.fallback.Settle(ctx, p.debt, []int64{actual - p.n})
		return err == nil, err
	}
	select {
	case <-p.of.done:
	case <-ctx.Done():
		return false, fmt.Errorf("ratelimit: waiting for the end of a lease: %w", ctx.Err())
	}
	if p.of.charged == nil {
		return true, nil // the server has charged all of it
	}
	of := *p.of.charged
	of.N = p.n
	return l.remote.correct(ctx, []*chargeReceipt{&of}, []int64{actual}, false)
}

// Reset implements [store.Store]. Other nodes may use their leases until these end.
func (l *leases) Reset(ctx context.Context, prefix string) error {
	l.mu.Lock()
	ended := l.retireAll(prefix)
	l.mu.Unlock()
	l.finishAll(ended)
	return l.fallback.Reset(ctx, prefix)
}

// Close gives all leases back.
func (l *leases) Close() error {
	l.mu.Lock()
	l.closed = true
	ended := l.retireAll("")
	l.mu.Unlock()
	l.finishAll(ended)
	l.running.Wait()
	return l.fallback.Close()
}

// retireAll retires the leases of all keys that begin with prefix.
func (l *leases) retireAll(prefix string) (ended []*lease) {
	for key, s := range l.keys {
		if h := s.lease; h != nil && strings.HasPrefix(key, prefix) {
			l.retire(s)
			ended = append(ended, h)
		}
	}
	return ended
}

func (l *leases) finishAll(all []*lease) {
	var done sync.WaitGroup
	for _, h := range all {
		done.Go(func() { l.finish(h) })
	}
	done.Wait()
}
