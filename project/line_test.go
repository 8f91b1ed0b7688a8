package project_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// line is calls of Acquire in a bubble, and when they returned.
type line struct {
	*project.Limiter
	start time.Time
	came  []string // names of all, in order
	mu    sync.Mutex
	at    map[string]time.Duration
	told  map[string]project.Decision
	errs  map[string]error
	held  map[string]*project.Reservation
}

func newLine(l *project.Limiter) *line {
	return &line{Limiter: l, start: time.Now(), at: map[string]time.Duration{}, told: map[string]project.Decision{},
		errs: map[string]error{}, held: map[string]*project.Reservation{}}
}

// join starts a call, and returns when it waits or has returned.
func (l *line) join(ctx context.Context, name string, c project.Call) {
	l.came = append(l.came, name)
	go func() {
		res, d, err := l.Acquire(ctx, c)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at[name], l.told[name], l.errs[name], l.held[name] = time.Since(l.start), d, err, res
	}()
	synctest.Wait()
}

// sleep moves the clock to a time since the start.
func (l *line) sleep(until time.Duration) {
	time.Sleep(until - time.Since(l.start))
	synctest.Wait()
}

// passed wants those of the names, and no others, to have passed, in that order.
func (l *line) passed(t testing.TB, names ...string) {
	t.Helper()
	if got := l.all(); !slices.Equal(got, names) {
		t.Fatalf("after %v %q have passed; want %q", time.Since(l.start), got, names)
	}
}

// result returns what a call has reserved, and was told.
func (l *line) result(name string) (*project.Reservation, project.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name], l.told[name]
}

// all returns the names of those that have passed, in order: of those who did at the
// same time, in that in which they came.
func (l *line) all() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.came {
		if _, returned := l.at[name]; returned && l.errs[name] == nil {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(l.at[a], l.at[b]) })
	return names
}

// cancel cancels a call that has passed.
func (l *line) cancel(name string) {
	res, _ := l.result(name)
	res.Cancel()
}

// commit commits a call that has passed.
func (l *line) commit(name string, prompt, output int) {
	res, _ := l.result(name)
	res.Commit(prompt, output)
}

// failed wants a call to have failed at a time with an error.
func (l *line) failed(t testing.TB, name string, at time.Duration, want error) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at[name] != at || !errors.Is(l.errs[name], want) || l.held[name] != nil {
		t.Fatalf("%s has failed at %v with %v; want %v, %v", name, l.at[name], l.errs[name], at, want)
	}
}

// inLine runs a test in a bubble for each kind of limiter, on which each project may
// use so much.
func inLine(t *testing.T, cfg project.Config, test func(t *testing.T, l *line, c project.Call)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, newLine(newLimiter(t, kind(t, cfg))), project.Call{Project: "p"})
			})
		})
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 2, TokensPerMinute: 100}}, func(t *testing.T, l *line, c project.Call) {
		var want []string
		for i := range 9 {
			name := fmt.Sprint(i)
			c.Estimated = (i * 37) % 100 // a large call is not passed by small ones
			l.join(t.Context(), name, c)
			want = append(want, name)
		}
		l.sleep(20 * time.Minute)
		l.passed(t, want...)
	})
}

func TestPriority(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1}}, func(t *testing.T, l *line, c project.Call) {
		for _, each := range []struct {
			name     string
			priority int
		}{{"first", 0}, {"low", -1}, {"a", 0}, {"high", 5}, {"b", 0}, {"higher", 6}, {"high too", 5}} {
			c.Priority = each.priority
			l.join(t.Context(), each.name, c)
		}
		l.passed(t, "first")
		l.sleep(time.Minute)
		l.passed(t, "first", "higher")
		l.sleep(time.Hour)
		l.passed(t, "first", "higher", "high", "high too", "a", "b", "low")
	})
}

func TestWaitsExactlyAsLongAsItWasTold(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 3, TokensPerHour: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 3
		for i := range 3 {
			l.join(t.Context(), fmt.Sprint("now ", i), c)
			l.sleep(time.Duration(i+1) * time.Second)
		}
		l.join(t.Context(), "in an hour", c)
		d := spend(t, l.Limiter, c)
		if d.Allowed || d.Exceeded != "tokens-hour" || d.RetryAfter != time.Hour-3*time.Second {
			t.Errorf("%t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter)
		}
		l.sleep(time.Hour - 1)
		l.passed(t, "now 0", "now 1", "now 2")
		l.sleep(time.Hour)
		l.passed(t, "now 0", "now 1", "now 2", "in an hour")
		if _, d := l.result("in an hour"); !d.Allowed || d.RetryAfter != 0 || d.Exceeded != "" {
			t.Errorf("%+v", d)
		}
	})
}

