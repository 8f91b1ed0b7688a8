package project_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// at sleeps until a time of the day, of which the bubble's first begins.
func at(t *testing.T, clock string) {
	t.Helper()
	then, err := time.Parse("15:04:05.999999999", clock)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	time.Sleep(then.AddDate(now.Year(), int(now.Month())-1, now.Day()-1).Sub(now))
}

// allow asks for a request, and wants an error that says so if it is denied.
func allow(t *testing.T, l *project.Limiter, id string) bool {
	t.Helper()
	allowed, err := l.Allow(t.Context(), id)
	if allowed != (err == nil) || !allowed && !errors.Is(err, project.ErrExceeded) {
		t.Fatalf("%t, %v", allowed, err)
	}
	return allowed
}

// Sixty requests between 12:00:30 and 12:01:30 are a minute's: the next passes when
// the first of them has left, and then they leave as they came.
func TestMinuteSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{})
		at(t, "12:00:30")
		for i := range 60 {
			if !allow(t, l, "project-123") {
				t.Fatalf("request %d is denied", i+1)
			}
			time.Sleep(time.Second)
		}
		for i := range 120 { // it is 12:01:30, and the first has left
			if !allow(t, l, "project-123") {
				t.Fatalf("request %d is denied", 61+i)
			}
			if allow(t, l, "project-123") {
				t.Fatalf("61 requests in a minute")
			}
			time.Sleep(time.Second - 1)
			if allow(t, l, "project-123") {
				t.Fatalf("61 requests in a minute, but for a nanosecond")
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// A minute that begins at the full minute would let twice as many pass around it.
func TestBoundaryDoesNotDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{})
		at(t, "12:00:59.9")
		use(t, l, "p", 60)
		for _, clock := range []string{"12:01:00", "12:01:00.000000001", "12:01:30", "12:01:59.899999999"} {
			at(t, clock)
			if allow(t, l, "p") {
				t.Errorf("61 requests in a minute at %s", clock)
			}
		}
		at(t, "12:01:59.9")
		use(t, l, "p", 60)
	})
}

// Without a limit it is 60, 1,000 and 10,000: each denies in its turn, says so, and
// says for how long.
func TestEachWindowDenies(t *testing.T) {
	const minute, hour, day = "ratelimit: rate limit exceeded: 60 requests/minute", "ratelimit: rate limit exceeded: 1000 requests/hour", "ratelimit: rate limit exceeded: 10000 requests/day"
	synctest.Test(t, func(t *testing.T) {
		l := project.New(nil)
		start := time.Now()
		denials := map[string]int{}
		passed := 0
		for passed <= 10_000 {
			allowed, err := l.Allow(t.Context(), "p")
			if allowed {
				passed++
				continue
			}
			denials[err.Error()]++
			d := spend(t, l, project.Call{Project: "p"})
			if err.Error() == day {
				if d.RetryAfter != 24*time.Hour-time.Since(start) {
					t.Errorf("a day after %v: %v", time.Since(start), d.RetryAfter)
				}
				break
			}
			time.Sleep(d.RetryAfter)
		}
		if passed != 10_000 || denials[minute] != 16*10 || denials[hour] != 9 || len(denials) != 3 {
			t.Errorf("%d passed, with %v", passed, denials)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Limits on tokens say so too.
func TestTokensDeny(t *testing.T) {
	for says, limit := range map[string]project.Limit{
		"tokens-minute": {TokensPerMinute: 7},
		"tokens-hour":   {TokensPerHour: 7},
		"tokens-day":    {TokensPerDay: 7},
		"tokens-month":  {TokensPerMonth: 7},
	} {
		l := limited(t, limit)
		if d := spend(t, l, project.Call{Project: "p", Estimated: 7}); !d.Allowed || len(d.Windows()) != 1 {
			t.Errorf("%+v", d)
		}
		if d := spend(t, l, project.Call{Project: "p", Estimated: 1}); d.Allowed || d.Exceeded != says {
			t.Errorf("%+v; want it denied by %s", d, says)
		}
		if !allow(t, l, "p") { // of requests it may have any number
			t.Errorf("%s denies a request", says)
		}
	}
}

// Zero is unlimited, in one field and in all.
func TestUnlimited(t *testing.T) {
	l := limited(t, project.Limit{})
	for range 10_000 {
		if d := spend(t, l, project.Call{Project: "p", Estimated: 1 << 50}); !d.Allowed || len(d.Windows()) != 0 {
			t.Fatalf("%+v", d)
		}
	}
	res, d, err := l.Acquire(t.Context(), project.Call{Project: "p", Requests: 1 << 50})
	if err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	res.Commit(1<<50, 1<<50)
}

// What is in a limit when the limiter is made is what counts.
func TestLimitIsCopied(t *testing.T) {
	limit := project.Limit{RequestsPerMinute: 1}
	own := map[string]project.Limit{"q": {RequestsPerMinute: 2}}
	l := newLimiter(t, project.Config{Default: &limit, Limits: own})
	limit.RequestsPerMinute, own["q"] = 0, project.Limit{}
	l.Limits()["q"] = project.Limit{}
	use(t, l, "p", 1)
	use(t, l, "q", 2)
	if allow(t, l, "p") || allow(t, l, "q") {
		t.Error("a limit changes with what it was made of")
	}
}

// More requests at different times than a project's memory has room for: never more
// than the limit, and they come back not much late.
func TestManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 10_000
		l := limited(t, project.Limit{RequestsPerDay: most})
		start := time.Now()
		for range most {
			use(t, l, "p", 1)
			time.Sleep(time.Second)
		}
		d := spend(t, l, project.Call{Project: "p"})
		if early := time.Since(start) + d.RetryAfter - 24*time.Hour; d.Allowed || early < 0 || early > 24*time.Hour/1024 {
			t.Fatalf("after %v: %t, again in %v", time.Since(start), d.Allowed, d.RetryAfter)
		}
		time.Sleep(d.RetryAfter)
		use(t, l, "p", 1)
	})
}

// A call that nobody waits for any more is charged nothing.
func TestContextHasEnded(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, project.Config{}))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			c := project.Call{Project: "p"}
			d, spent := l.Spend(ctx, c)
			res, taken, failed := l.Take(ctx, c)
			waited, acquired, never := l.Acquire(ctx, c)
			for _, err := range []error{spent, failed, never} {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v; want %v", err, context.Canceled)
				}
			}
			if d.Allowed || taken.Allowed || acquired.Allowed || res != nil || waited != nil {
				t.Errorf("%v, %v, %v, %v, %v", d, taken, acquired, res, waited)
			}
			if left := left(t, l, "p"); left["minute"] != 60 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
