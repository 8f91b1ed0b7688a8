package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// onModels runs a test in a bubble for models that count in memory, and for some that
// count in a store.
func onModels(t *testing.T, quota ratelimit.ModelQuota, each project.Limit, test func(t *testing.T, l *project.Limiter, rl *ratelimit.RateLimiter)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rl := models(t, quota)
			test(t, newLimiter(t, project.Config{Default: &each, Models: rl}), rl)
		})
	})
	t.Run("store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rl := modelsOn(t, store.NewMemory(), quota)
			test(t, newLimiter(t, project.Config{Default: &each, Models: rl}), rl)
		})
	})
}

// A call is charged to its project and its model, or to neither.
func TestProjectAndModel(t *testing.T) {
	quota := ratelimit.ModelQuota{MaxRPM: 3, MaxTPM: 100}
	each := project.Limit{RequestsPerMinute: 2, TokensPerHour: 50}
	onModels(t, quota, each, func(t *testing.T, l *project.Limiter, rl *ratelimit.RateLimiter) {
		used := func(when string, rpm, tpm int, minute, hour int64) {
			t.Helper()
			left, s := left(t, l, "p"), rl.Stats("m")
			if s.RPM != rpm || s.TPM != tpm || left["minute"] != minute || left["tokens-hour"] != hour {
				t.Fatalf("%s: the model has used %d, %d; the project has %v left", when, s.RPM, s.TPM, left)
			}
		}
		denied := func(c project.Call, by string, retry time.Duration) {
			t.Helper()
			c.Model = "m"
			res, d, err := l.Take(t.Context(), c)
			spent := spend(t, l, c)
			for _, d := range []project.Decision{d, spent} {
				if res != nil || err != nil || d.Allowed || d.Exceeded != by || d.RetryAfter != retry || d.Model == nil || d.Model.Allowed {
					t.Fatalf("%+v: %t, %q, %v, %v; want it denied by %q for %v", c, d.Allowed, d.Exceeded, d.RetryAfter, err, by, retry)
				}
			}
		}
		res, d, err := l.Take(t.Context(), project.Call{Project: "p", Model: "m", Estimated: 30})
		if err != nil || !d.Allowed || d.Model == nil || d.Model.Stats.TPM != 30 || len(d.Windows()) != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		used("taken", 1, 30, 1, 20)
		denied(project.Call{Project: "p", Estimated: 21}, "tokens-hour", time.Hour)
		denied(project.Call{Project: "p", Estimated: 51}, "tokens-hour", project.Never)
		denied(project.Call{Project: "p", Requests: 2}, "minute", time.Minute)
		denied(project.Call{Project: "p", Requests: 4, Estimated: 101}, "rpm", project.Never)
		used("after denials by the project", 1, 30, 1, 20)
		if d := spend(t, l, project.Call{Project: "q", Model: "m", Requests: 2, Estimated: 50}); !d.Allowed {
			t.Fatalf("another project: %q, %v", d.Exceeded, d.RetryAfter)
		}
		time.Sleep(time.Second)
		denied(project.Call{Project: "p", Estimated: 1}, "rpm", 59*time.Second)
		used("after a denial by the model", 3, 80, 1, 20)
		res.Commit(25, 35)
		used("committed", 3, 110, 1, 0)
		res.Commit(1, 1)
		res.Cancel()
		used("committed again", 3, 110, 1, 0)
		time.Sleep(59 * time.Second)
		res, _, _ = l.Take(t.Context(), project.Call{Project: "r", Model: "m", Estimated: 50})
		res.Cancel()
		used("cancelled", 0, 0, 2, 0)
		denied(project.Call{Project: "p", Estimated: 1}, "tokens-hour", 59*time.Minute)
	})
}

// A model without a quota is limited by its project alone, and a call for no model
// by nothing else.
func TestUnknownModel(t *testing.T) {
	onModels(t, ratelimit.ModelQuota{MaxRPM: 1}, project.Limit{RequestsPerMinute: 2}, func(t *testing.T, l *project.Limiter, rl *ratelimit.RateLimiter) {
		for _, c := range []project.Call{{Project: "p", Model: "unknown"}, {Project: "q"}} {
			for range 2 {
				res, d, err := l.Take(t.Context(), c)
				if err != nil || !d.Allowed || (d.Model == nil) != (c.Model == "") {
					t.Fatalf("%+v: %+v, %v", c, d, err)
				}
				res.Commit(3, 4)
			}
			if d := spend(t, l, c); d.Allowed || d.Exceeded != "minute" {
				t.Errorf("%+v: %t, %q", c, d.Allowed, d.Exceeded)
			}
		}
		if s := rl.Stats("unknown"); s.RPM != 2 || s.TPM != 14 {
			t.Errorf("what it has used is known: %+v", s)
		}
		if s := rl.Stats("m"); s.RPM != 0 {
			t.Errorf("another has used %+v", s)
		}
	})
}

// What was spent holds no place among the calls that are under way.
func TestSpendHoldsNoSlot(t *testing.T) {
	onModels(t, ratelimit.ModelQuota{MaxConcurrent: 1}, project.Limit{RequestsPerMinute: 5}, func(t *testing.T, l *project.Limiter, rl *ratelimit.RateLimiter) {
		c := project.Call{Project: "p", Model: "m", Estimated: 3}
		for i := range 5 {
			if d := spend(t, l, c); !d.Allowed {
				t.Fatalf("call %d is denied by %q", i, d.Exceeded)
			}
		}
		if s := rl.Stats("m"); s.Concurrent != 0 || s.RPM != 5 || s.TPM != 15 {
			t.Errorf("%+v", s)
		}
	})
}
