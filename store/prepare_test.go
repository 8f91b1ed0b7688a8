package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
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
	mu       sync.Mutex
	prepared map[string][]store.Charge
}

func newPreparedMemory(clock func() int64) *preparedMemory {
	return &preparedMemory{Memory: store.NewMemoryAt(clock), prepared: map[string][]store.Charge{}}
}

func (m *preparedMemory) prepare(charges []store.Charge) (ready []store.Charge, err error) {
	if err := store.Validate(charges); err != nil {
		return nil, err
	}
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

func (m *preparedMemory) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	ready, err := m.prepare(charges)
	if err != nil {
		return nil, nil, err
	}
	return m.Memory.Take(ctx, ready)
}

func (m *preparedMemory) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	ready, err := m.prepare(charges)
	if err != nil {
		return nil, err
	}
	return m.Memory.Peek(ctx, ready)
}

func TestPreparedMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		m := newPreparedMemory(clock)
		t.Cleanup(func() { m.Close() })
		return m
	})
}

// Prepare refuses what Validate does. Take and Peek refuse negative amounts and keys that are charged twice of charges
// that are prepared, too, and Spend refuses charges that are not.
func TestPrepareRefuses(t *testing.T) {
	if _, err := store.Prepare("key", []limit.Limit{{}}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("the zero limit: %v", err)
	}
	m := store.NewMemory()
	for says, charges := range map[string][]store.Charge{
		`-3 of "key"`:            {prepare(t, "key", -3, windows(1, 9)...)},
		`"key" is charged twice`: {prepare(t, "key", 3, windows(1, 9)...), prepare(t, "key", 3, windows(1, 9)...)},
	} {
		refused := func(what string, decisions []limit.Decision, err error) {
			t.Helper()
			if len(decisions) != 0 || !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %+v, %v; want %q", what, decisions, err, says)
			}
		}
		_, decisions, err := m.Take(t.Context(), charges)
		refused("take", decisions, err)
		decisions, err = m.Peek(t.Context(), charges)
		refused("peek", decisions, err)
	}
	for says, c := range map[string]store.Charge{
		`"key" is not prepared`: charge("key", 1),
		`-3 of "key"`:           prepare(t, "key", -3, windows(1, 9)...),
	} {
		said, allowed, err := m.Spend(t.Context(), []byte("key"), c, nil)
		if allowed || len(said) != 0 || !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("spend: %+v, %v, %v; want %q", said, allowed, err, says)
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d keys are held", m.Len())
	}
}

// What was prepared does not change with the slice of limits that it was prepared
// from.
func TestPrepareKeepsACopy(t *testing.T) {
	m := store.NewMemory()
	limits := windows(1, 1)
	c := prepare(t, "key", 1, limits...)
	limits[0] = windows(1, 5)[0]
	mustTakeOf(t, m, c)
	if r, d, err := m.Take(t.Context(), []store.Charge{c}); r != nil || err != nil {
		t.Errorf("the second of 1: %+v, %v", d, err)
	}
}

// mustTakeOf takes charges, which must be allowed.
func mustTakeOf(t *testing.T, m *store.Memory, charges ...store.Charge) store.Receipt {
	t.Helper()
	r, d, err := m.Take(t.Context(), charges)
	if r == nil || err != nil {
		t.Fatalf("take %+v: %+v, %v", charges, d, err)
	}
	return r
}

// mustSettle settles a take.
func mustSettle(t *testing.T, m *store.Memory, r store.Receipt, actual ...int64) {
	t.Helper()
	if err := m.Settle(t.Context(), r, actual); err != nil {
		t.Fatal(err)
	}
}

// usedOf returns how much is used of the first limit of a charge.
func usedOf(t *testing.T, m *store.Memory, c store.Charge) int64 {
	t.Helper()
	d, err := m.Peek(t.Context(), []store.Charge{c})
	if err != nil {
		t.Fatal(err)
	}
	return d[0].Used
}

