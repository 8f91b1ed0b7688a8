package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

func TestMemoryRead(t *testing.T) {
	now := time.Now().UnixNano()
	m := store.NewMemoryAt(func() int64 { return now })
	log := limit.PerMinute(9).Using(limit.SlidingLog)
	mustTake(t, m, "a", 2, log)
	mustTake(t, m, "b", 3, log)
	accounts, at, err := m.Read(t.Context(), "b", "none", "a", "b")
	if err != nil || at != now || len(accounts) != 4 {
		t.Fatalf("%v at %d, %v", accounts, at, err)
	}
	for i, want := range []int64{3, 0, 2, 3} {
		if got := accounts[i].Check(log, at, 0).Used; got != want {
			t.Errorf("account %d has used %d; want %d", i, got, want)
		}
	}
	accounts[0].Take([]limit.Limit{log}, now, 5) // it is the caller's
	mustTake(t, m, "b", 6, log)
	if m.Len() != 2 {
		t.Errorf("reading made %d keys of 2", m.Len())
	}
}

func TestMemoryKeys(t *testing.T) {
	m := store.NewMemory()
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("a/%02d", i))
		mustTake(t, m, want[i], 1, limit.PerDay(1))
		mustTake(t, m, "b"+want[i], 1, limit.PerDay(1))
	}
	if got, err := m.Keys(t.Context(), "a/"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := m.Keys(t.Context(), ""); err != nil || len(got) != 200 {
		t.Errorf("%d keys, %v", len(got), err)
	}
}

func TestMemoryReadRefuses(t *testing.T) {
	m := store.NewMemory()
	left, cancel := context.WithCancel(t.Context())
	cancel()
	wantAll := func(ctx context.Context, want error) {
		t.Helper()
		_, _, err := m.Read(ctx, "a")
		if _, keys := m.Keys(ctx, ""); !errors.Is(err, want) || !errors.Is(keys, want) {
			t.Errorf("%v, %v; want %v", err, keys, want)
		}
	}
	wantAll(left, context.Canceled)
	m.Close()
	wantAll(t.Context(), store.ErrClosed)
}

// What was read stays as it was while others take.
func TestMemoryReadMeanwhile(t *testing.T) {
	m := store.NewMemory()
	log := limit.PerDay(1 << 40).Using(limit.SlidingLog)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 500 {
				if _, _, err := m.Take(t.Context(), []store.Charge{charge("a", 1, log)}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				accounts, at, err := m.Read(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				sum := int64(0)
				for _, n := range accounts[0].Entries() {
					sum += n
				}
				if used := accounts[0].Check(log, at, 0).Used; used != sum {
					t.Errorf("%d are used, of which %d are listed", used, sum)
				}
			}
		})
	}
	wg.Wait()
}
