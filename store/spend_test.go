package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// mustSpend spends n of a key, and returns whether it was allowed.
func mustSpend(t *testing.T, m *store.Memory, key string, n int64, limits ...limit.Limit) bool {
	t.Helper()
	d, allowed, err := m.Spend(t.Context(), []byte(key), prepare(t, "any", n, limits...), nil)
	if err != nil || len(d) != len(limits) || allowed == slices.ContainsFunc(d, func(v limit.Verdict) bool { return !v.Allowed }) {
		t.Fatalf("spend %d of %q: %+v, %v, %v", n, key, d, allowed, err)
	}
	return allowed
}

// spendLimits are those among which the keys of a test choose.
var spendLimits = [][]limit.Limit{
	windows(3, 9),
	windows(1, 30),
	{limit.PerMinute(5).Using(limit.SlidingLog), limit.PerMinute(8).Using(limit.SlidingLog)},
	{limit.PerMinute(9), limit.PerHour(30).Using(limit.SlidingLog)},
	{limit.PerHour(20).WithBurst(6)},
	{limit.PerDay(20).Anchored(), limit.PerMinute(7).Using(limit.SlidingCounter), limit.PerMinute(8).Using(limit.FixedWindow)},
	{},
}

// Spend is Take of one charge: whatever happened before, on whatever clock, two
// stores of which one spends what the other takes say the same, and hold the same.
func TestSpendIsTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		now := time.Date(2026, time.March, 14, 7, 0, 0, 0, time.UTC).UnixNano()
		spends := store.NewMemoryAt(func() int64 { return now })
		takes := store.NewMemoryAt(func() int64 { return now })
		var receipts [][2]store.Receipt
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.OneOf(
				rapid.Int64Range(0, int64(5*time.Second)),
				rapid.Int64Range(-int64(time.Minute), int64(time.Minute)),
				rapid.Int64Range(0, int64(30*time.Hour)),
			).Draw(t, "time")
			key := rapid.SampledFrom([]string{"", "a", "ab", "b"}).Draw(t, "key")
			charges := []store.Charge{charge(key, rapid.Int64Range(0, 10).Draw(t, "n"), rapid.SampledFrom(spendLimits).Draw(t, "limits")...)}
			var got, want []limit.Decision
			var gotErr, wantErr error
			switch rapid.SampledFrom([]string{"spend", "spend", "spend", "spend", "take", "settle", "peek", "reset"}).Draw(t, "do") {
			case "spend":
				var c store.Charge
				if c, gotErr = store.Prepare("any", charges[0].Limits); gotErr == nil {
					c.N = charges[0].N
					var said []limit.Verdict
					said, _, gotErr = spends.Spend(ctx, []byte(key), c, nil)
					for i, l := range charges[0].Limits {
						got = append(got, said[i].By(l))
					}
				}
				_, want, wantErr = takes.Take(ctx, charges)
			case "take":
				var r [2]store.Receipt
				r[0], got, gotErr = spends.Take(ctx, charges)
				r[1], want, wantErr = takes.Take(ctx, charges)
				receipts = append(receipts, r)
			case "settle":
				if len(receipts) == 0 || receipts[0][0] == nil {
					continue
				}
				actual := []int64{rapid.Int64Range(-1, 12).Draw(t, "actual")}
				gotErr = spends.Settle(ctx, receipts[0][0], actual)
				wantErr = takes.Settle(ctx, receipts[0][1], actual)
				receipts = receipts[1:]
			case "peek":
				got, gotErr = spends.Peek(ctx, charges)
				want, wantErr = takes.Peek(ctx, charges)
			case "reset":
				gotErr, wantErr = spends.Reset(ctx, key), takes.Reset(ctx, key)
			}
			if gotErr != nil || wantErr != nil || !slices.Equal(got, want) {
				t.Fatalf("%+v at %d:\ngot  %+v, %v\nwant %+v, %v", charges, now, got, gotErr, want, wantErr)
			}
			sameHoldings(t, spends, takes)
		}
	})
}

// sameHoldings compares what two stores hold of every key.
func sameHoldings(t *rapid.T, a, b *store.Memory) {
	t.Helper()
	var holdings [2]map[string]string
	for i, m := range []*store.Memory{a, b} {
		keys, err := m.Keys(context.Background(), "")
		if err != nil || len(keys) != m.Len() {
			t.Fatalf("%q of %d keys, %v", keys, m.Len(), err)
		}
		accounts, at, err := m.Read(context.Background(), keys...)
		if err != nil {
			t.Fatal(err)
		}
		holdings[i] = map[string]string{}
		for k, account := range accounts {
			holdings[i][keys[k]] = store.Describe(account, at, slices.Concat(spendLimits...))
		}
	}
	if !maps.Equal(holdings[0], holdings[1]) {
		t.Fatalf("got  %v\nwant %v", holdings[0], holdings[1])
	}
}

