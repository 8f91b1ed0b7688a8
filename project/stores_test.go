package project_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Of 300 calls that come at the same time to two limiters on one store, exactly as many
// pass as the limit says, whichever door they come through.
func TestSimultaneousCalls(t *testing.T) {
	const calls = 300
	type door = func(l *project.Limiter, c project.Call) (bool, error)
	doors := map[string]door{
		"Spend": func(l *project.Limiter, c project.Call) (bool, error) {
			d, err := l.Spend(t.Context(), c)
			return d.Allowed, err
		},
		"Take": func(l *project.Limiter, c project.Call) (bool, error) {
			res, d, err := l.Take(t.Context(), c)
			return d.Allowed && res != nil, err
		},
		"Acquire": func(l *project.Limiter, c project.Call) (bool, error) {
			c.MaxWait = time.Minute // which is shorter than any of the windows
			res, d, err := l.Acquire(t.Context(), c)
			if errors.Is(err, context.DeadlineExceeded) && d.RetryAfter > 0 {
				err = nil
			}
			return d.Allowed && res != nil, err
		},
	}
	each := project.Limit{RequestsPerHour: 100, RequestsPerDay: 120, TokensPerHour: 1000, TokensPerMonth: 1200}
	for name, shared := range stores {
		open := shared(t)
		limiters := []*project.Limiter{newLimiter(t, project.Config{Default: &each, Store: open()}), newLimiter(t, project.Config{Default: &each, Store: open()})}
		for through, ask := range doors {
			for of, c := range map[string]struct {
				call project.Call
				want int64
				left map[string]int64
			}{
				"requests": {project.Call{}, 100, map[string]int64{"requests_per_hour": 0, "requests_per_day": 20}},
				"tokens":   {project.Call{Estimated: 30}, 33, map[string]int64{"requests_per_hour": 67, "requests_per_day": 87, "tokens_per_hour": 10, "tokens_per_month": 210}},
			} {
				t.Run(fmt.Sprint(name, " ", through, " ", of), func(t *testing.T) {
					c.call.Project = through + "-" + of
					start := make(chan bool)
					var admitted atomic.Int64
					var all sync.WaitGroup
					for i := range calls {
						all.Go(func() {
							<-start
							allowed, err := ask(limiters[i%2], c.call)
							if err != nil {
								t.Error(err)
							}
							if allowed {
								admitted.Add(1)
							}
						})
					}
					close(start)
					all.Wait()
					if admitted.Load() != c.want {
						t.Errorf("%d were admitted; want %d", admitted.Load(), c.want)
					}
					remains := left(t, limiters[0], c.call.Project)
					for window, want := range c.left {
						if remains[window] != want {
							t.Errorf("%v are left; want %v", remains, c.left)
						}
					}
				})
			}
		}
	}
}

// A budget in Redis lasts as long as in memory.
func TestMonthInRedis(t *testing.T) {
	server := redistest.New(t)
	l := newLimiter(t, project.Config{Store: openRedis(t, server.URL()), Default: &project.Limit{TokensPerMinute: 100, TokensPerMonth: 100}})
	if d := spend(t, l, project.Call{Project: "p", Estimated: 100}); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	d, err := l.Peek(t.Context(), "p")
	if err != nil || d.Limit != "tokens_per_month" || d.RetryAfter > month || d.RetryAfter < month-time.Hour {
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

// wantLost wants every method to say that the store could not be asked, which is no
// denial, and observers to get an event of it.
func wantLost(t *testing.T, l *project.Limiter, w *witness, want error) {
	t.Helper()
	errs := everyDoor(l, project.Call{Project: "p"})
	for door, err := range everyDoor(l, project.Call{Project: "p", Estimated: 2}) {
		errs[door+" of tokens"] = err
	}
	if len(errs) != 6 {
		t.Errorf("of six doors %d have failed", len(errs))
	}
	allowed, err := l.Allow(t.Context(), "p")
	errs["Allow"] = err
	if _, d, err := l.Take(t.Context(), project.Call{Project: "p", Estimated: 2}); len(d.Windows()) != 0 || d.RetryAfter != 0 {
		t.Errorf("it is not known where the project stands: %+v, %v", d, err)
	}
	_, errs["Peek"] = l.Peek(t.Context(), "p")
	errs["Reset"] = l.Reset(t.Context(), "p")
	for door, err := range errs {
		if err == nil || want != nil && !errors.Is(err, want) || errors.Is(err, project.ErrExceeded) || errors.Is(err, project.ErrInvalid) {
			t.Errorf("%s: %v; want %v", door, err, want)
		}
	}
	events := w.saw()
	for _, e := range events {
		if e.Kind != event.Lost || e.Project != "p" || e.Limit != "" {
			t.Errorf("%+v", e)
		}
	}
	if allowed || len(events) != 8 {
		t.Errorf("%t, %d events; want 8", allowed, len(events))
	}
}

func TestStoreIsClosed(t *testing.T) {
	observed(t, project.Limit{RequestsPerMinute: 5, TokensPerMinute: 5}, func(t *testing.T, l *project.Limiter, w *witness, s *store.Memory) {
		use(t, l, "p", 1)
		w.saw()
		s.Close()
		wantLost(t, l, w, store.ErrClosed)
		setLimit(t, l, "p", project.Limit{RequestsPerMinute: 1}) // it is not kept there
	})
}

func TestRedisIsLost(t *testing.T) {
	server := redistest.New(t)
	w := &witness{}
	l := newLimiter(t, project.Config{Store: openRedisFor(t, server.URL(), time.Second), Observer: w})
	use(t, l, "p", 1)
	w.saw()
	server.Kill()
	wantLost(t, l, w, nil)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it heals", func() bool {
		allowed, _ := l.Allow(t.Context(), "p")
		return allowed
	})
}

// A limiter that was closed decides on nothing any more, through any door.
func TestClosed(t *testing.T) {
	for name, s := range map[string]store.Store{"memory": nil, "store": store.NewMemory()} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			l := newLimiter(t, project.Config{Store: s, Observer: w})
			use(t, l, "p", 1)
			w.saw()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			wantLost(t, l, w, store.ErrClosed)
			if err := l.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
			if s == nil {
				return
			}
			again := newLimiter(t, project.Config{Store: s}) // which stays the caller's
			if left := left(t, again, "p"); left["requests_per_minute"] != 59 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
