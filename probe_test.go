package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// probes asks for a call of a model every second for so long, and returns when calls have
// passed. Each of them is throttled again.
func probes(t *testing.T, rl *ratelimit.RateLimiter, model string, during, pause time.Duration) (passed []time.Duration) {
	for start := time.Now(); time.Since(start) < during; time.Sleep(time.Second) {
		res, d := rl.TryAcquire(model, 5)
		if !d.Allowed {
			if d.Code != isPaused || d.RetryAfter > ratelimit.DefaultMaxPause {
				t.Errorf("after %v: %+v", time.Since(start), d)
			}
			continue
		}
		passed = append(passed, time.Since(start))
		refuse(t, rl, model, pause)
		res.Commit(0, 0)
	}
	return passed
}

// A provider that keeps throttling gets few calls. Once, one 429 that asked for an hour denied
// all calls for an hour; a bound alone would let all calls pass.
func TestRefusedProbesAreFew(t *testing.T) {
	minutes := func(list ...int) (all []time.Duration) {
		for _, n := range list {
			all = append(all, time.Duration(n)*time.Minute)
		}
		return all
	}
	for model := range pausableCodes {
		t.Run(model, func(t *testing.T) {
			everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
				refuse(t, rl, model, time.Hour)
				if got, want := probes(t, rl, model, 18*time.Minute, time.Hour), minutes(1, 3, 7, 12, 17); !slices.Equal(got, want) {
					t.Errorf("calls passed after %v; want %v", got, want)
				}
			})
		})
	}
}

// One call finds out that a model is back, and then all waiting calls pass in their order.
func TestProbeEndsThePause(t *testing.T) {
	for model := range pausableCodes {
		t.Run(model, func(t *testing.T) {
			everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
				refuse(t, rl, model, time.Hour)
				l := newPausedLine(t)
				var probe *ratelimit.Reservation
				l.wait("probe", func() (err error) {
					probe, err = rl.Acquire(t.Context(), model, 5)
					return err
				})
				for i := range 3 {
					l.acquire(rl, model, fmt.Sprint(i))
				}
				time.Sleep(time.Minute)
				l.want("probe at 1m0s")
				if _, d := rl.TryAcquire(model, 5); d.Code != isPaused {
					t.Errorf("beside the probe: %+v", d)
				}
				time.Sleep(10 * time.Second)
				probe.Served()
				l.want("probe at 1m0s", "0 at 1m10s", "1 at 1m10s", "2 at 1m10s")
				if rl.Paused(model) != 0 || !rl.CanSend(model, 5) {
					t.Errorf("it is paused for %v", rl.Paused(model))
				}
				probe.Commit(2, 3)
			})
		})
	}
}

// The outcome of a probe decides which calls pass next.
func TestProbeOutcomes(t *testing.T) {
	for name, step := range map[string]struct {
		end  func(rl *ratelimit.RateLimiter, res *ratelimit.Reservation)
		next time.Duration // how long it takes until another call passes
		all  bool          // all calls pass then
	}{
		"served":               {end: func(_ *ratelimit.RateLimiter, res *ratelimit.Reservation) { res.Commit(2, 3) }, all: true},
		"never sent":           {end: func(_ *ratelimit.RateLimiter, res *ratelimit.Reservation) { res.Cancel() }},
		"refused as malformed": {end: func(_ *ratelimit.RateLimiter, res *ratelimit.Reservation) { res.Commit(0, 0) }, next: time.Second},
		"unknown":              {end: func(_ *ratelimit.RateLimiter, res *ratelimit.Reservation) { res.Commit(-1, -1) }, next: 2 * time.Minute},
		"unanswered":           {end: func(*ratelimit.RateLimiter, *ratelimit.Reservation) {}, next: 2 * time.Minute},
		"refused, and told so late": {end: func(rl *ratelimit.RateLimiter, res *ratelimit.Reservation) {
			rl.Heed(context.Background(), "m", refused(time.Second))
			res.Commit(2, 3)
		}, next: 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
				refuse(t, rl, "m", time.Hour)
				time.Sleep(time.Minute)
				res := mustTake(t, rl, 5)
				step.end(rl, res)
				for _, wait := range []time.Duration{max(step.next-1, 0), 1} {
					if d := rl.Decide("m", 5); step.next > 0 && d.Code != isPaused {
						t.Errorf("too early: %+v", d)
					}
					time.Sleep(wait)
				}
				mustTake(t, rl, 5)
				if d := rl.Decide("m", 5); d.Allowed != step.all {
					t.Errorf("the call after it: %+v", d)
				}
			})
		})
	}
}

