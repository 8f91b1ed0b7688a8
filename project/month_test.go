package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
)

const month = 30 * 24 * time.Hour

// A budget is of any 30 days: what was used comes back when these are over, to the
// nanosecond, whatever shorter windows there are.
func TestMonthSlides(t *testing.T) {
	for _, each := range []project.Limit{{TokensPerMonth: 100}, {TokensPerMinute: 60, TokensPerHour: 80, TokensPerDay: 90, TokensPerMonth: 100}} {
		synctest.Test(t, func(t *testing.T) {
			l := limited(t, each)
			c := project.Call{Project: "p", Estimated: 50}
			for range 2 {
				if d := spend(t, l, c); !d.Allowed {
					t.Fatalf("%+v", d)
				}
				time.Sleep(10 * 24 * time.Hour)
			}
			d := spend(t, l, c)
			if d.Allowed || d.Exceeded != "tokens-month" || d.RetryAfter != 10*24*time.Hour {
				t.Fatalf("%t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter)
			}
			time.Sleep(d.RetryAfter - 1)
			if d := spend(t, l, c); d.Allowed || d.RetryAfter != 1 {
				t.Errorf("a nanosecond early: %t, %v", d.Allowed, d.RetryAfter)
			}
			time.Sleep(time.Nanosecond)
			if d := spend(t, l, c); !d.Allowed {
				t.Errorf("%q, %v", d.Exceeded, d.RetryAfter)
			}
		})
	}
}

// More calls than a project's memory has room for, with all windows: never more than the
// budget in any 30 days, and it comes back not much late.
func TestManyTimesInAMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20_000
		l := limited(t, project.Limit{TokensPerMinute: 1 << 40, TokensPerHour: 1 << 40, TokensPerDay: 1 << 40, TokensPerMonth: calls})
		c := project.Call{Project: "p", Estimated: 1}
		start := time.Now()
		for range calls {
			if d := spend(t, l, c); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			time.Sleep(2 * time.Minute)
		}
		d := spend(t, l, c)
		if late := time.Since(start) + d.RetryAfter - month; d.Allowed || late < 0 || late > month*4/1024 {
			t.Fatalf("after %v: %t, again in %v", time.Since(start), d.Allowed, d.RetryAfter)
		}
		c.Estimated = calls
		time.Sleep(spend(t, l, c).RetryAfter)
		if d := spend(t, l, c); !d.Allowed || time.Since(start) < month+(calls-1)*2*time.Minute {
			t.Errorf("after %v: %t, %v", time.Since(start), d.Allowed, d.RetryAfter)
		}
	})
}

// A budget in Redis lasts as long as in memory.
func TestMonthInRedis(t *testing.T) {
	server := redistest.New(t)
	l := newLimiter(t, project.Config{Store: openRedis(t, server.URL()), Default: &project.Limit{TokensPerMinute: 100, TokensPerMonth: 100}})
	if d := spend(t, l, project.Call{Project: "p", Estimated: 100}); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	d, err := l.Peek(t.Context(), "p")
	if err != nil || d.Exceeded != "tokens-month" || d.RetryAfter > month || d.RetryAfter < month-time.Hour {
		t.Errorf("%+v, %v", d, err)
	}
	keys, ok := do(t, server, "KEYS", "*project*tokens*").([]any)
	if !ok || len(keys) == 0 {
		t.Fatalf("%v", keys)
	}
	for _, key := range keys {
		if left := do(t, server, "PTTL", key.(string)).(int64); left < (month - time.Hour).Milliseconds() {
			t.Errorf("%v is forgotten in %d ms", key, left)
		}
	}
}