// Who comes while others wait is told when the first of them passes, although there
// is room for it, and nothing is charged.
func TestSpendWhileOthersWait(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 6
		l.join(t.Context(), "a", c)
		l.join(t.Context(), "b", c)
		l.sleep(20 * time.Second)
		c.Estimated = 1
		for range 3 {
			d := spend(t, l.Limiter, c)
			_, taken, err := l.Take(t.Context(), c)
			for _, d := range []project.Decision{d, taken} {
				if d.Allowed || d.RetryAfter != 40*time.Second || d.Exceeded != "tokens-minute" || err != nil {
					t.Fatalf("%t, %q, %v, %v", d.Allowed, d.Exceeded, d.RetryAfter, err)
				}
			}
		}
		other := c
		other.Project, other.Estimated = "q", 10
		if d := spend(t, l.Limiter, other); !d.Allowed {
			t.Errorf("another project is denied by %q for %v", d.Exceeded, d.RetryAfter)
		}
		l.sleep(time.Minute)
		l.passed(t, "a", "b")
		c.Estimated = 4
		if d := spend(t, l.Limiter, c); !d.Allowed {
			t.Errorf("once nobody waits: %q, %v", d.Exceeded, d.RetryAfter)
		}
	})
}

// A request that asks for no tokens does not wait behind those who wait for some.
func TestPlainRequestsPassThoseWhoWaitForTokens(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 5, TokensPerMinute: 10}})))
				c := project.Call{Project: "p", Estimated: 6}
				l.join(t.Context(), "a", c)
				l.join(t.Context(), "b", c)
				use(t, l.Limiter, "p", 4)
				if d := spend(t, l.Limiter, project.Call{Project: "p"}); d.Allowed || d.Exceeded != "minute" {
					t.Errorf("%t, %q", d.Allowed, d.Exceeded)
				}
				if d := spend(t, l.Limiter, project.Call{Project: "p", Estimated: 1}); d.Allowed {
					t.Error("tokens are taken by who came later")
				}
				l.sleep(time.Minute)
				l.passed(t, "a", "b")
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
			if err != nil || d.Allowed != allowed || d.Exceeded != by || d.RetryAfter != retry {
				t.Errorf("%t, %q, %v, %v; want %t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter, err, allowed, by, retry)
			}
			if w := d.Windows(); len(w) != 2 || w[0].Remaining != minute || w[1].Remaining != hour {
				t.Errorf("%+v; want %d and %d to remain", w, minute, hour)
			}
		}
		peek(true, "", 0, 2, 10)
		peek(true, "", 0, 2, 10)
		l.join(t.Context(), "a", c)
		peek(false, "tokens-hour", time.Hour, 1, 0)
		l.commit("a", 1, 2)
		peek(true, "", 0, 1, 7)
		c.Estimated = 7
		l.join(t.Context(), "b", c)
		l.cancel("b")
		use(t, l.Limiter, "p", 1)
		l.sleep(time.Second)
		peek(false, "minute", 59*time.Second, 0, 7)
	})
}

// A wait that ends early has taken nothing, and holds up nobody any more.
func TestGivesUp(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 6
		l.join(t.Context(), "a", c)
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
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
		if _, d := l.result("deadline"); d.Allowed || d.Exceeded != "tokens-minute" || d.RetryAfter != time.Minute {
			t.Errorf("the last that it was told: %t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter)
		}
		l.cancel("small")
		if left := left(t, l.Limiter, "p"); left["tokens-minute"] != 4 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestCrowded(t *testing.T) {
	cfg := project.Config{Default: &project.Limit{RequestsPerMinute: 1}, MaxWaiting: 2}
	inLine(t, cfg, func(t *testing.T, l *line, c project.Call) {
		for _, name := range []string{"first", "a", "b", "too many"} {
			l.join(t.Context(), name, c)
		}
		l.failed(t, "too many", 0, project.ErrCrowded)
		if _, d := l.result("too many"); d.Allowed || d.Exceeded != "minute" || d.RetryAfter <= 0 {
			t.Errorf("who may not wait is told %t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter)
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

// A call that is larger than a limit is told at once, even if others wait.
func TestNever(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 5, TokensPerHour: 10}}, func(t *testing.T, l *line, c project.Call) {
		large := []struct {
			by               string
			requests, tokens int
		}{{"minute", 6, 0}, {"tokens-hour", 0, 11}, {"minute", 1 << 53, 1 << 53}}
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
					if d.Allowed || d.RetryAfter != project.Never || d.Exceeded != each.by {
						t.Errorf("%s, %+v: %t, %q, %v", when, each, d.Allowed, d.Exceeded, d.RetryAfter)
					}
				}
			}
		}
		ask("alone")
		if left := left(t, l.Limiter, "p"); left["minute"] != 5 || left["tokens-hour"] != 10 {
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

// What is given back lets the first go on at once, and no one else.
func TestGivenBack(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{TokensPerDay: 10}}, func(t *testing.T, l *line, c project.Call) {
		c.Estimated = 10
		l.join(t.Context(), "a", c)
		c.Estimated = 4
		l.join(t.Context(), "b", c)
		l.join(t.Context(), "c", c)
		l.join(t.Context(), "d", c)
		l.sleep(time.Minute)
		l.commit("a", 1, 1)
		synctest.Wait()
		l.passed(t, "a", "b", "c")
		l.commit("b", -1, -1)
		synctest.Wait()
		l.passed(t, "a", "b", "c")
		l.cancel("c")
		l.cancel("c")
		synctest.Wait()
		l.passed(t, "a", "b", "c", "d")
		if left := left(t, l.Limiter, "p"); left["tokens-day"] != 0 {
			t.Errorf("left: %v", left)
		}
	})
}
