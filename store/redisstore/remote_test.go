package redisstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
	"github.com/redis/rueidis"
)

func dialed(t testing.TB, url string) rueidis.Client {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestStoreInCluster(t *testing.T) {
	client := dialed(t, redistest.NewCluster(t, 3).URL())
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		testkit.OneIn(t, 3)
		r := newRemote(client, rand.Text(), patient, clock, nil)
		t.Cleanup(func() { r.Close() })
		return r
	})
}

func TestStore(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	storetest.Run(t, func(t *testing.T, clock func() int64) store.Store {
		r := newRemote(client, rand.Text(), patient, clock, nil)
		t.Cleanup(func() { r.Close() })
		return r
	})
}

func TestAskedForVeryMuch(t *testing.T) {
	r := newRemote(dialed(t, redistest.New(t).URL()), "much", patient, nil, nil)
	defer r.Close()
	var charges []store.Charge
	var keys []string
	for i := range 101 {
		keys = append(keys, fmt.Sprint("key ", i))
		limits := []limit.Limit{limit.PerDay(10), limit.PerDay(10).Using(limit.SlidingLog), limit.PerDay(10).Anchored(), limit.PerHour(10), limit.PerMinute(10)}
		charges = append(charges, store.Charge{Key: keys[i], Limits: limits, N: 3})
	}
	_, decisions, err := r.Take(t.Context(), charges[:100])
	if err != nil || !store.Allowed(decisions) || len(decisions) != 500 {
		t.Errorf("100 keys with 5 limits each: %v, %d decisions, allowed: %v", err, len(decisions), store.Allowed(decisions))
	}
	if _, _, err := r.Take(t.Context(), charges); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("101 keys: %v", err)
	}
	accounts, at, err := r.Read(t.Context(), slices.Repeat(keys, 3)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range accounts {
		want := int64(3)
		if i%101 == 100 {
			want = 0
		}
		if used := a.Check(charges[0].Limits[1], at, 0).Used; used != want {
			t.Errorf("of %s %d are used; want %d", keys[i%101], used, want)
		}
	}
}

// A take from months ago can be settled.
func TestSettledMonthsLater(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	r := newRemote(dialed(t, redistest.New(t).URL()), "late", patient, now.Load, nil)
	defer r.Close()
	l := limit.New(10, 744*time.Hour).Using(limit.SlidingCounter)
	charge := func(n int64) []store.Charge { return []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}} }
	old, _, err := r.Take(t.Context(), charge(1))
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		now.Add(int64(744 * time.Hour))
		if _, _, err := r.Take(t.Context(), charge(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Settle(t.Context(), old, []int64{0}); err != nil {
		t.Fatal(err)
	}
	if d, err := r.Peek(t.Context(), charge(0)); err != nil || d[0].Remaining != 9 { // of the month before, less than one counts
		t.Error(d, err)
	}
}

// Limits that change again and again become too many at some time, and none is forgotten.
func TestVeryManyLimitsOfAKey(t *testing.T) {
	r := newRemote(dialed(t, redistest.New(t).URL()), "many", patient, noon.UnixNano, nil) // whose buckets do not drain
	defer r.Close()
	var sets [][]limit.Limit
	for i := range 5 {
		var limits []limit.Limit
		for k := range 62 {
			limits = append(limits, limit.New(1000, time.Hour*time.Duration(1+62*i+k)))
		}
		sets = append(sets, limits)
	}
	for _, limits := range sets {
		_, decisions, err := r.Take(t.Context(), []store.Charge{{Key: "key", Limits: limits, N: 100}})
		if err != nil || !store.Allowed(decisions) {
			t.Fatal(err, decisions)
		}
	}
	for i, limits := range sets {
		decisions, err := r.Peek(t.Context(), []store.Charge{{Key: "key", Limits: limits, N: 1}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range decisions {
			if d.Remaining != 900 {
				t.Fatalf("of set %d %d are left; want 900", i, d.Remaining)
			}
		}
	}
}

func BenchmarkTake(b *testing.B) {
	r := newRemote(dialed(b, redistest.New(b).URL()), "bench", time.Second, nil, nil)
	defer r.Close()
	for name, limits := range map[string][]limit.Limit{
		"gcra": {limit.PerSecond(1_000_000_000)},
		"six": {limit.PerSecond(1_000_000_000), limit.PerMinute(1_000_000_000).Using(limit.TokenBucket), limit.PerHour(1_000_000_000_000),
			limit.PerMinute(1_000_000_000).Using(limit.FixedWindow), limit.PerHour(1_000_000_000_000).Using(limit.FixedWindow), limit.PerMinute(1_000_000_000).Using(limit.SlidingCounter)},
		"log": {limit.PerSecond(1_000_000_000).Using(limit.SlidingLog)},
	} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprint(name, "/", keys), func(b *testing.B) {
				var n atomic.Int64
				b.SetParallelism(32)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						charge := []store.Charge{{Key: fmt.Sprint(name, n.Add(1)%int64(keys)), Limits: limits, N: 1}}
						if _, _, err := r.Take(b.Context(), charge); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
