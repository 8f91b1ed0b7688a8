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

// sim is a stand-in for Redis, with a clock that stands still until it is moved.
type sim struct {
	at       atomic.Int64
	mu       sync.Mutex
	accounts map[string]*limit.Account
}

func newSim() *sim {
	s := &sim{accounts: map[string]*limit.Account{}}
	s.at.Store(time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC).UnixNano())
	return s
}

func (s *sim) now() int64           { return s.at.Load() }
func (s *sim) pass(d time.Duration) { s.at.Add(int64(d)) }

func (s *sim) of(charges []store.Charge) (list []accounts.Charge) {
	for _, c := range charges {
		if s.accounts[c.Key] == nil {
			s.accounts[c.Key] = new(limit.Account)
		}
		list = append(list, accounts.Charge{Account: s.accounts[c.Key], Limits: c.Limits, N: c.N})
	}
	return list
}

// wire is one node's way to it.
type wire struct {
	*sim
	lost    atomic.Bool
	without atomic.Pointer[string] // keys that begin with it are lost
	mute    atomic.Bool            // what it settles is done, and its answers are lost
	asked   atomic.Int64

	// answering is called between that a call is done and that it is answered. Its
	// error is that it is not. May be nil.
	answering func(step string, charges []store.Charge) error
}

type simReceipt struct {
	charges  []store.Charge
	receipts []limit.Receipt
	settled  bool
}

// fails returns why a call for keys cannot be answered.
func (w *wire) fails(charges []store.Charge) error {
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

func (w *wire) answers(step string, charges []store.Charge) error {
	if w.answering == nil {
		return nil
	}
	return w.answering(step, charges)
}

func (w *wire) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
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

func (w *wire) owe(ctx context.Context, charge store.Charge) (store.Receipt, error) {
	charges := []store.Charge{charge}
	if err := w.fails(charges); err != nil {
		return nil, err
	}
	if err := w.answers("owe", charges); err != nil {
		return nil, err
	}
	return &simReceipt{charges: charges, receipts: []limit.Receipt{{At: w.now()}}}, nil
}

func (w *wire) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	held, ok := r.(*simReceipt)
	if !ok {
		return store.ErrReceipt
	}
	if err := w.fails(held.charges); err != nil {
		return err
	}
	w.mu.Lock()
	if !held.settled {
		accounts.Settle(w.of(held.charges), held.receipts, actual, w.now())
	}
	held.settled = true
	w.mu.Unlock()
	if w.mute.Load() {
		return fmt.Errorf("%w: no answer", ErrLost)
	}
	return w.answers("settle", held.charges)
}

func (w *wire) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := w.fails(charges); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return accounts.Peek(w.of(charges), w.now()), nil
}

func (w *wire) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
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

func (w *wire) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := w.fails(nil); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Sorted(maps.Keys(w.accounts))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) }), nil
}

func (w *wire) Reset(ctx context.Context, prefix string) error {
	if err := w.fails(nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.accounts, func(key string, _ *limit.Account) bool { return strings.HasPrefix(key, prefix) })
	return nil
}

func (w *wire) Close() error { return nil }

// fleetNode is one node of a fleet over a stand-in for Redis.
type fleetNode struct {
	*fallback
	wire *wire
}

func (f *fleetNode) String() string {
	p, _ := f.share()
	return fmt.Sprintf("%d of %d", p.rank, p.nodes)
}

// nodesAt returns nodes that have heard nothing but this node's place.
func nodesAt(p share) *nodes {
	n := &nodes{stop: func() {}, done: make(chan struct{}), withdraw: func(context.Context) error { return nil }}
	close(n.done)
	n.current.Store(&p)
	return n
}

// newFleetNode returns the node at a place. What it owes is charged when the
// test says, and not in the background.
func newFleetNode(s *sim, mode StoreLoss, p share, observer func(Event)) *fleetNode {
	w := &wire{sim: s}
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

// left returns what is left of a key's limit in the stand-in itself.
func (s *sim) left(t testing.TB, key string, l limit.Limit) int64 {
	t.Helper()
	decisions, err := (&wire{sim: s}).Peek(t.Context(), []store.Charge{{Key: key, Limits: []limit.Limit{l}}})
	if err != nil {
		t.Fatal(err)
	}
	return decisions[0].Remaining
}
