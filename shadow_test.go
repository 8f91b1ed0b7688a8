package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// shadowStores open a limiter on each kind of store. Limiters of one call share it, but in memory.
func shadowStores(t *testing.T) map[string]func(cfg ratelimit.Config) *ratelimit.RateLimiter {
	file, server := filepath.Join(t.TempDir(), "limits.db"), redistest.New(t)
	return map[string]func(cfg ratelimit.Config) *ratelimit.RateLimiter{
		"memory": func(cfg ratelimit.Config) *ratelimit.RateLimiter {
			return openLedger(t, ratelimit.BackendYAML, filepath.Join(t.TempDir(), "none.yaml"), cfg)
		},
		"SQLite": func(cfg ratelimit.Config) *ratelimit.RateLimiter {
			return openLedger(t, ratelimit.BackendSQLite, file, cfg)
		},
		"Redis": func(cfg ratelimit.Config) *ratelimit.RateLimiter {
			cfg.FilePath = server.URL()
			return onRedisWith(t, cfg)
		},
	}
}

// atOnce makes n calls at once, and returns how many passed and how many of these a limit in shadow would
// have denied.
func atOnce(t *testing.T, rl *ratelimit.RateLimiter, n int, c ratelimit.Call) (passed, overlooked int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, d, err := rl.TryAcquireCall(context.Background(), c)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if d.Allowed {
				passed++
			}
			if d.Shadow.Limit != "" {
				overlooked++
			}
		})
	}
	wg.Wait()
	return passed, overlooked
}

// Of 300 calls at once on a limit of 10, all pass where the limit is in shadow, and 290 learn that it
// would have denied them. With the limit enforced, exactly 10 pass. What is not in shadow holds exactly.
func TestShadowNeverDenies(t *testing.T) {
	for name, open := range shadowStores(t) {
		t.Run(name, func(t *testing.T) {
			rl := open(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 10}, "n": {MaxRPM: 10}, "large": {MaxRPM: 1000, MaxTPM: 500}, "free": {}}})
			projects, err := rl.NewProjects(project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
				"small": {RequestsPerMinute: 10}, "tight": {RequestsPerMinute: 10},
				"above": {RequestsPerHour: 50}, "above/in": {RequestsPerMinute: 10},
			}})
			if err != nil {
				t.Fatal(err)
			}
			type call = ratelimit.Call
			for _, c := range []struct {
				what               string
				call               call
				passed, overlooked int
			}{
				{"a model in shadow", call{Model: "m", Project: "p", ShadowModel: true}, 300, 290},
				{"a model that is enforced", call{Model: "n", Project: "p"}, 10, 0},
				{"a project in shadow", call{Model: "free", Project: "small", ShadowOf: "small"}, 300, 290},
				{"a project that is enforced", call{Model: "free", Project: "tight"}, 10, 0},
				{"a project in shadow on a model that is enforced", call{Model: "large", Project: "small/x", ShadowOf: "small", Estimated: 5}, 100, 100},
				{"a project in shadow below one that is enforced", call{Model: "free", Project: "above/in", ShadowOf: "above/in"}, 50, 40},
				{"both in shadow, later", call{Model: "large", Project: "above/in", ShadowOf: "above", ShadowModel: true, Estimated: 5}, 300, 300},
			} {
				passed, overlooked := atOnce(t, rl, 300, c.call)
				if passed != c.passed || overlooked != c.overlooked {
					t.Errorf("%s: %d passed and %d would have been denied; want %d and %d", c.what, passed, overlooked, c.passed, c.overlooked)
				}
			}
			d, err := projects.Peek(t.Context(), "small") // what is enforced again finds all that was counted
			if err != nil || d.Allowed || d.Windows()[0].Remaining != 0 {
				t.Errorf("%+v, %v", d.Windows(), err)
			}
			if d := rl.Decide("m", 0); d.Allowed || d.Stats.RPM != 300 {
				t.Errorf("%+v", d)
			}
		})
	}
}

