package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// preparedMemory is a Memory whose charges are prepared, once for each key and
// limits.
type preparedMemory struct {
	*store.Memory
	closed atomic.Bool // which SettleHold need not say

	mu       sync.Mutex
	prepared map[string][]store.Charge
}

func newPreparedMemory(clock func() int64) *preparedMemory {
	return &preparedMemory{Memory: store.NewMemoryAt(clock), prepared: map[string][]store.Charge{}}
}

func (m *preparedMemory) Close() error {
	m.closed.Store(true)
	return m.Memory.Close()
}

func (m *preparedMemory) prepare(charges []store.Charge) (ready []store.Charge, err error) {
	for _, c := range charges {
		n := c.N
		if c, err = m.prepareOne(c); err != nil {
			return nil, err
		}
		c.N = n
		ready = append(ready, c)
	}
	return ready, nil
}

func (m *preparedMemory) prepareOne(c store.Charge) (store.Charge, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.prepared[c.Key] {
		if slices.Equal(known.Limits, c.Limits) {
			return known, nil
		}
	}
	ready, err := store.Prepare(c.Key, c.Limits)
	m.prepared[c.Key] = append(m.prepared[c.Key], ready)
	return ready, err
}

// preparedReceipt is the Hold of a take.
type preparedReceipt struct {
	store   *store.Memory
	hold    store.Hold
	charges int
	settled atomic.Bool
}

func (m *preparedMemory) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	ready, err := m.prepare(charges)
	if err != nil {
		return nil, nil, err
	}
	r := &preparedReceipt{store: m.Memory, charges: len(charges)}
	decisions, allowed, err := m.TakeInto(ctx, ready, nil, &r.hold)
	if !allowed {
		return nil, decisions, err
	}
	return r, decisions, err
}

func (m *preparedMemory) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	ready, err := m.prepare(charges)
	if err != nil {
		return nil, err
	}
	decisions, _, err := m.PeekInto(ctx, ready, nil)
	return decisions, err
}

func (m *preparedMemory) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	receipt, ok := r.(*preparedReceipt)
	if !ok || receipt.store != m.Memory || receipt.charges != len(actual) {
		return store.ErrReceipt
	}
	if m.closed.Load() {
		return store.ErrClosed
	}
	if receipt.settled.CompareAndSwap(false, true) {
		m.SettleHold(&receipt.hold, actual)
	}
	return nil
}

func TestPreparedMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		m := newPreparedMemory(clock)
		t.Cleanup(func() { m.Close() })
		return m
	})
}

// Prepare refuses what Validate does, and TakeInto what is not prepared.
func TestPrepareRefuses(t *testing.T) {
	if _, err := store.Prepare("key", []limit.Limit{{}}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("the zero limit: %v", err)
	}
	m := store.NewMemory()
	var h store.Hold
	if _, allowed, err := m.TakeInto(t.Context(), []store.Charge{charge("key", 1)}, nil, &h); allowed || !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a take of what is not prepared: %v, %v", allowed, err)
	}
	if _, allowed, err := m.PeekInto(t.Context(), []store.Charge{charge("key", 1)}, nil); allowed || !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a peek at what is not prepared: %v, %v", allowed, err)
	}
}

// Put replaces what a key has used, and keeps a copy.
func TestPut(t *testing.T) {
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	minute := limit.PerMinute(10).Using(limit.SlidingLog)
	mustTake(t, m, "key", 3, minute)
	mustTake(t, m, "key too", 3, minute)
	var a limit.Account
	a.Take([]limit.Limit{minute}, now-int64(time.Second), 7)
	if err := m.Put("key", &a); err != nil {
		t.Fatal(err)
	}
	a.Take([]limit.Limit{minute}, now, 1)
	for key, want := range map[string]int64{"key": 3, "key too": 7} {
		d, err := m.Peek(t.Context(), []store.Charge{charge(key, 1, minute)})
		if err != nil || d[0].Remaining != want {
			t.Errorf("%s: %+v, %v; want %d left", key, d, err, want)
		}
	}
	if err := m.Put("key", new(limit.Account)); err != nil {
		t.Fatal(err)
	}
	if d, err := m.Peek(t.Context(), []store.Charge{charge("key", 1, minute)}); err != nil || d[0].Remaining != 10 {
		t.Errorf("an account that has used nothing was put: %+v, %v", d, err)
	}
	m.Close()
	if err := m.Put("key", &a); !errors.Is(err, store.ErrClosed) {
		t.Errorf("put into a store that is closed: %v", err)
	}
}
