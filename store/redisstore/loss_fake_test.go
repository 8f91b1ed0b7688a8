package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fakeRedis stands in for Redis, with a clock that stands still until it is moved.
type fakeRedis struct {
	at       atomic.Int64
	mu       sync.Mutex
	accounts map[string]*limit.Account
}

func newFakeRedis() *fakeRedis {
	s := &fakeRedis{accounts: map[string]*limit.Account{}}
	s.at.Store(time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC).UnixNano())
	return s
}

func (s *fakeRedis) now() int64           { return s.at.Load() }
func (s *fakeRedis) pass(d time.Duration) { s.at.Add(int64(d)) }

func (s *fakeRedis) of(charges []store.Charge) (list []accounts.Charge) {
	for _, c := range charges {
		if s.accounts[c.Key] == nil {
			s.accounts[c.Key] = new(limit.Account)
		}
		list = append(list, accounts.Charge{Account: s.accounts[c.Key], Limits: c.Limits, N: c.N})
	}
	return list
}

// fakeConn is one node's connection to it.
type fakeConn struct {
	*fakeRedis
	lost    atomic.Bool
	without atomic.Pointer[string] // keys that begin with it are lost
	mute    atomic.Bool            // settlements happen, and their answers get lost
	asked   atomic.Int64

	// answering is called after a call has happened and before it is answered. If it returns an
	// error, the answer gets lost. It may be nil.
	answering func(step string, charges []store.Charge) error
}

type simReceipt struct {
	charges  []store.Charge
	receipts []limit.Receipt
	settled  bool
}

// fails returns why a call for keys cannot be answered.
func (w *fakeConn) fails(charges []store.Charge) error {
	w.asked.Add(1)
	if w.lost.Load() {
		return fmt.Errorf("%w: the wire is cut", ErrLost)
	}
	for _, c := range charges {
		if prefix := w.without.Load(); prefix != nil && strings.HasPrefix(c.Key, *prefix) {
			return fmt.Errorf("%w: %q is gone", ErrLost, c.Key)
		}
	}
	return nil
}

func (w *fakeConn) answers(step string, charges []store.Charge) error {
	if w.answering == nil {
		return nil
	}
	return w.answering(step, charges)
}

func (w *fakeConn) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := w.fails(charges); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	receipts, decisions := accounts.Take(w.of(charges), w.now())
	w.mu.Unlock()
	if err := w.answers("take", charges); err != nil {
		return nil, nil, err
	}
	if receipts == nil {
		return nil, decisions, nil
	}
	return &simReceipt{charges: slices.Clone(charges), receipts: receipts}, decisions, nil
}

func (w *fakeConn) owe(ctx context.Context, charge store.Charge) (store.Receipt, error) {
	charges := []store.Charge{charge}
	if err := w.fails(charges); err != nil {
		return nil, err
	}
	if err := w.answers("owe", charges); err != nil {
		return nil, err
	}
	return &simReceipt{charges: charges, receipts: []limit.Receipt{{At: w.now()}}}, nil
}

func (w *fakeConn) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	taken, ok := r.(*simReceipt)
	if !ok {
		return store.ErrReceipt
	}
	if err := w.fails(taken.charges); err != nil {
		return err
	}
	w.mu.Lock()
	if !taken.settled {
		accounts.Settle(w.of(taken.charges), taken.receipts, actual, w.now())
	}
	taken.settled = true
	w.mu.Unlock()
	if w.mute.Load() {
		return fmt.Errorf("%w: no answer", ErrLost)
	}
	return w.answers("settle", taken.charges)
}

func (w *fakeConn) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := w.fails(charges); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return accounts.Peek(w.of(charges), w.now()), nil
}

func (w *fakeConn) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	var charges []store.Charge
	for _, key := range keys {
		charges = append(charges, store.Charge{Key: key})
	}
	if err := w.fails(charges); err != nil {
		return nil, 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*limit.Account
	for _, c := range w.of(charges) {
		all = append(all, c.Account)
	}
	return all, w.now(), nil
}

func (w *fakeConn) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := w.fails(nil); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Sorted(maps.Keys(w.accounts))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

func (w *fakeConn) Reset(ctx context.Context, prefix string) error {
	if err := w.fails(nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.accounts, func(key string, _ *limit.Account) bool { return strings.HasPrefix(key, prefix) })
	return nil
}

func (w *fakeConn) Close() error { return nil }

// fleetNode is one node of a fleet over a fake Redis.
type fleetNode struct {
	*fallback
	wire *fakeConn
}

func (f *fleetNode) String() string {
	p, _ := f.share()
	return fmt.Sprintf("%d of %d", p.rank, p.nodes)
}

// nodesAt returns nodes that know nothing but this node's share.
func nodesAt(p share) *nodes {
	n := &nodes{stop: func() {}, done: make(chan struct{}), withdraw: func(context.Context) error { return nil }}
	close(n.done)
	n.current.Store(&p)
	return n
}

// newFleetNode returns the node with a share. What it owes is charged when the test says so, and
// not in the background.
func newFleetNode(s *fakeRedis, mode StoreLoss, p share, observer func(store.Event)) *fleetNode {
	w := &fakeConn{fakeRedis: s}
	var n *nodes
	if mode == Share {
		n = nodesAt(p)
	}
	l := newFallback(w, mode, n, observer)
	l.clock = s.now
	l.sweeper.closed = true
	return &fleetNode{l, w}
}

// take takes n of a key, which must not fail.
func (f *fleetNode) take(t testing.TB, key string, n int64, limits ...limit.Limit) (store.Receipt, []limit.Decision) {
	t.Helper()
	r, decisions, err := f.Take(t.Context(), []store.Charge{{Key: key, Limits: limits, N: n}})
	if err != nil {
		t.Fatalf("take %d of %s: %v", n, key, err)
	}
	if allowed := store.Allowed(decisions); (r != nil) != allowed {
		t.Fatalf("take %d of %s: allowed is %v, the receipt %v", n, key, allowed, r)
	}
	return r, decisions
}

// left returns what is left of a key's limit in the fake Redis itself.
func (s *fakeRedis) left(t testing.TB, key string, l limit.Limit) int64 {
	t.Helper()
	decisions, err := (&fakeConn{fakeRedis: s}).Peek(t.Context(), []store.Charge{{Key: key, Limits: []limit.Limit{l}}})
	if err != nil {
		t.Fatal(err)
	}
	return decisions[0].Remaining
}
