package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Whatever happens in whatever order to calls of one to six scopes: every decision is what
// counting on paper says, to the nanosecond; what is denied or leaves takes nothing; calls
// that wait pass in their turn, at the instant at which they may; and the observer is told
// once of each decision and of each end.
func TestHistories(t *testing.T) {
	doing := []string{"try", "try", "try", "look", "acquire", "acquire", "acquire", "commit", "commit", "cancel", "leave", "set", "record", "reset",
		"pass", "pass", "retry", "retry"}
	for name, open := range stores {
		times := 1
		if name == "memory" {
			times = 5 // it is fast
		}
		t.Run(name, func(t *testing.T) { histories(t, doing, open, times) })
	}
}

func histories(t *testing.T, doing []string, open func(t testing.TB) store.Store, times int) {
	for range times {
		rapid.Check(t, func(rt *rapid.T) {
			p := plots(doing, false).Draw(rt, "history")
			failed := &failures{}
			synctest.Test(t, func(t *testing.T) {
				failed.TB = t
				w := newWorld(newBench(failed, open(t)), p, func() int64 { return time.Now().UnixNano() })
				w.playAll(p)
				w.leaveAll()
			})
			failed.report(rt)
		})
	}
}

// failures is a test whose errors are reported to another, which makes the history smaller.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper()           {}
func (f *failures) Failed() bool      { return len(f.list) > 0 }
func (f *failures) Error(args ...any) { f.list = append(f.list, fmt.Sprint(args...)) }
func (f *failures) Fatal(args ...any) { f.Error(args...) }
func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}
func (f *failures) Logf(format string, args ...any) { f.Errorf(format, args...) }

func (f *failures) report(t *rapid.T) {
	for _, s := range f.list {
		t.Log(s)
	}
	if f.Failed() {
		t.FailNow()
	}
}

// Redis decides as paper does. Its time is the server's, so histories are over long before
// anything leaves its window, and nothing waits.
func TestRedisHistories(t *testing.T) {
	server := redistest.New(t)
	doing := []string{"try", "try", "try", "look", "commit", "commit", "cancel", "set", "record", "reset"}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := plots(doing, true).Draw(rt, "history")
		n++
		s, err := redisstore.New(redisstore.Config{URL: server.URL(), Namespace: fmt.Sprint("history", n), Timeout: time.Minute})
		if err != nil {
			rt.Fatal(err)
		}
		failed := &failures{TB: t}
		b := newBench(failed, s)
		defer b.Close()
		start := time.Now().UnixNano()
		w := newWorld(b, p, func() int64 { return start })
		w.real = true
		w.playAll(p)
		failed.report(rt)
	})
}