// However many spend at a time, exactly the limit passes: at first, and as soon as
// there is room again.
func TestSpendAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory()
		limits := []limit.Limit{
			limit.PerMinute(100).Using(limit.SlidingLog), limit.PerHour(250).Using(limit.SlidingLog), limit.PerDay(1000).Using(limit.SlidingLog),
		}
		c := prepare(t, "any", 1, limits...)
		for _, want := range []int64{100, 100, 50, 0} {
			var passed atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					var decisions []limit.Verdict
					for range 200 {
						var allowed bool
						if decisions, allowed, _ = m.Spend(t.Context(), []byte("key"), c, decisions[:0]); allowed {
							passed.Add(1)
						}
					}
				})
			}
			all.Wait()
			if passed.Load() != want {
				t.Errorf("%d passed; want %d", passed.Load(), want)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A key that is known costs no allocation, whatever is said to it.
func TestSpendAllocatesNothing(t *testing.T) {
	m := store.NewMemory()
	ctx := t.Context()
	for _, count := range []int64{1, 1 << 40} {
		for name, limits := range map[string][]limit.Limit{
			"three windows": windows(3, count),
			"buckets":       {limit.PerMinute(count), limit.PerHour(count).Anchored()},
			"both":          {limit.PerMinute(count), limit.PerHour(count).Using(limit.SlidingLog)},
		} {
			key := fmt.Appendf(nil, "%s of which each is %d, with a long name", name, count)
			var decisions []limit.Verdict
			c := prepare(t, "any", 1, limits...)
			allowed := false
			spend := func() { decisions, allowed, _ = m.Spend(ctx, key, c, decisions[:0]) }
			for range 5000 {
				spend()
			}
			if n := testing.AllocsPerRun(1000, spend); n != 0 || allowed != (count > 1) {
				t.Errorf("%s: %v allocations; %+v", key, n, decisions)
			}
		}
	}
}

// A take that is settled allocates what it returns, and notes of it.
func TestTakeAllocatesLittle(t *testing.T) {
	m := store.NewMemory()
	ctx := t.Context()
	charges := []store.Charge{
		charge("requests", 1, limit.PerMinute(1<<40), limit.PerDay(1<<40).Anchored()),
		charge("tokens", 100, limit.PerMinute(1<<40).Using(limit.SlidingLog)),
	}
	take := func() {
		r, _, _ := m.Take(ctx, charges)
		m.Settle(ctx, r, []int64{1, 80})
	}
	for range 5000 {
		take()
	}
	if n := testing.AllocsPerRun(1000, take); n > 6 {
		t.Errorf("%v allocations", n)
	}
}

// A denial, and nothing, leave nothing behind.
func TestSpendHoldsNothingForNothing(t *testing.T) {
	m := store.NewMemory()
	for i := range 100 {
		for _, limits := range spendLimits {
			mustSpend(t, m, fmt.Sprint(i), 0, limits...)
			if passed := mustSpend(t, m, fmt.Sprint(i), 100, limits...); passed != (len(limits) == 0) {
				t.Fatalf("100 of %v: %v", limits, passed)
			}
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d keys are held", m.Len())
	}
}

// Key and decisions are the caller's.
func TestSpendKeepsNothingOfTheCaller(t *testing.T) {
	m := store.NewMemory()
	key := []byte("abc")
	limits := windows(3, 1)
	if _, _, err := m.Spend(t.Context(), key, prepare(t, "any", 1, limits...), nil); err != nil {
		t.Fatal(err)
	}
	copy(key, "xyz")
	limits[0] = limit.PerSecond(1).Using(limit.SlidingLog)
	if mustSpend(t, m, "abc", 1, windows(3, 1)...) || !mustSpend(t, m, "xyz", 1, windows(3, 1)...) {
		t.Error("a key has changed with the slice that it was given in")
	}
	said := []limit.Verdict{{Remaining: 5}}
	got, _, err := m.Spend(t.Context(), []byte("abc"), prepare(t, "any", 1, windows(3, 1)...), said)
	if err != nil || len(got) != 4 || got[0] != said[0] {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSpendRefuses(t *testing.T) {
	m := store.NewMemory()
	left, cancel := context.WithCancel(t.Context())
	cancel()
	refused := func(ctx context.Context, n int64, want error, says string) {
		t.Helper()
		d, allowed, err := m.Spend(ctx, []byte("key"), prepare(t, "any", n, windows(3, 9)...), nil)
		if allowed || !errors.Is(err, want) || !strings.Contains(err.Error(), says) || len(d) != 0 || m.Len() != 0 {
			t.Errorf("%+v, %v; want %v that says %q", d, err, want, says)
		}
	}
	refused(left, 1, context.Canceled, "not asked")
	refused(t.Context(), -3, store.ErrInvalid, `-3 of "key"`)
	m.Close()
	refused(t.Context(), 1, store.ErrClosed, "closed")
}

// A key that was charged once takes little room, its name included.
func TestSpendOnceTakesLittleRoom(t *testing.T) {
	const keys = 100_000
	limits := []limit.Limit{
		limit.PerMinute(60).Using(limit.SlidingLog), limit.PerHour(1000).Using(limit.SlidingLog), limit.PerDay(10_000).Using(limit.SlidingLog),
	}
	before := heap()
	m := store.NewMemory()
	fill(t, m, keys, limits)
	if each := (heap() - before) / keys; each > 126 || m.Len() != keys {
		t.Errorf("%d keys, of which each takes %d bytes", m.Len(), each)
	}
	runtime.KeepAlive(m)
}
