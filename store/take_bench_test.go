package store_test

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// modelCharges returns the charges of a call to a model: a day's and a minute's
// requests, and a minute's tokens.
func modelCharges(t testing.TB, n int64) []store.Charge {
	minute := limit.PerMinute(1 << 40).Using(limit.SlidingLog)
	return []store.Charge{
		prepare(t, "model/gpt-4o/requests", 1, limit.PerDay(1<<40).Anchored(), minute),
		prepare(t, "model/gpt-4o/tokens", n, minute),
	}
}

// projectCharges returns the charges of a call of a project: three windows of
// requests, and three of tokens.
func projectCharges(t testing.TB, n int64) []store.Charge {
	return []store.Charge{
		prepare(t, "project/acme/requests", 1, windows(3, 1<<40)...),
		prepare(t, "project/acme/tokens", n, windows(3, 1<<40)...),
	}
}

func prepare(t testing.TB, key string, n int64, limits ...limit.Limit) store.Charge {
	t.Helper()
	c, err := store.Prepare(key, limits)
	if err != nil {
		t.Fatal(err)
	}
	c.N = n
	return c
}

// BenchmarkTake measures takes that are settled, with as many entries in their
// logs as there can be, and with a few: then the clock moves on by some seconds with
// each take.
func BenchmarkTake(b *testing.B) {
	for _, bench := range []struct {
		name    string
		charges func(t testing.TB, n int64) []store.Charge
		actual  []int64
	}{
		{"model", modelCharges, []int64{1, 1000}},
		{"project and model", func(t testing.TB, n int64) []store.Charge {
			return append(projectCharges(t, n), modelCharges(t, n)...)
		}, []int64{1, 1000, 1, 1000}},
	} {
		for name, step := range map[string]time.Duration{"full logs": 0, "few entries": 10 * time.Second} {
			b.Run(bench.name+"/"+name, func(b *testing.B) {
				start, at := time.Now(), int64(0)
				m := store.NewMemoryAt(func() int64 {
					at += int64(step)
					return at + int64(time.Since(start))
				})
				takeAndSettle(b, m, bench.charges(b, 1200), bench.actual)
			})
		}
	}
}

func takeAndSettle(b *testing.B, m *store.Memory, charges []store.Charge, actual []int64) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := m.Take(ctx, charges)
		if r == nil || err != nil {
			b.Fatal(r, err)
		}
		m.Settle(ctx, r, actual)
	}
}
