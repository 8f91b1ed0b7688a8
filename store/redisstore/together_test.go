package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// Equal concurrent takes get exactly the answers of takes one after another.
func TestTogether(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for name, l := range everyKind(100) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opened(t, server.URL(), Config{Namespace: t.Name(), Timeout: time.Minute})
			var mu sync.Mutex
			var left, denied []int64
			var receipts []store.Receipt
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					r, decisions, err := s.Take(t.Context(), one("key", l, 7))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if r == nil {
						denied = append(denied, decisions[0].Remaining)
						return
					}
					left, receipts = append(left, decisions[0].Remaining), append(receipts, r)
				})
			}
			all.Wait()
			slices.Sort(left)
			if want := []int64{2, 9, 16, 23, 30, 37, 44, 51, 58, 65, 72, 79, 86, 93}; !slices.Equal(left, want) {
				t.Errorf("the decisions of takes that passed say that %v are left; want %v", left, want)
			}
			for _, n := range denied {
				if n != 2 {
					t.Errorf("the decision of a take that was denied says that %d are left", n)
				}
			}
			for i := len(receipts) - 1; i >= 0; i-- { // one by one
				all.Go(func() {
					if err := s.Settle(t.Context(), receipts[i], []int64{8}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			wantDebt := int64(14*8 - 100)
			if !isBucket(l) {
				wantUsed(t, s, "key", l, 100+wantDebt)
			}
			wantLeft(t, s, "key", l, 0)
		})
	}
}

// Random histories of keys whose limits change all the time are answered as in memory, with the
// server's clock.
func TestLikeMemory(t *testing.T) {
	t.Parallel()
	s := opened(t, redistest.New(t).URL(), Config{Timeout: time.Minute})
	kinds := everyKind(100)
	names := slices.Sorted(maps.Keys(kinds))
	var histories atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		key := fmt.Sprint("history", histories.Add(1))
		memory := store.NewMemory()
		defer memory.Close()
		both := []store.Store{memory, s}
		mine := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "kinds") // of two limits of one shape, one may replace the other
		var receipts [][2]store.Receipt
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			if len(receipts) > 0 && rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				r := rapid.SampledFrom(receipts).Draw(t, "receipt")
				actual := rapid.Int64Range(0, 25).Draw(t, "actual")
				for i, of := range both {
					if err := of.Settle(t.Context(), r[i], []int64{actual}); err != nil {
						t.Fatal(err)
					}
				}
				continue
			}
			charges := []store.Charge{{Key: key, N: rapid.Int64Range(1, 12).Draw(t, "n")}}
			for _, name := range mine {
				l := kinds[name].WithCount(rapid.SampledFrom([]int64{100, 20, 70}).Draw(t, "count"))
				charges[0].Limits = append(charges[0].Limits, l.WithBurst(l.Count()))
			}
			var taken [2]store.Receipt
			var left [2][]int64
			for i, of := range both {
				r, decisions, err := of.Take(t.Context(), charges)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range decisions {
					left[i] = append(left[i], d.Remaining)
				}
				taken[i] = r
			}
			if (taken[0] == nil) != (taken[1] == nil) || !slices.Equal(left[0], left[1]) {
				t.Fatalf("%+v: %v are left; in memory %v", charges, left[1], left[0])
			}
			if taken[0] != nil {
				receipts = append(receipts, taken)
			}
		}
	})
}