// A prepared charge may be used with several stores, at a time.
func TestPreparedForSeveralStores(t *testing.T) {
	const stores, takes = 3, 500
	c := prepare(t, "p/a/requests", 2, windows(3, 1<<40)...)
	var all sync.WaitGroup
	var list [stores]*store.Memory
	for i := range list {
		list[i] = store.NewMemory()
		for range 2 {
			all.Go(func() {
				for range takes {
					r, _, err := list[i].Take(t.Context(), []store.Charge{c})
					if r == nil || err != nil {
						t.Error(r, err)
					}
					list[i].Settle(t.Context(), r, []int64{1})
				}
			})
		}
	}
	all.Wait()
	for i, m := range list {
		if used := usedOf(t, m, c); used != 2*takes {
			t.Errorf("store %d has counted %d; want %d", i, used, 2*takes)
		}
	}
}

// A prepared charge finds its key again, whatever has happened to it meanwhile.
func TestPreparedKeyIsFoundAgain(t *testing.T) {
	now := time.Now().UnixNano()
	minute := limit.PerMinute(10).Using(limit.SlidingLog)
	for _, test := range []struct {
		name  string
		after func(t *testing.T, m *store.Memory)
		used  int64 // once 1 more is taken
	}{
		{"nothing", func(t *testing.T, m *store.Memory) {}, 4},
		{"a reset", func(t *testing.T, m *store.Memory) { m.Reset(t.Context(), "") }, 1},
		{"a reset and a take by name", func(t *testing.T, m *store.Memory) {
			m.Reset(t.Context(), "")
			mustTake(t, m, "key", 5, minute)
		}, 6},
		{"a put", func(t *testing.T, m *store.Memory) {
			var a limit.Account
			a.Take([]limit.Limit{minute}, now, 7)
			if err := m.Put("key", &a); err != nil {
				t.Error(err)
			}
		}, 8},
		{"a minute and a sweep", func(t *testing.T, m *store.Memory) {
			now += int64(time.Minute)
			m.Sweep()
			if m.Len() != 0 {
				t.Errorf("%d keys are held", m.Len())
			}
		}, 1},
		{"a minute, a sweep and a take by name", func(t *testing.T, m *store.Memory) {
			now += int64(time.Minute)
			m.Sweep()
			mustTake(t, m, "key", 2, minute)
		}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := store.NewMemoryAt(func() int64 { return now })
			c := prepare(t, "key", 3, minute)
			other := prepare(t, "key", 1, minute)
			usedOf(t, m, other) // before the key is known
			mustTakeOf(t, m, c)
			usedOf(t, m, other)
			test.after(t, m)
			mustTakeOf(t, m, other)
			if used := usedOf(t, m, c); used != test.used || usedOf(t, m, other) != used || m.Len() != 1 {
				t.Errorf("%d are used, %d by another that was prepared, of %d keys; want %d of 1", used, usedOf(t, m, other), m.Len(), test.used)
			}
		})
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

// A prepared charge whose key or limits were changed is one of these: a store may add a prefix to the keys of another.
func TestPreparedChargeThatIsChanged(t *testing.T) {
	m := store.NewMemory()
	c, err := store.Prepare("a", []limit.Limit{limit.PerMinute(1)})
	if err != nil {
		t.Fatal(err)
	}
	c.N = 1
	other, more, without := c, c, c
	other.Key = "b"
	more.Key, more.Limits = "c", append(slices.Clone(c.Limits), limit.PerHour(1))
	without.Key, without.Limits = "d", nil
	if r, said, err := m.Take(t.Context(), []store.Charge{c, other, more, without}); r == nil || err != nil || len(said) != 4 {
		t.Fatalf("%v, %v", said, err)
	}
	if keys, err := m.Keys(t.Context(), ""); err != nil || !slices.Equal(keys, []string{"a", "b", "c"}) {
		t.Errorf("%v are charged: %v", keys, err)
	}
	for _, c := range []store.Charge{c, other, more} {
		if said, err := m.Peek(t.Context(), []store.Charge{c}); err != nil || len(said) != len(c.Limits) || store.Allowed(said) {
			t.Errorf("%s: %v, %v", c.Key, said, err)
		}
	}
	more.Limits = []limit.Limit{{}}
	if _, _, err := m.Take(t.Context(), []store.Charge{more}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("limits that were not checked: %v", err)
	}
}
