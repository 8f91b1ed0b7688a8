package project_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// wantLost wants every method to say that the store could not be asked, which is no
// denial, and observers to be told so.
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
	if allowed || len(events) != 7 {
		t.Errorf("%t, %d events; want 7", allowed, len(events))
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
	l := newLimiter(t, project.Config{Store: openRedisFor(t, server.URL(), 100*time.Millisecond), Observer: w})
	use(t, l, "p", 1)
	w.saw()
	server.Kill()
	wantLost(t, l, w, nil)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it heals", func() bool {
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
			if left := left(t, again, "p"); left["minute"] != 59 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// Those who wait for their project when the limiter is closed are told at once.
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
