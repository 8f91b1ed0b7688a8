package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call whose deadline its limits cannot meet fails at once at every door, with one sentence, and
// takes nothing. One whose deadline they can meet waits.
func TestDeadlineIsTooSoon(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 1}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		projects := withProjects(t, rl, project.Config{Default: &project.Limit{RequestsPerMinute: 1}})
		rl.TryAcquire("m", 1)
		if _, err := projects.Allow(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		for _, door := range []struct {
			name, limit string
			ask         func(context.Context) error
		}{
			{"Acquire", "max_rpm", func(ctx context.Context) error { _, err := rl.Acquire(ctx, "m", 1); return err }},
			{"AcquireTokens", "max_rpm", func(ctx context.Context) error {
				_, err := rl.AcquireTokens(ctx, "m", ratelimit.Tokens{Input: 1})
				return err
			}},
			{"AcquireCall", "max_rpm", func(ctx context.Context) error {
				_, _, err := rl.AcquireCall(ctx, ratelimit.Call{Model: "m", MaxWait: time.Hour})
				return err
			}},
			{"WaitForCapacity", "max_rpm", func(ctx context.Context) error { return rl.WaitForCapacity(ctx, "m", 1) }},
			{"Acquire of projects", "requests_per_minute", func(ctx context.Context) error {
				_, _, err := projects.Acquire(ctx, project.Call{Project: "p"})
				return err
			}},
			{"Spend", "requests_per_minute", func(ctx context.Context) error {
				_, err := projects.Spend(ctx, project.Call{Project: "p", MaxWait: time.Hour})
				return err
			}},
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			err := door.ask(ctx)
			cancel()
			want := `ratelimit: the limit "` + door.limit + `" lets the call pass in 1m0s, and its deadline is in 3s: context deadline exceeded`
			var late *ratelimit.DeadlineError
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &late) || err.Error() != want || time.Since(began) != 0 {
				t.Errorf("%s after %v: %v; want %s", door.name, time.Since(began), err, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		waits := make(chan error, 1)
		go func() { _, err := rl.Acquire(ctx, "m", 1); waits <- err }()
		synctest.Wait()
		behind, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := rl.Acquire(behind, "m", 1); !errors.As(err, new(*ratelimit.DeadlineError)) || time.Since(began) != 0 {
			t.Errorf("behind another after %v: %v", time.Since(began), err)
		}
		if err := <-waits; err != nil || time.Since(began) != time.Minute || rl.Stats("m").RPM != 1 {
			t.Errorf("in time, after %v: %v, %+v", time.Since(began), err, rl.Stats("m"))
		}
	})
}
