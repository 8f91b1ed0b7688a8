package project_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Projects of which always some wait for a model have their shares of it by their
// weights, whatever the number and the size of their calls, and use all that there is.
func TestWeights(t *testing.T) {
	type tenant struct{ weight, callers, tokens int }
	const minutes = 30
	for name, c := range map[string]struct {
		quota   ratelimit.ModelQuota
		tenants map[string]tenant
	}{
		"requests":      {ratelimit.ModelQuota{MaxRPM: 60}, map[string]tenant{"a": {3, 60, 0}, "b": {1, 60, 0}}},
		"tokens":        {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 120, 100}, "b": {1, 120, 100}}},
		"crowds":        {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 100, 100}, "b": {1, 900, 100}}},
		"large, small":  {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 300, 40}, "b": {1, 30, 500}}},
		"of no weight":  {ratelimit.ModelQuota{MaxRPM: 60}, map[string]tenant{"a": {0, 60, 0}, "b": {1, 40, 0}}},
		"three of them": {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {5, 120, 100}, "b": {2, 120, 30}, "c": {1, 30, 300}}},
	} {
		for where, rl := range map[string]func(t testing.TB) *ratelimit.RateLimiter{
			" in memory":  func(t testing.TB) *ratelimit.RateLimiter { return models(t, c.quota) },
			" on a store": func(t testing.TB) *ratelimit.RateLimiter { return modelsOn(t, store.NewMemory(), c.quota) },
		} {
			t.Run(name+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limits, weights := map[string]project.Limit{}, 0
					for id, each := range c.tenants {
						limits[id] = project.Limit{Weight: each.weight}
						weights += max(each.weight, 1)
					}
					l := newLimiter(t, project.Config{Models: rl(t), Limits: limits})
					if d := spend(t, l, project.Call{Project: "before", Model: "m", Requests: max(c.quota.MaxRPM, 1), Estimated: c.quota.MaxTPM}); !d.Allowed {
						t.Fatalf("%+v", d)
					}
					ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute+time.Second) // the first is over when they begin
					defer cancel()
					var mu sync.Mutex
					got := map[string]int{}
					var all sync.WaitGroup
					for id, each := range c.tenants {
						for range each.callers {
							all.Go(func() {
								for {
									_, _, err := l.Acquire(ctx, project.Call{Project: id, Model: "m", Estimated: each.tokens})
									if err != nil {
										return
									}
									mu.Lock()
									got[id] += max(each.tokens, 1)
									mu.Unlock()
								}
							})
						}
					}
					all.Wait()
					sum, whole := 0, minutes*max(c.quota.MaxRPM, c.quota.MaxTPM)
					for id, n := range got {
						sum += n
						fair := float64(whole) * float64(max(c.tenants[id].weight, 1)) / float64(weights)
						if off := math.Abs(float64(n)/fair - 1); off > 0.05 {
							t.Errorf("%s got %d of %d; its share is %.0f", id, n, whole, fair)
						}
					}
					if float64(sum) < 0.95*float64(whole) || sum > whole {
						t.Errorf("%d were used of %d", sum, whole)
					}
				})
			})
		}
	}
}

// A project that waits for what it may use itself leaves the model to others, and
// has its turn when it may.
func TestOwnLimitLeavesTheModelToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minutes = 10
		l := newLimiter(t, project.Config{
			Models: models(t, ratelimit.ModelQuota{MaxRPM: 60}),
			Limits: map[string]project.Limit{"small": {RequestsPerMinute: 6, Weight: 100}, "large": {}},
		})
		ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute-time.Second)
		defer cancel()
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for _, id := range []string{"small", "large"} {
			for range 30 {
				all.Go(func() {
					for {
						if _, _, err := l.Acquire(ctx, project.Call{Project: id, Model: "m"}); err != nil {
							return
						}
						mu.Lock()
						got[id]++
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		if sum := got["small"] + got["large"]; sum != 60*minutes || got["small"] > 6*minutes || got["small"] < 3*minutes {
			t.Errorf("%v: of all, small may have 6 a minute, and none should be left", got)
		}
	})
}
