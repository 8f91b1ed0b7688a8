package project_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// observed runs a test for a limiter that counts in memory, and for one that counts in
// another store, with a witness.
func observed(t *testing.T, each project.Limit, test func(t *testing.T, l *project.Limiter, w *witness, s *store.Memory)) {
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, s := &witness{}, store.NewMemory()
			test(t, newLimiter(t, project.Config{Default: &each, Store: s, Observer: w}), w, s)
		})
	})
	t.Run("another store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, s := &witness{}, store.NewMemory()
			test(t, newLimiter(t, project.Config{Default: &each, Store: another{s}, Observer: w}), w, s)
		})
	})
}

func wantEvents(t *testing.T, w *witness, want ...event.Event) {
	t.Helper()
	testkit.Equal(t, "events", want, w.saw())
}

func TestObserver(t *testing.T) {
	each := project.Limit{RequestsPerMinute: 2, RequestsPerHour: 3, TokensPerDay: 50}
	observed(t, each, func(t *testing.T, l *project.Limiter, w *witness, _ *store.Memory) {
		ctx := t.Context()
		of := func(kind event.Kind, by string, remaining int64, retry time.Duration, estimated int64) event.Event {
			return event.Event{Kind: kind, Project: "p", Limit: by, RemainingMinute: remaining, RetryAfter: retry, Estimated: estimated}
		}
		spend(t, l, project.Call{Project: "p", Estimated: 20})
		wantEvents(t, w, of(event.Admitted, "", 1, 0, 20))
		spend(t, l, project.Call{Project: "p", Estimated: 51, Shadow: true})
		e := of(event.Denied, "tokens_per_day", 1, project.Never, 51)
		e.Shadow = true
		wantEvents(t, w, e)
		l.Allow(ctx, "p")
		wantEvents(t, w, of(event.Admitted, "", 0, 0, 0))
		l.Allow(ctx, "p")
		wantEvents(t, w, of(event.Denied, "requests_per_minute", 0, time.Minute, 0))
		time.Sleep(time.Minute)
		l.Allow(ctx, "p")
		l.Allow(ctx, "p")
		wantEvents(t, w, of(event.Admitted, "", 1, 0, 0), of(event.Denied, "requests_per_hour", 1, 59*time.Minute, 0))
		if _, err := l.Peek(ctx, "p"); err != nil {
			t.Fatal(err)
		}
		l.Reset(ctx, "p")
		wantEvents(t, w) // looking is none
		res, _, _ := l.Take(ctx, project.Call{Project: "p", Estimated: 10})
		res.Commit(3, 4)
		taken := of(event.Admitted, "", 1, 0, 10)
		settled := of(event.Settled, "", -1, 0, 10)
		settled.Used = llm.Tokens{Input: 3, Output: 4}
		wantEvents(t, w, taken, settled)
	})
}

// Where the minute is not limited, no event mentions it.
func TestObserverWithoutAMinute(t *testing.T) {
	observed(t, project.Limit{RequestsPerHour: 5}, func(t *testing.T, l *project.Limiter, w *witness, _ *store.Memory) {
		l.Allow(t.Context(), "p")
		if e := w.saw(); len(e) != 1 || e[0].RemainingMinute != -1 {
			t.Errorf("%+v", e)
		}
	})
}

// Observers get one event of a call that is not valid, from every door. Its project is
// named if it can be one.
func TestObserverOfBadCalls(t *testing.T) {
	observed(t, project.Limit{RequestsPerMinute: 5}, func(t *testing.T, l *project.Limiter, w *witness, _ *store.Memory) {
		ctx := t.Context()
		for _, c := range []project.Call{{Project: ""}, {Project: "caf\u00e9"}, {Project: "p", Estimated: -1}, {Project: "p", Requests: -1}, {Project: "p", Fault: errors.New("no cost")}} {
			l.Spend(ctx, c)
			l.Take(ctx, c)
			l.Acquire(ctx, c)
			got := w.saw()
			for _, e := range got {
				named := c.Project == "p"
				if e.Kind != event.Refused || (e.Project == "p") != named || !named && e.Project != "" || e.Limit != "" {
					t.Errorf("%+v: %+v", c, e)
				}
			}
			if len(got) != 3 {
				t.Errorf("%+v: %d events of three doors", c, len(got))
			}
		}
	})
}

// A caller that has left is not the store's fault.
func TestObserverOfCallersThatHaveLeft(t *testing.T) {
	observed(t, project.Limit{RequestsPerMinute: 1}, func(t *testing.T, l *project.Limiter, w *witness, _ *store.Memory) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := project.Call{Project: "p"}
		l.Spend(ctx, c)
		l.Take(ctx, c)
		l.Acquire(ctx, c)
		got := w.saw()
		for i, e := range got {
			if e.Kind != event.Left || e.Project != "p" {
				t.Errorf("door %d: %+v", i, e)
			}
		}
		if len(got) != 3 {
			t.Errorf("%d events of three doors", len(got))
		}
	})
}

// A wait is reported when it ends: with its length, or as denied.
func TestObserverOfWaits(t *testing.T) {
	each := project.Limit{RequestsPerMinute: 1}
	observed(t, each, func(t *testing.T, l *project.Limiter, w *witness, _ *store.Memory) {
		c := project.Call{Project: "p"}
		use(t, l, "p", 1)
		w.saw()
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, _, err := l.Acquire(soon, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if e := w.saw(); len(e) != 1 || e[0].Kind != event.Denied || e[0].Waited != 0 || e[0].Limit != "requests_per_minute" || e[0].Project != "p" {
			t.Errorf("%+v", e)
		}
		<-soon.Done()
		if _, _, err := l.Acquire(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if e := w.saw(); len(e) != 1 || e[0].Kind != event.Admitted || e[0].Waited != 50*time.Second || e[0].RemainingMinute != 0 {
			t.Errorf("%+v", e)
		}
		c.Requests = 2
		if _, _, err := l.Acquire(t.Context(), c); !errors.Is(err, project.ErrNever) {
			t.Fatal(err)
		}
		if e := w.saw(); len(e) != 1 || e[0].Kind != event.Denied || e[0].Limit != "requests_per_minute" || e[0].RetryAfter != project.Never {
			t.Errorf("%+v", e)
		}
	})
}
