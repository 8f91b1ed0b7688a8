package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// leases lets this node spend slices of limits by itself. A slice is taken from
// the limit before any of it is spent, and counts as used until what was spent of
// it is charged and the rest given back. So nothing overshoots, and while it lasts
// the others have that much less.
type leases struct {
	below  *loss
	remote *remote
	term   time.Duration

	mu     sync.Mutex
	closed bool
	spaces map[string]*space
	ending sync.WaitGroup
}

const (
	leaseShare = 16   // a lease is at most such a part of the smallest limit
	leaseHeat  = 8    // takes of a key in a term, from which on it is leased
	mostSpaces = 8192 // keys that are watched
)

// space is what this node knows of one key. The lock of leases guards it.
type space struct {
	key    string
	since  time.Time // of the term in which it counts
	takes  int       // in it
	amount int64     // taken in it
	asking bool      // somebody asks for a lease
	held   *held     // nil: none
}

// held is a lease that this node has, or had.
type held struct {
	name      string
	charge    store.Charge     // what was set aside
	decisions []limit.Decision // on it, by limit
	until     time.Time        // by this node's clock: earlier than by the server's
	left      int64
	timer     *time.Timer

	over bool          // nothing of it may be spent any more
	done chan struct{} // closed when the server has heard of that
	paid *taken        // what it was charged by then; nil: all of it, or it is not known
}

func newLeases(below *loss, remote *remote, term time.Duration) *leases {
	return &leases{below: below, remote: remote, term: term, spaces: map[string]*space{}}
}

// leaseReceipt is a receipt of what was taken from leases. The lock of leases
// guards it.
type leaseReceipt struct {
	leases  *leases
	parts   []part // of each charge
	settled bool
}

// part is what was taken from a lease.
type part struct {
	of   *held
	n    int64
	debt store.Receipt // of what it used beyond, while that is not charged
}

// Take is [store.Store]'s.
func (l *leases) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if ctx.Err() != nil {
		return l.below.Take(ctx, charges)
	}
	now := time.Now()
	l.mu.Lock()
	receipt, decisions := l.spend(charges, now)
	if receipt != nil {
		l.mu.Unlock()
		return receipt, decisions, nil
	}
	wanted, spent := l.watch(charges, now)
	l.mu.Unlock()
	for _, h := range spent {
		go l.finish(h)
	}
	for _, h := range spent { // or what is left of it would be in the way
		select {
		case <-h.done:
		case <-ctx.Done():
		}
	}
	if len(wanted) > 0 && l.ask(ctx, wanted) {
		l.mu.Lock()
		receipt, decisions = l.spend(charges, time.Now())
		l.mu.Unlock()
		if receipt != nil {
			return receipt, decisions, nil
		}
	}
	return l.below.Take(ctx, charges)
}

// spend takes all of the charges from leases, or none.
func (l *leases) spend(charges []store.Charge, now time.Time) (store.Receipt, []limit.Decision) {
	limits := 0
	for i := range charges {
		c := &charges[i]
		s := l.spaces[c.Key]
		if s == nil || s.held == nil || c.N < 0 || c.N > s.held.left || !now.Before(s.held.until) || !slices.Equal(c.Limits, s.held.charge.Limits) {
			return nil, nil
		}
		for _, other := range charges[:i] {
			if other.Key == c.Key {
				return nil, nil
			}
		}
		limits += len(c.Limits)
	}
	if len(charges) == 0 {
		return nil, nil
	}
	r := &leaseReceipt{leases: l, parts: make([]part, len(charges))}
	decisions := make([]limit.Decision, 0, limits)
	for i := range charges {
		s := l.spaces[charges[i].Key]
		h := s.held
		h.left -= charges[i].N
		s.takes++
		s.amount += charges[i].N
		r.parts[i] = part{of: h, n: charges[i].N}
		for _, d := range h.decisions {
			d.Remaining += h.left
			decisions = append(decisions, d)
		}
	}
	return r, decisions
}

