package project_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call that finds as many under way as may be waits until one of them ends, whatever
// becomes of it. Calls that wait pass one by one, in order.
func TestConcurrent(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{MaxConcurrent: 2}}, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.join(t.Context(), name, c)
		}
		l.passed(t, "a", "b")
		l.sleep(3300 * time.Millisecond)
		l.commit("b", 5, 5)
		synctest.Wait()
		l.passed(t, "a", "b", "c")
		l.cancel("c")
		l.commit("b", 1, 1) // it has ended already
		synctest.Wait()
		l.passed(t, "a", "b", "c", "d")
		l.commit("a", -1, -1)
		synctest.Wait()
		l.passed(t, "a", "b", "c", "d", "e")
		if at := l.at["e"]; at != 3300*time.Millisecond {
			t.Errorf("it passes after %v, and not when another ends", at)
		}
	})
}

// A call that is denied for it has taken nothing of anything, and may ask again
// soon.
func TestConcurrentTakesAllOrNothing(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 2, TokensPerMonth: 100, MaxConcurrent: 1}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 10
		res, d, err := l.Take(t.Context(), c)
		if err != nil || !d.Allowed || d.Concurrent != 1 || len(d.Windows()) != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		for range 3 {
			none, d, err := l.Take(t.Context(), c)
			if err != nil || none != nil || d.Allowed || d.Limit != project.Concurrent || d.RetryAfter != time.Second || d.Concurrent != 1 {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		d, err = l.Peek(t.Context(), "p")
		if err != nil || d.Allowed || d.Limit != project.Concurrent || d.RetryAfter != time.Second || d.Concurrent != 1 {
			t.Errorf("%+v, %v", d, err)
		}
		if left := left(t, l.Limiter, "p"); left["requests_per_minute"] != 1 || left["tokens_per_month"] != 90 {
			t.Errorf("left: %v", left)
		}
		res.Commit(10, 0)
		if d, err := l.Peek(t.Context(), "p"); err != nil || !d.Allowed || d.Concurrent != 0 {
			t.Errorf("%+v, %v", d, err)
		}
		again, _, err := l.Take(t.Context(), c)
		if err != nil || again == nil {
			t.Fatal(err)
		}
		// The minute denies for longer than the guess, so it is what counts.
		if _, d, _ := l.Take(t.Context(), c); d.Limit != "requests_per_minute" || d.RetryAfter != time.Minute {
			t.Errorf("%q, %v", d.Limit, d.RetryAfter)
		}
	})
}

// The call of a process that has died holds its place for ten minutes.
func TestConcurrentLease(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{MaxConcurrent: 1}}, func(t *testing.T, l *line, c project.Call) {
		l.join(t.Context(), "dies", c)
		l.sleep(time.Minute)
		l.join(t.Context(), "waits", c)
		l.sleep(10*time.Minute - 1)
		l.passed(t, "dies")
		l.sleep(10 * time.Minute)
		l.passed(t, "dies", "waits")
		l.commit("dies", 1, 1) // it had no place any more
		if d, err := l.Peek(t.Context(), "p"); err != nil || d.Concurrent != 1 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// The limiter does not learn when a call ends that Spend has charged, so the call takes no
// place, and does not wait for one.
func TestConcurrentDoesNotCountWhatIsSpent(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 20, TokensPerMinute: 100, MaxConcurrent: 1}}, func(t *testing.T, l *line, c project.Call) {
		spent := 0
		all := func() {
			t.Helper()
			for _, tokens := range []int{0, 5} {
				for _, wait := range []time.Duration{0, time.Second} {
					s := c
					s.Estimated, s.MaxWait = tokens, wait
					if d := spend(t, l.Limiter, s); !d.Allowed || d.Concurrent != 0 {
						t.Errorf("%d tokens, %v: %+v", tokens, wait, d)
					}
					spent++
				}
			}
		}
		all()
		l.join(t.Context(), "a", c)
		all()
		l.join(t.Context(), "b", c)
		all()
		l.passed(t, "a")
		if d, err := l.Peek(t.Context(), "p"); err != nil || d.Concurrent != 1 || d.Windows()[0].Remaining != int64(20-spent-1) {
			t.Errorf("%+v, %v", d, err)
		}
		if _, d, err := l.Take(t.Context(), c); err != nil || d.Allowed {
			t.Errorf("it has passed the call that waits: %+v, %v", d, err)
		}
	})
}

// A call of Spend that has to wait for the minute does not wait behind calls that wait for
// others to end.
func TestSpendDoesNotWaitForAPlace(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 2, MaxConcurrent: 1}}, func(t *testing.T, l *line, c project.Call) {
		l.join(t.Context(), "a", c)
		l.join(t.Context(), "b", c)
		use(t, l.Limiter, "p", 1)
		c.MaxWait = 2 * time.Minute
		if d := spend(t, l.Limiter, c); !d.Allowed || time.Since(l.start) != time.Minute {
			t.Errorf("%+v, after %v", d, time.Since(l.start))
		}
		l.passed(t, "a")
	})
}

// Never are more calls under way than may be, by any number of limiters on one store, and
// all pass in the end.
func TestConcurrentTogether(t *testing.T) {
	const most, tokens, callers, calls = 3, 25, 8, 10
	for name, shared := range stores {
		t.Run(name, func(t *testing.T) {
			open := shared(t)
			var running, inFlight, passed atomic.Int64
			var all sync.WaitGroup
			for range 2 {
				l := newLimiter(t, project.Config{Default: &project.Limit{MaxConcurrent: most, MaxTokensInFlight: tokens}, Store: open()})
				for range callers / 2 {
					all.Go(func() {
						for i := range int64(calls) {
							res, d, err := l.Acquire(t.Context(), project.Call{Project: "p", Estimated: 5 + int(i)})
							if err != nil {
								t.Errorf("%+v, %v", d, err)
								return
							}
							if n, held := running.Add(1), inFlight.Add(5+i); n > most || held > tokens {
								t.Errorf("%d are under way, with %d tokens", n, held)
							}
							passed.Add(1)
							running.Add(-1)
							inFlight.Add(-5 - i)
							res.Commit(1, 0)
						}
					})
				}
			}
			all.Wait()
			if passed.Load() != callers*calls {
				t.Errorf("%d have passed of %d", passed.Load(), callers*calls)
			}
		})
	}
}

// A project below another with a max_share is expected to use all of the tokens in flight that the other may have: they are
// not divided, so that a lower estimate would let calls hold more tokens than they have reserved.
func TestTokensInFlightAreNotDivided(t *testing.T) {
	l := newLimiter(t, project.Config{Limits: map[string]project.Limit{"acme": {MaxTokensInFlight: 10_000}, "acme/search": {MaxShare: 10}}})
	if caps := hidden.Of[engine.Projects](l).Caps(engine.Owners{Project: "acme/search"}); caps.Tokens != 10_000 {
		t.Errorf("%d tokens", caps.Tokens)
	}
}