// Each kind of limit counts in shadow as it counts otherwise, says when it would have denied a call, and
// denies none, whatever the size of the call.
func TestShadowOfEachLimit(t *testing.T) {
	type quota = ratelimit.ModelQuota
	type limits = project.Limit
	for _, c := range []struct {
		limit string
		quota quota
		limits
		call ratelimit.Call
		over int // which call is the first that would have been denied
	}{
		{"max_rpm", quota{MaxRPM: 3}, limits{}, ratelimit.Call{}, 4},
		{"max_rpd", quota{MaxRPD: 3}, limits{}, ratelimit.Call{}, 4},
		{"max_rpd", quota{MaxRPD: 3, DayResetsAt: "00:00 Europe/Berlin"}, limits{}, ratelimit.Call{}, 4},
		{"max_tpm", quota{MaxTPM: 100}, limits{}, ratelimit.Call{Estimated: 40}, 3},
		{"max_tpm", quota{MaxTPM: 100}, limits{}, ratelimit.Call{Estimated: 101}, 1},
		{"max_tpd", quota{MaxTPD: 100}, limits{}, ratelimit.Call{Estimated: 50}, 3},
		{"max_input_tpm", quota{MaxInputTPM: 100}, limits{}, ratelimit.Call{Tokens: ratelimit.Tokens{Input: 50, Output: 500}}, 3},
		{"max_concurrent", quota{MaxConcurrent: 2}, limits{}, ratelimit.Call{}, 3},
		{"max_rpm_pace", quota{MaxRPM: 60, Pace: ratelimit.PaceEven, PaceBurst: 5}, limits{}, ratelimit.Call{}, 4},
		{"requests_per_minute", quota{}, limits{RequestsPerMinute: 2}, ratelimit.Call{}, 3},
		{"requests_per_hour", quota{}, limits{RequestsPerHour: 2}, ratelimit.Call{}, 3},
		{"tokens_per_day", quota{}, limits{TokensPerDay: 100}, ratelimit.Call{Estimated: 60}, 2},
		{"tokens_per_month", quota{}, limits{TokensPerMonth: 100}, ratelimit.Call{Estimated: 100}, 2},
		{"dollars_per_day", quota{}, limits{DollarsPerDay: price.Dollar}, ratelimit.Call{Dollars: price.Dollar / 2}, 3},
		{"dollars", quota{}, limits{Dollars: price.Dollar}, ratelimit.Call{Dollars: price.Dollar}, 2},
		{project.Concurrent, quota{}, limits{MaxConcurrent: 1}, ratelimit.Call{}, 2},
	} {
		t.Run(c.limit, func(t *testing.T) {
			rl := inMemory(t, quotas{"m": c.quota})
			withProjects(t, rl, project.Config{Default: &c.limits})
			c.call.Model, c.call.Project, c.call.ShadowModel, c.call.ShadowOf = "m", "p", true, "p"
			for i := 1; i <= 6; i++ {
				_, d, err := rl.TryAcquireCall(t.Context(), c.call)
				if err != nil || !d.Allowed {
					t.Fatalf("call %d: %+v, %v", i, d, err)
				}
				if want := map[bool]string{true: c.limit}[i >= c.over]; d.Shadow.Limit != want {
					t.Errorf("call %d: %+v; want %q", i, d.Shadow, want)
				}
				for _, w := range d.Windows() {
					if w.Remaining < 0 || w.Remaining > w.Window.Count {
						t.Errorf("call %d: %+v is left", i, w)
					}
				}
			}
		})
	}
}

// A call whose limits are in shadow waits for nobody: not for calls that wait since before, not for the
// provider's pause, and not for the price of its model to be known. What it has used beyond a limit is a
// debt when the limit is enforced again.
func TestShadowDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := inMemory(t, quotas{"m": {MaxRPM: 2}})
		withProjects(t, rl, project.Config{Default: &project.Limit{RequestsPerMinute: 2, DollarsPerDay: price.Dollar}})
		enforced := ratelimit.Call{Model: "m", Project: "p"}
		shadow := ratelimit.Call{Model: "m", Project: "p", ShadowModel: true, ShadowOf: "p"}
		for range 2 {
			if _, d, err := rl.AcquireCall(t.Context(), enforced); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		waited := make(chan time.Duration)
		began := time.Now()
		go func() {
			_, _, err := rl.AcquireCall(t.Context(), enforced)
			if err != nil {
				t.Error(err)
			}
			waited <- time.Since(began)
		}()
		synctest.Wait()
		rl.Heed(t.Context(), "m", llm.Limits{Pause: time.Hour, Cause: llm.RateLimited})
		unpriced := shadow
		unpriced.Dollars = price.Unknown
		for i := range 5 {
			call := shadow
			if i == 4 {
				call = unpriced
			}
			_, d, err := rl.AcquireCall(t.Context(), call)
			if err != nil || !d.Allowed || d.Shadow.Limit == "" {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("calls in shadow have waited %v", took)
		}
		if _, _, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: "p", ShadowOf: "other"}); !errors.Is(err, project.ErrInvalid) {
			t.Errorf("a shadow of another project: %v", err)
		}
		rl.Reset("m") // ends the pause
		if got := <-waited; got < time.Minute {
			t.Errorf("the call that waits has passed after %v", got)
		}
	})
}

// Observers get an event of a denial that a limit in shadow would have made, marked as one of a call that goes on.
func TestShadowIsObserved(t *testing.T) {
	var told testkit.Recorder[event.Event]
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(t.TempDir(), "none.yaml"), Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 1}}, Observer: &told,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if res, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", ShadowModel: true}); err != nil || !d.Allowed || res == nil {
			t.Fatal(d, err)
		}
	}
	var got []string
	for _, e := range told.Since() {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Limit, " ", e.Shadow))
	}
	testkit.Equal(t, "told", []string{"admitted  false", "denied max_rpm true"}, got)
}

// A node that enforces a limit on the store of another that has it in shadow never admits more than the
// limit by itself.
func TestShadowBesideAnEnforcingNode(t *testing.T) {
	for name, open := range shadowStores(t) {
		if name == "memory" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			cfg := ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{"both": {MaxRPM: 10}}}
			one, two := open(cfg), open(cfg)
			var wg sync.WaitGroup
			got := map[string]int{}
			var mu sync.Mutex
			for what, n := range map[string]*ratelimit.RateLimiter{"shadow": one, "enforce": two} {
				wg.Go(func() {
					passed, _ := atOnce(t, n, 100, ratelimit.Call{Model: "both", ShadowModel: what == "shadow"})
					mu.Lock()
					defer mu.Unlock()
					got[what] = passed
				})
			}
			wg.Wait()
			if got["shadow"] != 100 || got["enforce"] > 10 {
				t.Errorf("%v", got)
			}
			testkit.Equal(t, "what is used", fmt.Sprint(100+got["enforce"]), fmt.Sprint(two.Stats("both").RPM))
		})
	}
}
