package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

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

const month = 30 * 24 * time.Hour

// The largest limits, and calls, count exactly.
func TestLargest(t *testing.T) {
	const most = 1 << 53
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			each := project.Limit{
				RequestsPerMinute: most, RequestsPerHour: most, RequestsPerDay: most,
				TokensPerMinute: most, TokensPerHour: most, TokensPerDay: most, TokensPerMonth: most,
				MaxConcurrent: most, Priority: 1000, Weight: 1 << 20,
			}
			l := newLimiter(t, kind(t, project.Config{Default: &each}))
			for _, c := range []project.Call{{Requests: most - 1, Estimated: most - 1}, {Estimated: 1}} {
				c.Project = "p"
				if d := spend(t, l, c); !d.Allowed {
					t.Fatalf("%+v is denied by %q for %v", c, d.Limit, d.RetryAfter)
				}
			}
			for name, n := range left(t, l, "p") {
				if n != 0 {
					t.Errorf("%s: %d left", name, n)
				}
			}
			if d := spend(t, l, project.Call{Project: "p"}); d.Allowed || d.Limit != "requests_per_day" {
				t.Errorf("%t, %q", d.Allowed, d.Limit)
			}
		})
	}
}

// A longer window that is added counts what is known to be used, and goes on to
// count it once the shorter one does not.
func TestAddedWindowCountsWhatWasUsed(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 10}}))
				c := project.Call{Project: "p", Requests: 10}
				if d := spend(t, l, c); !d.Allowed {
					t.Fatalf("%+v", d)
				}
				time.Sleep(30 * time.Second)
				setLimit(t, l, "p", project.Limit{RequestsPerMinute: 10, RequestsPerHour: 10})
				c.Requests = 1
				for _, wait := range []time.Duration{0, 31 * time.Second, 30 * time.Minute} {
					time.Sleep(wait)
					d := spend(t, l, c)
					if d.Allowed || d.Limit != "requests_per_hour" || left(t, l, "p")["requests_per_hour"] != 0 {
						t.Errorf("%v later: %t, %q, %v, left: %v", wait, d.Allowed, d.Limit, d.RetryAfter, left(t, l, "p"))
					}
				}
			})
		})
	}
}

// Peek says what would become of a request, and charges nothing.
func TestPeek(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 2, TokensPerHour: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 10
		peek := func(allowed bool, by string, retry time.Duration, minute, hour int64) {
			t.Helper()
			d, err := l.Peek(t.Context(), "p")
			if err != nil || d.Allowed != allowed || d.Limit != by || d.RetryAfter != retry {
				t.Errorf("%t, %q, %v, %v; want %t, %q, %v", d.Allowed, d.Limit, d.RetryAfter, err, allowed, by, retry)
			}
			if w := d.Windows(); len(w) != 2 || w[0].Remaining != minute || w[1].Remaining != hour {
				t.Errorf("%+v; want %d and %d to remain", w, minute, hour)
			}
		}
		peek(true, "", 0, 2, 10)
		peek(true, "", 0, 2, 10)
		l.join(t.Context(), "a", c)
		peek(false, "tokens_per_hour", time.Hour, 1, 0)
		l.commit("a", 1, 2)
		peek(true, "", 0, 1, 7)
		c.Estimated = 7
		l.join(t.Context(), "b", c)
		l.cancel("b")
		use(t, l.Limiter, "p", 1)
		l.sleep(time.Second)
		peek(false, "requests_per_minute", 59*time.Second, 0, 7)
	})
}

// All tokens count towards the limits of a project, also those that its provider does not count.
func TestCommitTokens(t *testing.T) {
	l := project.New(&project.Limit{TokensPerMinute: 100})
	res, _, err := l.Take(t.Context(), project.Call{Project: "p", Estimated: 50})
	if err != nil {
		t.Fatal(err)
	}
	res.Served()
	res.CommitTokens(llm.Tokens{Input: 20, FreeInput: 15, Output: 10})
	res.Commit(90, 0) // nothing any more
	if d, err := l.Peek(t.Context(), "p"); err != nil || d.Windows()[0].Remaining != 70 {
		t.Errorf("%+v, %v; want 70 left", d.Windows(), err)
	}
	var none *project.Reservation
	none.CommitTokens(llm.Tokens{Input: 1})
	none.Served()
}
