package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

var benchLimits = map[string][]limit.Limit{
	"log+day": {limit.PerMinute(1 << 40).Using(limit.SlidingLog), limit.PerDay(1 << 40).Using(limit.FixedWindow)},
	"gcra":    {limit.PerMinute(1 << 40)},
}

// 64 goroutines take of one key.
func BenchmarkTake(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(benchLimits)) {
		for _, most := range []int{1024, 1} {
			b.Run(fmt.Sprintf("%s/carry=%d", name, most), func(b *testing.B) {
				s := open(b)
				s.maxBatch = most
				b.ReportAllocs()
				b.ResetTimer()
				took, longest, err := takes(s, name, b.N)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/took.Seconds(), "decisions/s")
				b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
			})
		}
	}
}

// Four processes take at the same time.
func BenchmarkTakeProcesses(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(benchLimits)) {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "limits.db")
			var all []*process
			for range processes {
				all = append(all, start(b, "hammer", path))
			}
			b.ResetTimer()
			began := time.Now()
			for _, p := range all {
				p.begin(fmt.Sprint(name, " ", (b.N+processes-1)/processes))
			}
			var longest time.Duration
			for _, p := range all {
				var each time.Duration
				if _, err := fmt.Sscan(p.line(b), &each); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, each)
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "decisions/s")
			b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
		})
	}
}

func hammer(s *Store, input string) error {
	var name string
	var n int
	if _, err := fmt.Sscan(input, &name, &n); err != nil {
		return err
	}
	_, longest, err := takes(s, name, n)
	fmt.Println(int64(longest))
	return err
}

// takes takes n times, and returns how long all of it took, and the slowest take.
func takes(s *Store, name string, n int) (took, longest time.Duration, err error) {
	const goroutines = 64
	charges := []store.Charge{{Key: "key", Limits: benchLimits[name], N: 1}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			var slowest time.Duration
			var failed error
			for i := g; i < n && failed == nil; i += goroutines {
				asked := time.Now()
				_, _, failed = s.Take(context.Background(), charges)
				slowest = max(slowest, time.Since(asked))
			}
			mu.Lock()
			defer mu.Unlock()
			longest, err = max(longest, slowest), errors.Join(err, failed)
		})
	}
	wg.Wait()
	return time.Since(began), longest, err
}