// watch counts takes that leases could not serve. It returns the charges whose
// keys should be leased, and the leases that are spent, which are over now.
func (l *leases) watch(charges []store.Charge, now time.Time) (wanted []store.Charge, spent []*held) {
	if l.closed || store.Validate(charges) != nil {
		return nil, nil
	}
	for i := range charges {
		c := &charges[i]
		s := l.spaces[c.Key]
		if s == nil {
			l.makeRoom()
			s = &space{key: c.Key, since: now}
			l.spaces[c.Key] = s
		}
		if now.Sub(s.since) >= l.term {
			s.since, s.takes, s.amount = now, 0, 0
		}
		s.takes++
		s.amount += c.N
		if h := s.held; h != nil && (c.N > h.left || !slices.Equal(c.Limits, h.charge.Limits)) {
			l.retire(s)
			spent = append(spent, h)
		}
		if slice := l.slice(s, c); slice > 0 {
			s.asking = true
			l.ending.Add(1)
			wanted = append(wanted, store.Charge{Key: c.Key, Limits: c.Limits, N: slice})
		}
	}
	return wanted, spent
}

// slice returns how much to lease of a key: about twice as much as was taken in a
// term, and no more than a part of the smallest limit. Zero: it is not worth it.
func (l *leases) slice(s *space, c *store.Charge) int64 {
	if s.held != nil || s.asking || s.takes < leaseHeat || len(c.Limits) == 0 || l.below.owes() {
		return 0
	}
	most := 2 * max(s.amount, c.N)
	for _, limit := range c.Limits {
		most = min(most, limit.Burst()/leaseShare)
		if l.term > limit.Period()/2 {
			return 0
		}
	}
	if most < 2*c.N {
		return 0
	}
	return most
}

// makeRoom forgets keys that are not leased, if there are very many.
func (l *leases) makeRoom() {
	if len(l.spaces) >= mostSpaces {
		maps.DeleteFunc(l.spaces, func(_ string, s *space) bool { return s.held == nil && !s.asking })
	}
}

// ask asks for leases. It returns whether all were granted.
func (l *leases) ask(ctx context.Context, wanted []store.Charge) bool {
	all := true
	for _, c := range wanted {
		all = l.askOne(ctx, c) && all
		l.ending.Done()
	}
	return all
}