// Probes that have found out nothing do not delay the next one. Once, three calls that were
// never sent raised the time between probes to the longest there is.
func TestOnlyRefusedProbesMakeProbesRare(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		refuse(t, rl, "m", time.Hour)
		time.Sleep(time.Minute)
		for range 3 {
			mustTake(t, rl, 5).Cancel()
		}
		if got, want := probes(t, rl, "m", 7*time.Minute, time.Hour), []time.Duration{0, 2 * time.Minute, 6 * time.Minute}; !slices.Equal(got, want) {
			t.Errorf("calls passed after %v; want %v", got, want)
		}
	})
}

// A call that its quota denies is no probe: the next one is.
func TestDeniedCallsAreNoProbes(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		refuse(t, rl, "m", time.Hour)
		time.Sleep(time.Minute)
		if _, d := rl.TryAcquire("m", 1001); d.Code != overTPM {
			t.Errorf("%+v", d)
		}
		mustTake(t, rl, 5)
	})
}

// A call whose MaxWait is shorter than the pause fails at once, also behind calls that may
// wait longer.
func TestNobodyWaitsForAProbeInVain(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		refuse(t, rl, "m", time.Hour)
		call := projectCall{Model: "m", Estimated: 5, MaxWait: 2 * time.Minute}
		start := time.Now()
		for range 2 {
			_, d, err := acquireCall(rl, t.Context(), call)
			if err == nil || d.Code != isPaused || time.Since(start) != 0 {
				t.Errorf("%+v, %v after %v", d, err, time.Since(start))
			}
			newPausedLine(t).acquire(rl, "m", "patient")
		}
		time.Sleep(time.Hour)
	})
}

// MaxPause and HeedWithin bound a pause, and nonsense is refused.
func TestMaxPause(t *testing.T) {
	if _, err := ratelimit.NewWithConfig(ratelimit.Config{MaxPause: -1}); err == nil {
		t.Error("a negative MaxPause")
	}
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: pausable, MaxPause: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for model, most := range map[string]time.Duration{"m": 0, "free": 20 * time.Second} {
		rl.HeedWithin(t.Context(), model, llm.Limits{Cause: llm.DayLimited, Pause: time.Hour}, most)
		if left := rl.Paused(model); left > max(most, 10*time.Second) || left < max(most, 10*time.Second)-5*time.Second {
			t.Errorf("%s is paused for %v", model, left)
		}
	}
}

// On Redis, the probe of one limiter ends the pause for all.
func TestRedisProbe(t *testing.T) {
	url := redistest.New(t).URL()
	a := onRedisWith(t, ratelimit.Config{FilePath: url, Quotas: pausable, MaxPause: time.Millisecond})
	b := onRedis(t, url, pausable)
	refuse(t, b, "m", time.Hour)
	if err := a.Load(); err != nil { // Load reads the pause
		t.Fatal(err)
	}
	res, err := a.Acquire(t.Context(), "m", 5)
	if err != nil {
		t.Fatal(err)
	}
	if b.CanSend("m", 5) {
		t.Error("b is not paused before the probe is served")
	}
	res.Served()
	testkit.Eventually(t, "b goes on", func() bool { return b.CanSend("m", 5) })
}
