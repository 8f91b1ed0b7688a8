package telemetry_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/telemetry"
)

// A limiter's calls arrive in both observers: who waited for how long, who gave up,
// and what was used.
func TestWithLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, registry := newProm(t, telemetry.PrometheusConfig{})
		o, provider, recorder := newTraced(t)
		rl := telemetrytest.NewLimiter(t, ratelimit.Config{
			Quotas:   map[string]ratelimit.ModelQuota{"m": {MaxRPM: 2, MaxTPM: 1000}},
			Observer: event.Observers{p, o},
		})
		ctx, parent := provider.Tracer("test").Start(t.Context(), "chat")

		first, err := rl.Acquire(ctx, "m", 400)
		if err != nil {
			t.Fatal(err)
		}
		first.Commit(150, 50)
		second, err := rl.Acquire(ctx, "m", 400)
		if err != nil {
			t.Fatal(err)
		}
		second.Cancel()
		if _, d := rl.TryAcquire("m", 1001); d.RetryAfter != ratelimit.Never {
			t.Fatalf("more than the quota: %+v", d)
		}
		full, _ := rl.TryAcquire("m", 400)
		if _, d := rl.TryAcquire("m", 400); d.Allowed || full == nil {
			t.Fatalf("%v, and then %+v; want a reservation, and then a denial", full, d)
		}
		full.Commit(390, -1) // it is not known how long the answer was
		short, cancel := testkit.WithHiddenTimeout(ctx, 10*time.Second)
		defer cancel()
		if _, err := rl.Acquire(short, "m", 400); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a wait of 10s: %v", err)
		}
		waiting, err := rl.Acquire(ctx, "m", 400)
		if err != nil {
			t.Fatal(err)
		}
		waiting.Commit(500, 100)

		got := telemetrytest.Gathered(t, registry)
		for series, want := range map[string]float64{
			"ratelimit_decisions_total{limit=,model=m,outcome=admitted,project=,shadow=false}":      4,
			"ratelimit_decisions_total{limit=max_tpm,model=m,outcome=denied,project=,shadow=false}": 1,
			"ratelimit_decisions_total{limit=max_rpm,model=m,outcome=denied,project=,shadow=false}": 2,
			"ratelimit_wait_seconds_sum{model=m,outcome=admitted}":                                  50,
			"ratelimit_wait_seconds_count{model=m,outcome=admitted}":                                4,
			"ratelimit_wait_seconds_sum{model=m,outcome=denied}":                                    10,
			"ratelimit_used_tokens_total{model=m,project=,type=input}":                              1040,
			"ratelimit_used_tokens_total{model=m,project=,type=output}":                             150,
			"ratelimit_estimated_tokens_total{model=m,project=}":                                    800,
			"ratelimit_compared_tokens_total{model=m,project=}":                                     800,
			"ratelimit_estimate_error_ratio_count{model=m}":                                         2,
			"ratelimit_cancelled_total{model=m,project=}":                                           1,
		} {
			if got[series] != want {
				t.Errorf("%s is %v, want %v", series, got[series], want)
			}
		}
		var lengths []time.Duration
		for _, span := range recorder.Ended() {
			if span.Parent().SpanID() == parent.SpanContext().SpanID() {
				lengths = append(lengths, span.EndTime().Sub(span.StartTime()))
			}
		}
		testkit.Equal(t, "spans below the caller's", []time.Duration{0, 0, 10 * time.Second, 50 * time.Second}, lengths)
	})
}

// What a provider says through a limiter, and what it means for the calls of a project,
// is counted once: a refusal is no denial, and who is denied for it was not refused.
func TestWithProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, registry := newProm(t, telemetry.PrometheusConfig{Projects: []string{"acme"}})
		o, _, recorder := newTraced(t)
		rl := telemetrytest.NewLimiter(t, ratelimit.Config{
			Quotas:   map[string]ratelimit.ModelQuota{"m": {MaxRPM: 5, Auto: true}},
			Observer: event.Observers{p, o},
		})
		if _, err := rl.NewProjects(project.Config{Default: &project.Limit{RequestsPerMinute: 60}}); err != nil {
			t.Fatal(err)
		}
		rl.Heed(t.Context(), "m", llm.Limits{
			Windows: []llm.Window{{Unit: llm.Requests, Per: time.Minute, Limit: 10, Remaining: 6, Reset: time.Minute}},
			Cause:   llm.Overloaded, Pause: 20 * time.Second,
		})
		rl.Heed(t.Context(), "made-up", llm.Limits{Cause: llm.SpendCap, Pause: 20 * time.Second})
		if n := len(recorder.Started()); n != 0 {
			t.Errorf("%d spans before there was a call", n)
		}

		call := ratelimit.Call{Project: "acme", Model: "m"}
		if _, d, err := rl.TryAcquireCall(t.Context(), call); err != nil || d.Allowed || d.Limit != "paused" || d.RetryAfter != 20*time.Second {
			t.Errorf("while it is paused: %+v, %v", d, err)
		}
		call.MaxWait = time.Second
		if _, d, err := rl.AcquireCall(t.Context(), call); !errors.Is(err, context.DeadlineExceeded) || d.Limit != "paused" {
			t.Errorf("a wait that is too short: %+v, %v", d, err)
		}
		call.MaxWait = time.Minute
		start := time.Now()
		if _, d, err := rl.AcquireCall(t.Context(), call); err != nil || !d.Allowed || time.Since(start) != 20*time.Second {
			t.Errorf("a wait that is long enough: %+v, %v after %v", d, err, time.Since(start))
		}

		got := telemetrytest.Gathered(t, registry)
		maps.DeleteFunc(got, func(_ string, by float64) bool { return by == 0 })
		want := map[string]float64{
			"ratelimit_quota_learned_total{limit=max_rpm,model=m}":                                     1,
			"ratelimit_quota_lowered_total{limit=max_rpm,model=m}":                                     1,
			"ratelimit_provider_throttled_total{cause=overload,model=m}":                               1,
			"ratelimit_provider_throttled_total{cause=spend_cap,model=other}":                          1,
			"ratelimit_decisions_total{limit=paused,model=m,outcome=denied,project=acme,shadow=false}": 2,
			"ratelimit_decisions_total{limit=,model=m,outcome=admitted,project=acme,shadow=false}":     1,
			"ratelimit_wait_seconds_count{model=m,outcome=admitted}":                                   1,
			"ratelimit_wait_seconds_sum{model=m,outcome=admitted}":                                     20,
		}
		testkit.Equal(t, "series", want, got)
		if n := len(recorder.Ended()); n != 3 {
			t.Errorf("%d spans, want one a call", n)
		}
	})
}