func (l *leases) askOne(ctx context.Context, c store.Charge) bool {
	until := time.Now().Add(l.term - l.term/8) // so that its end arrives before it is over there
	name, decisions, err := l.remote.lease(ctx, c, l.term)
	l.mu.Lock()
	s := l.spaces[c.Key]
	s.asking = false
	s.since, s.takes, s.amount = time.Now(), 0, 0
	granted := err == nil && name != ""
	if granted && !l.closed {
		h := &held{name: name, charge: c, decisions: decisions, until: until, left: c.N, done: make(chan struct{})}
		h.timer = time.AfterFunc(time.Until(until), func() { l.expire(s, h) })
		s.held = h
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

// expire ends a lease whose time is over, unless it was before.
func (l *leases) expire(s *space, h *held) {
	l.mu.Lock()
	if h.over || l.closed {
		l.mu.Unlock()
		return
	}
	l.retire(s)
	if s.takes < leaseHeat {
		delete(l.spaces, s.key) // it has cooled down
	} else {
		s.since, s.takes = time.Now(), leaseHeat // so the next take leases it again, if it comes soon
	}
	l.mu.Unlock()
	l.finish(h)
}

// retire lets nobody spend the lease of a space any more. It is to be finished.
func (l *leases) retire(s *space) {
	s.held.over = true
	s.held.timer.Stop()
	s.held = nil
	l.ending.Add(1)
}

// finish tells the server what was spent of a lease. Where that fails, the server
// charges all of it when its time is over.
func (l *leases) finish(h *held) {
	defer l.ending.Done()
	defer close(h.done)
	c := h.charge
	c.N -= h.left
	h.paid, _ = l.remote.end(context.Background(), c, h.name)
}

// Settle is [store.Store]'s. What was not used goes back to the lease that it was
// taken from, or to the limits if that is over.
func (l *leases) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	receipt, ok := r.(*leaseReceipt)
	if !ok {
		return l.below.Settle(ctx, r, actual)
	}
	if receipt.leases != l || len(actual) != len(receipt.parts) {
		return store.ErrReceipt
	}
	for _, i := range l.settle(receipt, actual) {
		done, err := l.settleLate(ctx, &receipt.parts[i], actual[i])
		if done {
			l.mu.Lock()
			receipt.parts[i].n = actual[i]
			l.mu.Unlock()
		}
		if err != nil {
			l.mu.Lock()
			receipt.settled = false
			l.mu.Unlock()
			return err
		}
	}
	return nil
}

// settle settles what leases can, and returns the places of what they cannot.
func (l *leases) settle(r *leaseReceipt, actual []int64) (late []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.settled {
		return nil
	}
	r.settled = true
	for i := range r.parts {
		p := &r.parts[i]
		switch more := actual[i] - p.n; {
		case actual[i] < 0 || more == 0:
		case p.of.over || more > p.of.left:
			late = append(late, i)
		default:
			p.of.left -= more
			p.n = actual[i]
		}
	}
	return late
}

// settleLate settles what was taken from a lease that is over, or has not enough
// left: what was used beyond is a debt.
func (l *leases) settleLate(ctx context.Context, p *part, actual int64) (done bool, err error) {
	if actual > p.n {
		if p.debt == nil {
			nothing := []store.Charge{{Key: p.of.charge.Key, Limits: p.of.charge.Limits}}
			if p.debt, _, err = l.below.Take(ctx, nothing); err != nil {
				return false, err
			}
		}
		err = l.below.Settle(ctx, p.debt, []int64{actual - p.n})
		return err == nil, err
	}
	select {
	case <-p.of.done:
	case <-ctx.Done():
		return false, fmt.Errorf("ratelimit: waiting for the end of a lease: %w", ctx.Err())
	}
	if p.of.paid == nil {
		return true, nil // the server has charged all of it
	}
	of := *p.of.paid
	of.N = p.n
	return l.remote.correct(ctx, []*taken{&of}, []int64{actual}, false)
}

// Peek is [store.Store]'s. What this node has leased counts as used.
func (l *leases) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	return l.below.Peek(ctx, charges)
}

// Read returns what was used without what is leased.
func (l *leases) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	return l.below.Read(ctx, keys...)
}

// Keys returns all keys that begin with prefix.
func (l *leases) Keys(ctx context.Context, prefix string) ([]string, error) {
	return l.below.Keys(ctx, prefix)
}

// Reset is [store.Store]'s. What other nodes have leased they may spend until it ends.
func (l *leases) Reset(ctx context.Context, prefix string) error {
	l.mu.Lock()
	var ended []*held
	for key, s := range l.spaces {
		if s.held != nil && strings.HasPrefix(key, prefix) {
			ended = append(ended, s.held)
			l.retire(s)
		}
	}
	l.mu.Unlock()
	l.finishAll(ended)
	return l.below.Reset(ctx, prefix)
}

// Close gives all leases back.
func (l *leases) Close() error {
	l.mu.Lock()
	var ended []*held
	if !l.closed {
		l.closed = true
		for _, s := range l.spaces {
			if s.held != nil {
				ended = append(ended, s.held)
				l.retire(s)
			}
		}
	}
	l.mu.Unlock()
	l.finishAll(ended)
	l.ending.Wait()
	return l.below.Close()
}

func (l *leases) finishAll(all []*held) {
	var done sync.WaitGroup
	for _, h := range all {
		done.Go(func() { l.finish(h) })
	}
	done.Wait()
}
