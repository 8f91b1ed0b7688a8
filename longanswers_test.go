package ratelimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// passedInTenMinutes returns how many calls of each project pass in ten minutes, of 120 a minute for both. Each worker
// waits for its turn, then for an answer, and calls again.
func passedInTenMinutes(t *testing.T, answer time.Duration, workers map[string]int) map[string]int {
	t.Helper()
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: quotas{"m": {MaxRPM: 120}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rl.NewProjects(project.Config{Limits: map[string]project.Limit{"a": {Weight: 3}, "b": {Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	passed := map[string]int{}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
	)
	for id, n := range workers {
		for range n {
			group.Go(func() {
				for {
					res, _, err := rl.AcquireCall(ctx, ratelimit.Call{Model: "m", Project: id})
					if err != nil {
						return
					}
					mu.Lock()
					passed[id]++
					mu.Unlock()
					time.Sleep(answer)
					res.Commit(1, 1)
				}
			})
		}
	}
	group.Wait()
	return passed
}

// A project keeps its share while all of its workers wait for answers, however long these take.
func TestSharesHoldForLongAnswers(t *testing.T) {
	for _, c := range []struct {
		answer time.Duration
		a, b   int // workers
	}{{20 * time.Second, 45, 300}, {15 * time.Second, 34, 300}, {22 * time.Second, 50, 300}, {35 * time.Second, 79, 300}} {
		t.Run(c.answer.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				passed := passedInTenMinutes(t, c.answer, map[string]int{"a": c.a, "b": c.b})
				all := passed["a"] + passed["b"]
				if share := 100 * passed["a"] / all; share < 70 || share > 80 || all < 1176 {
					t.Errorf("%d%% of %d calls are those of the project whose weight is three quarters: want 75%% of 1,200", share, all)
				}
			})
		})
	}
}
