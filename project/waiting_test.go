package project_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Spend waits in turn for as long as it may.
func TestSpendWaits(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1, TokensPerMinute: 5}}, func(t *testing.T, l *line, c project.Call) {
		c.MaxWait = 70 * time.Second
		if d := spend(t, l.Limiter, c); !d.Allowed || len(d.Windows()) != 1 {
			t.Fatalf("%+v", d)
		}
		if d := spend(t, l.Limiter, c); !d.Allowed || time.Since(l.start) != time.Minute {
			t.Fatalf("after %v: %+v", time.Since(l.start), d)
		}
		c.MaxWait = 10 * time.Second
		d, err := l.Spend(t.Context(), c)
		if d.Allowed || !errors.Is(err, context.DeadlineExceeded) || d.Limit != "requests_per_minute" || d.RetryAfter != time.Minute || time.Since(l.start) != time.Minute {
			t.Errorf("after %v: %t, %q, %v, %v", time.Since(l.start), d.Allowed, d.Limit, d.RetryAfter, err)
		}
		if left := left(t, l.Limiter, "p"); left["requests_per_minute"] != 0 || left["tokens_per_minute"] != 5 {
			t.Errorf("left: %v", left)
		}
		c.Estimated = 6
		if _, err := l.Spend(t.Context(), c); !errors.Is(err, project.ErrNever) {
			t.Errorf("%v; want %v", err, project.ErrNever)
		}
	})
}

// A call that would wait for as long as it may, or longer, fails at once; one that waits
// behind others, when its time is over. Nothing is charged.
func TestMaxWait(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1}}, func(t *testing.T, l *line, c project.Call) {
		l.join(t.Context(), "first", c)
		l.sleep(20 * time.Second)
		c.MaxWait = 40 * time.Second
		l.join(t.Context(), "too long", c)
		l.failed(t, "too long", 20*time.Second, context.DeadlineExceeded)
		if _, d := l.result("too long"); d.Allowed || d.Limit != "requests_per_minute" || d.RetryAfter != 40*time.Second {
			t.Errorf("%t, %q, %v", d.Allowed, d.Limit, d.RetryAfter)
		}
		c.MaxWait = 41 * time.Second
		l.join(t.Context(), "just right", c)
		c.MaxWait = 50 * time.Second
		l.join(t.Context(), "behind", c)
		l.sleep(time.Minute)
		l.passed(t, "first", "just right")
		l.sleep(80 * time.Second)
		l.failed(t, "behind", time.Minute, context.DeadlineExceeded) // since it fails now
		l.passed(t, "first", "just right")
		l.sleep(2 * time.Minute)
		use(t, l.Limiter, "p", 1)
	})
	l := limited(t, project.Limit{})
	for door, err := range everyDoor(l, project.Call{Project: "p", MaxWait: -1}) {
		if !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%s: %v", door, err)
		}
	}
}

// A wait that ends early has taken nothing, and holds up no other call any more.
func TestGivesUp(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 6
		l.join(t.Context(), "a", c)
		soon, cancel := testkit.WithHiddenTimeout(t.Context(), 5*time.Second)
		defer cancel()
		leaves, leave := context.WithCancel(t.Context())
		l.join(soon, "deadline", c)
		l.join(leaves, "leaves", c)
		c.Estimated = 4
		l.join(t.Context(), "small", c)
		l.passed(t, "a")
		l.sleep(3 * time.Second)
		leave()
		l.sleep(5 * time.Second)
		l.failed(t, "leaves", 3*time.Second, context.Canceled)
		l.failed(t, "deadline", 5*time.Second, context.DeadlineExceeded)
		l.passed(t, "a", "small")
		if _, d := l.result("deadline"); d.Allowed || d.Limit != "tokens_per_minute" || d.RetryAfter != time.Minute {
			t.Errorf("the last that it was told: %t, %q, %v", d.Allowed, d.Limit, d.RetryAfter)
		}
		l.cancel("small")
		if left := left(t, l.Limiter, "p"); left["tokens_per_minute"] != 4 {
			t.Errorf("left: %v", left)
		}
	})
}

