package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

var _ store.Store = (*store.Memory)(nil)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		m := store.NewMemoryAt(clock)
		t.Cleanup(func() { m.Close() })
		return m
	})
}

// mustTake takes n of a key, which must be allowed.
func mustTake(t *testing.T, m *store.Memory, key string, n int64, limits ...limit.Limit) store.Receipt {
	t.Helper()
	r, d, err := m.Take(t.Context(), []store.Charge{charge(key, n, limits...)})
	if err != nil || r == nil {
		t.Fatalf("take %d of %q: %+v, %v", n, key, d, err)
	}
	return r
}

// NewMemory's clock is the wall clock as it was, and moves on by itself.
func TestMemoryClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory()
		day := limit.PerDay(3).ResetAt(0, nil)
		mustTake(t, m, "key", 3, day)
		left := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
		_, d, err := m.Take(t.Context(), []store.Charge{charge("key", 1, day)})
		if err != nil || d[0].Allowed || d[0].RetryAfter != left {
			t.Fatalf("%v before midnight: %+v, %v", left, d, err)
		}
		time.Sleep(left)
		mustTake(t, m, "key", 3, day)
	})
}

// What is full is forgotten as other keys come, so the store holds little more
// than what is in use.
func TestMemoryForgets(t *testing.T) {
	const inUse = 200
	l := limit.New(1, inUse)
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	most := 0
	for i := range 100 * inUse {
		mustTake(t, m, fmt.Sprint(i), 1, l)
		now++
		if i%inUse == 0 {
			most = max(most, m.Len())
		}
	}
	if most < inUse || most > 4*inUse {
		t.Errorf("it held up to %d keys, of which %d were in use", most, inUse)
	}
}

// What is in use is never forgotten, whatever comes and goes.
func TestMemoryKeepsWhatIsInUse(t *testing.T) {
	const keys = 100
	hour, brief := limit.PerHour(1), limit.New(1, 1)
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	for i := range keys {
		mustTake(t, m, fmt.Sprint("kept ", i), 1, hour)
	}
	for i := range 100 * keys {
		mustTake(t, m, fmt.Sprint("brief ", i), 1, brief)
		now++
	}
	for i := range keys {
		if r, d, err := m.Take(t.Context(), []store.Charge{charge(fmt.Sprint("kept ", i), 1, hour)}); r != nil || err != nil {
			t.Fatalf("key %d was forgotten: %+v, %v", i, d, err)
		}
	}
}

// Takes of nothing, takes under no limit, settles and peeks leave little behind.
func TestMemoryHoldsNothingForNothing(t *testing.T) {
	l := limit.PerMinute(10)
	m := store.NewMemory()
	for i := range 3000 {
		key := fmt.Sprint(i)
		if _, err := m.Peek(t.Context(), []store.Charge{charge(key, 1, l)}); err != nil {
			t.Fatal(err)
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d keys after nothing but peeks", m.Len())
	}
	for i := range 3000 {
		for _, r := range []store.Receipt{mustTake(t, m, fmt.Sprint("a", i), 0, l), mustTake(t, m, fmt.Sprint("b", i), 5)} {
			if err := m.Settle(t.Context(), r, []int64{0}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.Len() > 500 {
		t.Errorf("%d keys after nothing was taken of 6,000", m.Len())
	}
}

// All of its methods may be called at a time: what was admitted since the last
// reset is at most the limit, and once it is closed nothing passes.
func TestMemoryAtOnce(t *testing.T) {
	l := limit.PerHour(50)
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return atomic.LoadInt64(&now) })
	var all sync.WaitGroup
	var passed atomic.Int64
	for worker := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				charges := []store.Charge{charge(fmt.Sprint((worker+i)%5), 1, l), charge("all", 1, limit.PerHour(2000).Using(limit.SlidingLog))}
				r, _, err := m.Take(t.Context(), charges)
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("take: %v", err)
					return
				}
				if r != nil {
					passed.Add(1)
				}
				if i%7 == 0 {
					m.Settle(t.Context(), r, []int64{-1, -1})
				}
				if i%11 == 0 {
					m.Reset(t.Context(), fmt.Sprint(i%5))
				}
				m.Peek(t.Context(), charges)
				m.Len()
				if passed.Load() == 2000 || i == 5000 {
					m.Close()
				}
			}
		})
	}
	all.Wait()
	if got := passed.Load(); got > 2000 {
		t.Errorf("%d have passed of 2000", got)
	}
}
