package store_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// windows returns one sliding window, or three, of count each.
func windows(number int, count int64) []limit.Limit {
	logs := []limit.Limit{limit.PerMinute(count), limit.PerHour(count), limit.PerDay(count)}
	for i := range logs {
		logs[i] = logs[i].Using(limit.SlidingLog)
	}
	return logs[len(logs)-number:]
}

// brief returns sliding windows that hold a handful of entries, called as fast as can be.
func brief(number int) []limit.Limit {
	logs := []limit.Limit{limit.New(1<<40, 300), limit.New(1<<40, 600), limit.New(1<<40, 900)}
	for i := range logs {
		logs[i] = logs[i].Using(limit.SlidingLog)
	}
	return logs[len(logs)-number:]
}

func BenchmarkSpend(b *testing.B) {
	for _, bench := range []struct {
		name   string
		limits func(number int) []limit.Limit
		keys   int
	}{
		{"full log", func(number int) []limit.Limit { return windows(number, 1<<40) }, 1},
		{"short log", brief, 1},
		{"denied", func(number int) []limit.Limit { return windows(number, 1) }, 1},
		{"many keys", func(number int) []limit.Limit { return windows(number, 1<<40) }, 100_000},
	} {
		for _, number := range []int{1, 3} {
			b.Run(fmt.Sprintf("%s/windows=%d", bench.name, number), func(b *testing.B) {
				m := store.NewMemory()
				c := prepare(b, "any", 1, bench.limits(number)...)
				var decisions []limit.Verdict
				keys := make([][]byte, bench.keys)
				for i := range keys {
					keys[i] = fmt.Appendf(nil, "a project's key %08d", i)
				}
				for range 2 {
					for _, key := range keys {
						decisions, _, _ = m.Spend(b.Context(), key, c, decisions[:0])
					}
				}
				ctx := b.Context()
				b.ReportAllocs()
				at := 0
				for b.Loop() {
					decisions, _, _ = m.Spend(ctx, keys[at], c, decisions[:0])
					at++
					if at == len(keys) {
						at = 0
					}
				}
			})
		}
	}
}

// BenchmarkSpendNew measures keys that are new, and what each costs.
func BenchmarkSpendNew(b *testing.B) {
	m := store.NewMemory()
	c := prepare(b, "any", 1, windows(3, 1000)...)
	var decisions []limit.Verdict
	key := make([]byte, 0, 32)
	before := heap()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key = fmt.Appendf(key[:0], "a project's key of 32 b %08d", i)
		decisions, _, _ = m.Spend(b.Context(), key, c, decisions[:0])
		i++
	}
	b.ReportMetric(float64(heap()-before)/float64(m.Len()), "B/key")
	runtime.KeepAlive(m)
}

// heap returns how much of the heap is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkTakeAndSettle(b *testing.B) {
	m := store.NewMemory()
	charges := []store.Charge{
		charge("requests", 1, limit.PerMinute(1<<40), limit.PerDay(1<<40).Anchored()),
		charge("tokens", 100, limit.PerMinute(1<<40).Using(limit.SlidingLog)),
	}
	actual := []int64{1, 80}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := m.Take(ctx, charges)
		if err != nil {
			b.Fatal(err)
		}
		m.Settle(ctx, r, actual)
	}
}

// BenchmarkClock measures the floor: reading the clock once.
func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		time.Since(start)
	}
}
