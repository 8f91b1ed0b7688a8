package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// leases is the layer that leases slices of hot limits from Redis, and takes from them without asking
// it. A slice counts as used from the time at which it is leased, until the lease ends: then Redis is
// charged for what was taken from it, and the rest is given back. So limits are not exceeded, and
// meanwhile the other nodes have that much less.
type leases struct {
	*fallback
	remote *remote
	term   time.Duration

	keys sync.Map // from keys to *leasedKey

	mu       sync.Mutex // guards everything but taking from a lease
	keyCount int        // the number of keys
	closed   bool
	running  sync.WaitGroup // leases that are being acquired or given back

	// A take from several leases has multiKey locked for reading until it has all amounts or has
	// given them back. So no lease ends in between, which would charge for what no caller got.
	multiKey sync.RWMutex
}

const (
	maxSlice     = 16   // a lease is at most the smallest limit divided by this
	hotTakes     = 8    // a key with this many takes in a term is leased
	maxKeyStates = 8192 // the number of keys whose takes are counted
)

// leasedKey is what this node knows about one key. The lock of leases guards it, except the lease.
type leasedKey struct {
	key   string
	lease atomic.Pointer[lease] // nil if the key is not leased

	since     time.Time // the start of the term in which takes are counted
	takes     int64     // the number of takes in the term
	amount    int64     // the amount that was taken in the term
	acquiring bool      // a caller is acquiring a lease
}

// lease is a lease that this node has, or had.
type lease struct {
	name      string
	charge    store.Charge     // the slice
	decisions []limit.Decision // the decision of each limit when the slice was leased
	until     time.Time        // when the lease ends by this node's clock: earlier than by the server's
	timer     *time.Timer

	left  atomic.Int64 // what is left of the slice; below zero when the lease has ended
	takes atomic.Int64 // the number of takes from the lease

	spent   int64          // what was taken from the slice; valid when the lease has ended
	done    chan struct{}  // closed when the server was told what was spent
	charged *chargeReceipt // what the server has charged; nil if that is the whole slice, or unknown
}

