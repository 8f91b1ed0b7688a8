package ratelimit_test

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Projects share a model's quota by weight at every level of their tree, however many workers each has.
func TestSiblingsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := inMemory(t, quotas{"m": {MaxRPM: 120}})
		withProjects(t, rl, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
			"acme": {}, "acme/search": {Weight: 3}, "acme/chat": {Weight: 1}, "beta": {Weight: 1},
		}})
		ctx, stop := testkit.WithHiddenTimeout(t.Context(), 5*time.Minute)
		defer stop()
		served := map[string]*atomic.Int64{}
		start := time.Now()
		for id, workers := range map[string]int{"acme/search": 8, "acme/chat": 20, "beta": 12} {
			served[id] = new(atomic.Int64)
			for range workers {
				go func() {
					for ctx.Err() == nil {
						res, _, err := rl.AcquireCall(ctx, ratelimit.Call{Model: "m", Project: id})
						if err != nil {
							return
						}
						if time.Since(start) >= time.Minute { // the first minute is one of newcomers
							served[id].Add(1)
						}
						res.Commit(0, 0)
					}
				}()
			}
		}
		<-ctx.Done()
		synctest.Wait()
		sum := 0.0
		for _, n := range served {
			sum += float64(n.Load())
		}
		if sum < 4*120*98/100 {
			t.Errorf("%v calls were served; want %d", sum, 4*120)
		}
		for id, want := range map[string]float64{"acme/search": .375, "acme/chat": .125, "beta": .5} {
			if got := float64(served[id].Load()) / sum; math.Abs(got-want) > .05 {
				t.Errorf("%s has %.3f of the quota; want %.3f", id, got, want)
			}
		}
	})
}