// A call whose context has ended is charged nothing.
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
			if left := left(t, l, "p"); left["requests_per_minute"] != 60 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestCrowded(t *testing.T) {
	cfg := project.Config{Default: &project.Limit{RequestsPerMinute: 1}, MaxWaiting: 2}
	inLine(t, cfg, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"first", "a", "b", "too many"} {
			l.join(t.Context(), name, c)
		}
		l.failed(t, "too many", 0, project.ErrCrowded)
		if _, d := l.result("too many"); d.Allowed || d.Limit != "requests_per_minute" || d.RetryAfter <= 0 {
			t.Errorf("a call that may not wait is told %t, %q, %v", d.Allowed, d.Limit, d.RetryAfter)
		}
		l.sleep(time.Second)
		other := c
		other.Project = "q"
		for _, name := range []string{"q first", "q a", "q b"} {
			l.join(t.Context(), name, other)
		}
		l.sleep(time.Minute + time.Second)
		l.passed(t, "first", "q first", "a", "q a")
		l.join(t.Context(), "c", c) // there is a place again
		l.sleep(time.Hour)
		l.passed(t, "first", "q first", "a", "q a", "b", "q b", "c")
	})
}

// A call that is larger than a limit fails at once, even if others wait.
func TestNever(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 5, TokensPerHour: 10}}, func(t *testing.T, l *line, c project.Call) {
		large := []struct {
			by               string
			requests, tokens int
		}{{"requests_per_minute", 6, 0}, {"tokens_per_hour", 0, 11}, {"requests_per_minute", 1 << 53, 1 << 53}}
		ask := func(when string) {
			for _, each := range large {
				c.Requests, c.Estimated = each.requests, each.tokens
				d := spend(t, l.Limiter, c)
				_, taken, err := l.Take(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprint(when, each)
				l.join(t.Context(), name, c)
				l.failed(t, name, time.Since(l.start), project.ErrNever)
				_, told := l.result(name)
				for _, d := range []project.Decision{d, taken, told} {
					if d.Allowed || d.RetryAfter != project.Never || d.Limit != each.by {
						t.Errorf("%s, %+v: %t, %q, %v", when, each, d.Allowed, d.Limit, d.RetryAfter)
					}
				}
			}
		}
		ask("alone")
		if left := left(t, l.Limiter, "p"); left["requests_per_minute"] != 5 || left["tokens_per_hour"] != 10 {
			t.Errorf("what can never pass was charged: %v", left)
		}
		c.Requests, c.Estimated = 5, 10
		l.join(t.Context(), "all", c)
		l.join(t.Context(), "all again", c)
		ask("while another waits")
		l.sleep(time.Hour)
		l.passed(t, "all", "all again")
	})
}

// A call that comes while others wait learns when the first of them passes, although
// there is room for it, and nothing is charged.
func TestSpendWhileOthersWait(t *testing.T) {
	for by, of := range map[string]func(n int) project.Call{
		"requests_per_minute": func(n int) project.Call { return project.Call{Project: "p", Requests: n} },
		"tokens_per_minute":   func(n int) project.Call { return project.Call{Project: "p", Estimated: n} },
	} {
		each := project.Limit{RequestsPerMinute: 10, TokensPerMinute: 20}
		if by == "tokens_per_minute" {
			each = project.Limit{TokensPerMinute: 10}
		}
		inLine(t, project.Config{Default: &each}, func(t *testing.T, l *line, _ project.Call) {
			l.join(t.Context(), "a", of(6))
			l.join(t.Context(), "b", of(6))
			l.sleep(20 * time.Second)
			for range 3 {
				d := spend(t, l.Limiter, of(1))
				_, taken, err := l.Take(t.Context(), of(1))
				for _, d := range []project.Decision{d, taken} {
					if d.Allowed || d.RetryAfter != 40*time.Second || d.Limit != by || err != nil {
						t.Fatalf("%t, %q, %v, %v", d.Allowed, d.Limit, d.RetryAfter, err)
					}
				}
			}
			other := of(10)
			other.Project = "q"
			if d := spend(t, l.Limiter, other); !d.Allowed {
				t.Errorf("another project is denied by %q for %v", d.Limit, d.RetryAfter)
			}
			l.sleep(time.Minute)
			l.passed(t, "a", "b")
			if d := spend(t, l.Limiter, of(4)); !d.Allowed {
				t.Errorf("once no call waits: %q, %v", d.Limit, d.RetryAfter)
			}
		})
	}
}