// take takes n from the lease, if that much is left.
func (h *lease) take(n int64) bool {
	for {
		left := h.left.Load()
		if left < n {
			return false
		}
		if h.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

// give gives n back, unless the lease has ended.
func (h *lease) give(n int64) bool {
	for {
		left := h.left.Load()
		if left < 0 {
			return false
		}
		if h.left.CompareAndSwap(left, left+n) {
			return true
		}
	}
}

func newLeases(below *fallback, remote *remote, term time.Duration) *leases {
	return &leases{fallback: below, remote: remote, term: term}
}

// leaseReceipt is the receipt of a take from leases.
type leaseReceipt struct {
	leases  *leases
	parts   []leasePart // one for each charge
	settled atomic.Bool
	bookedOnce

	// The arrays of a receipt with one charge and one limit, which needs no others.
	onePart     [1]leasePart
	oneDecision [1]limit.Decision
}

// leasePart is what was taken from one lease. Only the settling goroutine uses it.
type leasePart struct {
	of   *lease
	n    int64
	debt store.Receipt // by which Redis is charged for what was used beyond n; nil if nothing was
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
	for _, h := range spent { // until a lease is given back, all of its slice counts as used
		select {
		case <-h.done:
		case <-ctx.Done():
		}
	}
	if len(wanted) > 0 && l.acquire(ctx, wanted) {
		if receipt, decisions := l.takeLocally(charges, time.Now()); receipt != nil {
			return receipt, decisions, nil
		}
	}
	return l.fallback.Take(ctx, charges)
}

// takeLocally takes all of the charges from leases, or none. Without a receipt, it has taken none.
func (l *leases) takeLocally(charges []store.Charge, now time.Time) (store.Receipt, []limit.Decision) {
	if len(charges) == 0 {
		return nil, nil
	}
	if len(charges) > 1 {
		l.multiKey.RLock()
		defer l.multiKey.RUnlock()
	}
	h := l.find(&charges[0], now)
	if h == nil {
		return nil, nil
	}
	r := &leaseReceipt{leases: l}
	r.parts = r.onePart[:0]
	decisions := r.oneDecision[:0:1]
	for i := range charges {
		c, twice := &charges[i], false
		if i > 0 {
			h = l.find(c, now)
			twice = slices.ContainsFunc(charges[:i], func(other store.Charge) bool { return other.Key == c.Key })
		}
		if h == nil || twice || !h.take(c.N) {
			for _, p := range r.parts {
				p.of.give(p.n)
			}
			return nil, nil
		}
		r.parts = append(r.parts, leasePart{of: h, n: c.N})
		left := h.left.Load()
		for _, d := range h.decisions {
			d.Used -= max(left, 0)
			d.Remaining += max(left, 0)
			decisions = append(decisions, d)
		}
	}
	for _, p := range r.parts {
		p.of.takes.Add(1)
	}
	return r, decisions
}

// find returns the lease that a charge may be taken from, or nil if there is none.
func (l *leases) find(c *store.Charge, now time.Time) *lease {
	s, ok := l.keys.Load(c.Key)
	if !ok {
		return nil
	}
	h := s.(*leasedKey).lease.Load()
	if h == nil || c.N < 0 || !now.Before(h.until) || !slices.Equal(c.Limits, h.charge.Limits) {
		return nil
	}
	return h
}

// countTakes counts takes that leases could not serve. It returns the slices that should be leased,
// and the leases that had too little left, which it has ended.
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
		if h := s.lease.Load(); h != nil && (c.N > h.left.Load() || !slices.Equal(c.Limits, h.charge.Limits)) {
			l.retire(s)
			s.takes += h.takes.Load()
			s.amount += h.spent
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

// keyState returns the state of a key. If there are too many states, it drops those of keys without
// a lease.
func (l *leases) keyState(key string) *leasedKey {
	if s, ok := l.keys.Load(key); ok {
		return s.(*leasedKey)
	}
	if l.keyCount >= maxKeyStates {
		l.keys.Range(func(key, value any) bool {
			if s := value.(*leasedKey); s.lease.Load() == nil && !s.acquiring {
				l.dropKey(s)
			}
			return true
		})
	}
	s := &leasedKey{key: key, since: time.Now()}
	l.keys.Store(key, s)
	l.keyCount++
	return s
}

func (l *leases) dropKey(s *leasedKey) {
	l.keys.Delete(s.key)
	l.keyCount--
}

// sliceSize returns how much to lease of a key: twice as much as was taken in the term, but no more
// than a part of the smallest limit. Zero means that the key should not be leased.
func (l *leases) sliceSize(s *leasedKey, c *store.Charge) int64 {
	if s.lease.Load() != nil || s.acquiring || s.takes < hotTakes || len(c.Limits) == 0 || l.inDebt() {
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

// acquire acquires leases of the given slices, and reports whether all were granted.
func (l *leases) acquire(ctx context.Context, wanted []store.Charge) bool {
	all := true
	for _, c := range wanted {
		all = l.acquireOne(ctx, c) && all
		l.running.Done()
	}
	return all
}

func (l *leases) acquireOne(ctx context.Context, c store.Charge) bool {
	until := time.Now().Add(l.term - l.term/8) // so that the node's message arrives before the server ends the lease itself
	name, decisions, granted := l.grant(ctx, c)
	l.mu.Lock()
	s := l.keyState(c.Key)
	s.acquiring = false
	s.since, s.takes, s.amount = time.Now(), 0, 0
	if granted && !l.closed {
		h := &lease{name: name, charge: c, decisions: decisions, until: until, done: make(chan struct{})}
		h.left.Store(c.N)
		h.timer = time.AfterFunc(time.Until(until), func() { l.expire(s, h) })
		s.lease.Store(h)
		l.mu.Unlock()
		return true
	}
	l.mu.Unlock()
	if granted {
		c.N = 0
		l.remote.end(context.Background(), c, name)
	}
	return false
}

// grant asks Redis for a lease, unless Redis must first be charged for what was admitted without it, by this
// node or another.
// The answer is also recorded, in case Redis is lost next: the slice counts as used.
func (l *leases) grant(ctx context.Context, c store.Charge) (name string, decisions []limit.Decision, granted bool) {
	charges := []store.Charge{c}
	pending := l.ledgers.beginCall(charges, true)
	if _, recovers := l.recovers(charges); !recovers && !l.inDebt() {
		name, decisions, _ = l.remote.lease(ctx, c, l.term)
	}
	granted = name != ""
	l.ledgers.endCall(charges, pending, decisions, granted)
	return name, decisions, granted
}

// expire ends a lease whose time has come, unless it has ended before.
func (l *leases) expire(s *leasedKey, h *lease) {
	l.mu.Lock()
	if l.closed || s.lease.Load() != h {
		l.mu.Unlock()
		return
	}
	l.retire(s)
	if h.takes.Load() < hotTakes {
		l.dropKey(s) // not hot any more
	} else { // the next take acquires a lease again, if it comes soon
		s.since, s.takes, s.amount = time.Now(), hotTakes, h.spent
	}
	l.mu.Unlock()
	l.finish(h)
}

// retire ends the lease of a key at this node. The caller must then call finish.
func (l *leases) retire(s *leasedKey) {
	h := s.lease.Swap(nil)
	h.timer.Stop()
	l.multiKey.Lock()
	h.spent = h.charge.N - h.left.Swap(-1)
	l.multiKey.Unlock()
	l.running.Add(1)
}

// finish tells the server what was spent of a lease. If that fails, the server charges the whole
// slice when the lease ends there.
func (l *leases) finish(h *lease) {
	defer l.running.Done()
	defer close(h.done)
	c := h.charge
	c.N = h.spent
	h.charged, _ = l.remote.end(context.Background(), c, h.name)
}

// Settle implements [store.Store]. Amounts that were not used go back to their lease, or to the
// limits if the lease has ended.
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
		more := actual[i] - p.n
		if actual[i] < 0 || more == 0 {
			continue
		}
		if more > 0 && p.of.take(more) || more < 0 && p.of.give(-more) {
			p.n = actual[i]
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

// settleLate settles a part of a lease that has ended, or has too little left. What was used beyond
// the part is a debt.
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
		return true, nil // the server has charged the whole slice
	}
	of := *p.of.charged
	of.N = p.n
	return l.remote.correct(ctx, settlement{takes: []*chargeReceipt{&of}, actual: []int64{actual}})
}

// Reset implements [store.Store]. Other nodes may take from their leases until these end.
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
	l.keys.Range(func(key, value any) bool {
		s := value.(*leasedKey)
		if h := s.lease.Load(); h != nil && strings.HasPrefix(s.key, prefix) {
			l.retire(s)
			ended = append(ended, h)
		}
		return true
	})
	return ended
}

func (l *leases) finishAll(all []*lease) {
	var done sync.WaitGroup
	for _, h := range all {
		done.Go(func() { l.finish(h) })
	}
	done.Wait()
}