// Calls without tokens wait neither for tokens nor behind calls that do, and calls with
// tokens do not pass calls that wait for requests.
func TestPlainCallsBesideTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, project.Config{Default: &project.Limit{RequestsPerMinute: 5, TokensPerHour: 10}})
		ctx := t.Context()
		plain := project.Call{Project: "p", MaxWait: 2 * time.Minute}
		if _, _, err := l.Take(ctx, project.Call{Project: "p", Estimated: 10}); err != nil {
			t.Fatal(err)
		}
		passed := make(chan string, 10)
		acquire := func(name string, c project.Call) {
			go func() {
				if _, _, err := l.Acquire(ctx, c); err != nil {
					name += ": " + err.Error()
				}
				passed <- name
			}()
			synctest.Wait()
		}
		acquire("tokens", project.Call{Project: "p", Estimated: 10})
		for range 4 { // the call that waits for tokens does not hold them up
			if d, err := l.Spend(ctx, plain); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		go func() {
			if d, err := l.Spend(ctx, plain); err != nil || !d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			passed <- "plain"
		}()
		synctest.Wait()
		if d, err := l.Spend(ctx, project.Call{Project: "p"}); err != nil || d.Allowed || d.Limit != "requests_per_minute" {
			t.Errorf("a newcomer beside one that waits for the minute: %+v, %v", d, err)
		}
		if _, d, err := l.Take(ctx, project.Call{Project: "p", Estimated: 1}); err != nil || d.Allowed {
			t.Errorf("one with tokens: %+v, %v", d, err)
		}
		start := time.Now()
		if name := <-passed; name != "plain" || time.Since(start) != time.Minute {
			t.Errorf("%s passes first, after %v; want plain, after a minute", name, time.Since(start))
		}
		if name := <-passed; name != "tokens" || time.Since(start) != time.Hour {
			t.Errorf("%s passes then, after %v; want tokens, after an hour", name, time.Since(start))
		}
	})
}

// asked is a store that counts how often it is asked, and has enough at some point.
type asked struct {
	*store.Memory
	times atomic.Int64
}

func (a *asked) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if a.times.Add(1) > 1000 {
		return nil, nil, errors.New("asked a thousand times")
	}
	return a.Memory.Take(ctx, charges)
}

// A call that is woken and denied again asks once, and then waits.
func TestAskingInVainIsNotRepeated(t *testing.T) {
	for what, wake := range map[string]func(l *project.Limiter){
		"the same limit":  func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 10}) },
		"a smaller limit": func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 9}) },
		"one window more": func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 10, TokensPerHour: 10}) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counts := &asked{Memory: store.NewMemory()}
				l := newLimiter(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}, Store: counts})
				start := time.Now()
				var all sync.WaitGroup
				for _, tokens := range []int{1, 9, 5, 5} { // the last two wait
					all.Go(func() {
						if _, _, err := l.Acquire(t.Context(), project.Call{Project: "p", Estimated: tokens}); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				time.Sleep(time.Second)
				before := counts.times.Load()
				wake(l)
				synctest.Wait()
				if n := counts.times.Load() - before; n > 1 {
					t.Errorf("asked %d times", n)
				}
				all.Wait()
				if waited := time.Since(start); waited < time.Minute {
					t.Errorf("all have passed after %v", waited)
				}
			})
		})
	}
}

// fails is a store that fails on demand.
type fails struct {
	*store.Memory
	now atomic.Bool
}

var errFails = errors.New("it fails")

func (f *fails) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if f.now.Load() {
		return nil, nil, errFails
	}
	return f.Memory.Take(ctx, charges)
}

// A limit loses windows while a call waits, and then the store fails: the decision is
// the last answer to the call, about the windows that there were.
func TestFewerWindowsAndAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fails{Memory: store.NewMemory()}
		many := project.Limit{RequestsPerMinute: 1, RequestsPerHour: 5, RequestsPerDay: 6, TokensPerMinute: 7, TokensPerHour: 8, TokensPerDay: 9, TokensPerMonth: 10, MaxConcurrent: 11}
		l := newLine(newLimiter(t, project.Config{Default: &many, Store: s}))
		c := project.Call{Project: "p", Estimated: 1}
		l.join(t.Context(), "a", c)
		l.join(t.Context(), "b", c)
		l.sleep(time.Second)
		s.now.Store(true)
		setLimit(t, l.Limiter, "p", project.Limit{RequestsPerDay: 9})
		synctest.Wait()
		l.failed(t, "b", time.Second, errFails)
		if _, d := l.result("b"); d.Allowed || d.Limit != "requests_per_minute" || len(d.Windows()) != 7 || d.Windows()[5].Window.Count != 9 || d.RetryAfter != time.Minute {
			t.Errorf("%t, %q, %v, %+v", d.Allowed, d.Limit, d.RetryAfter, d.Windows())
		}
	})
}

// Calls that wait when the limiter is closed fail at once.
func TestCloseWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(limited(t, project.Limit{RequestsPerMinute: 1}))
		for _, id := range []string{"p", "q"} {
			for _, name := range []string{"first", "a", "b", "c"} {
				l.join(t.Context(), id+name, project.Call{Project: id})
			}
		}
		l.sleep(time.Second)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.passed(t, "pfirst", "qfirst")
		for _, name := range []string{"pa", "pb", "pc", "qa", "qb", "qc"} {
			l.failed(t, name, time.Second, store.ErrClosed)
		}
	})
}
