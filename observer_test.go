package ratelimit_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// diary is an observer that records events, and compares them with what a test wants.
type diary struct {
	testkit.Recorder[event.Event]
}

// want fails the test unless there was exactly this event since the last check, with an error
// that wraps err, or without an error.
func (d *diary) want(t testing.TB, what string, want event.Event, err error) {
	t.Helper()
	list := d.Since()
	if len(list) != 1 {
		t.Errorf("%s: %d events: %+v; want one", what, len(list), list)
		return
	}
	got := list[0]
	if (err == nil) != (got.Err == nil) || !errors.Is(got.Err, err) {
		t.Errorf("%s: the error is %v; want %v", what, got.Err, err)
	}
	got.Err = nil
	testkit.Equal(t, what, want, got)
}

// none fails the test if there was an event since the last check.
func (d *diary) none(t testing.TB, what string) {
	t.Helper()
	if list := d.Since(); len(list) != 0 {
		t.Errorf("%s: %+v; want no event", what, list)
	}
}

// observed runs a test on an observed limiter in every ledger, each in a bubble.
func observed(t *testing.T, q quotas, test func(t *testing.T, rl *ratelimit.RateLimiter, d *diary)) {
	for _, ledger := range ledgers {
		t.Run(ledger, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &diary{}
				rl := openLedger(t, ledger, filepath.Join(t.TempDir(), "limits"), ratelimit.Config{Quotas: q, Observer: d})
				defer closeFile(t, rl)
				if rl.TheObserver() != d {
					t.Errorf("the observer is %v", rl.TheObserver())
				}
				test(t, rl, d)
			})
		})
	}
}

// eventOf returns an event of a model with a quota, for a test to complete.
func eventOf(kind event.Kind, change func(*event.Event)) event.Event {
	e := event.Event{Kind: kind, Model: "m", Limited: true, RemainingMinute: -1}
	if change != nil {
		change(&e)
	}
	return e
}

// Every method that decides sends one event for its decision, and one for the end of the call.
func TestObserverOfModels(t *testing.T) {
	observed(t, quotas{"m": {MaxRPM: 2, MaxTPM: 100}, "free": {}}, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		ten := func(e *event.Event) { e.Estimated = 10 }
		first, _ := rl.TryAcquire("m", 10)
		d.want(t, "TryAcquire", eventOf(event.Admitted, ten), nil)
		second, _ := rl.TryAcquireTokens("m", ratelimit.Tokens{Input: 3, Output: 7})
		d.want(t, "TryAcquireTokens", eventOf(event.Admitted, ten), nil)
		time.Sleep(20 * time.Second)
		rl.TryAcquire("m", 5)
		d.want(t, "denied", eventOf(event.Denied, func(e *event.Event) {
			e.Limit, e.RetryAfter, e.Estimated = "max_rpm", 40*time.Second, 5
		}), nil)
		rl.TryAcquire("m", 101)
		d.want(t, "never", eventOf(event.Denied, func(e *event.Event) {
			e.Limit, e.RetryAfter, e.Estimated = "max_tpm", ratelimit.Never, 101
		}), nil)
		if _, err := rl.Acquire(t.Context(), "m", 101); !errors.Is(err, ratelimit.ErrNever) {
			t.Error(err)
		}
		d.want(t, "never, Acquire", eventOf(event.Denied, func(e *event.Event) {
			e.Limit, e.RetryAfter, e.Estimated = "max_tpm", ratelimit.Never, 101
		}), ratelimit.ErrNever)

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		rl.Acquire(ctx, "m", 5)
		d.want(t, "a deadline that is too soon", eventOf(event.Denied, func(e *event.Event) {
			e.Limit, e.RetryAfter, e.Estimated = "max_rpm", 40*time.Second, 5
		}), context.DeadlineExceeded)
		<-ctx.Done()
		rl.Acquire(ctx, "m", 5)
		d.want(t, "had given up", eventOf(event.Left, func(e *event.Event) { e.Estimated = 5 }), context.DeadlineExceeded)
		cancel()

		third, _ := rl.Acquire(t.Context(), "m", 5)
		d.want(t, "Acquire", eventOf(event.Admitted, func(e *event.Event) { e.Estimated, e.Waited = 5, 30*time.Second }), nil)
		fourth, _ := rl.AcquireTokens(t.Context(), "m", ratelimit.Tokens{Output: 5})
		d.want(t, "AcquireTokens, at once", eventOf(event.Admitted, func(e *event.Event) { e.Estimated = 5 }), nil)

		first.Commit(3, 4)
		d.want(t, "Commit", eventOf(event.Settled, func(e *event.Event) { e.Estimated, e.Used = 10, ratelimit.Tokens{Input: 3, Output: 4} }), nil)
		second.Commit(-9, 4)
		d.want(t, "Commit of what is not known", eventOf(event.Settled, func(e *event.Event) { e.Estimated, e.Used = 10, ratelimit.Tokens{Input: -1, Output: 4} }), nil)
		third.Cancel()
		d.want(t, "Cancel", eventOf(event.Cancelled, func(e *event.Event) { e.Estimated = 5 }), nil)
		for _, res := range []*ratelimit.Reservation{first, second, third, nil} {
			res.Commit(1, 1)
			res.Cancel()
		}
		d.none(t, "ended before")
		fourth.Commit(-1, -1)
		d.want(t, "Commit of nothing known", eventOf(event.Settled, func(e *event.Event) { e.Estimated, e.Used = 5, ratelimit.Tokens{Input: -1, Output: -1} }), nil)

		rl.TryAcquire("m", -1)
		invalid := d.Since()
		if len(invalid) != 1 || invalid[0].Kind != event.Refused || invalid[0].RetryAfter != 0 || invalid[0].Limit != "" {
			t.Errorf("invalid: %+v", invalid)
		}
		if _, err := rl.Acquire(t.Context(), "m", -1); err == nil {
			t.Error("it is valid")
		}
		invalid = d.Since()
		if len(invalid) != 1 || invalid[0].Kind != event.Refused || invalid[0].RetryAfter != 0 || invalid[0].Err == nil {
			t.Errorf("invalid, Acquire: %+v", invalid)
		}
		for model, limited := range map[string]bool{"free": true, "unknown": false} {
			res, _ := rl.TryAcquire(model, 10)
			d.want(t, model, event.Event{Kind: event.Admitted, Model: model, Limited: limited, RemainingMinute: -1, Estimated: 10}, nil)
			rl.Acquire(t.Context(), model, 10)
			d.want(t, model, event.Event{Kind: event.Admitted, Model: model, Limited: limited, RemainingMinute: -1, Estimated: 10}, nil)
			res.Commit(1, 2)
			end := d.Since()
			if len(end) != 1 || end[0].Kind != event.Settled || end[0].Model != model || end[0].Limited != limited || end[0].Used != (ratelimit.Tokens{Input: 1, Output: 2}) {
				t.Errorf("%s: %+v", model, end)
			}
		}

		rl.Decide("m", 10)
		rl.Decide("unknown", -1)
		rl.CanSend("m", 1000)
		rl.Stats("m")
		rl.AllStats()
		rl.State()
		projectsOf(rl).Peek(t.Context(), "p")
		rl.Ahead("p")
		if err := rl.WaitForCapacity(t.Context(), "m", 1); err != nil {
			t.Error(err)
		}
		d.none(t, "looking")
	})
}

// The event of a Call has its project, and what the project has left of the minute.
func TestObserverOfCalls(t *testing.T) {
	observed(t, quotas{"m": {MaxRPM: 3}}, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		limits := perMinute(2, 0)()
		projectsWith(rl, project.Config{MaxWaiting: 1})
		p := projectCall{Model: "m", Project: "p", Estimated: 10, Limits: only(limits)}
		of := func(kind event.Kind, left int64, change func(*event.Event)) event.Event {
			e := eventOf(kind, func(e *event.Event) { e.Project, e.RemainingMinute, e.Estimated = "p", left, 10 })
			if change != nil {
				change(&e)
			}
			return e
		}
		res, _ := tryCall(t, rl, p)
		d.want(t, "the first", of(event.Admitted, 1, nil), nil)
		tryCall(t, rl, p)
		d.want(t, "the second", of(event.Admitted, 0, nil), nil)
		time.Sleep(20 * time.Second)
		denied := func(e *event.Event) { e.Limit, e.RetryAfter = "requests_per_minute", 40*time.Second }
		tryCall(t, rl, p)
		d.want(t, "the third", of(event.Denied, 0, denied), nil)
		p.Shadow = true
		tryCall(t, rl, p)
		d.want(t, "a shadow", of(event.Denied, 0, func(e *event.Event) { denied(e); e.Shadow = true }), nil)
		p.Shadow = false

		many := p
		many.Requests = 3
		acquireCall(rl, t.Context(), many)
		d.want(t, "never", of(event.Denied, 0, func(e *event.Event) { e.Limit, e.RetryAfter = "requests_per_minute", ratelimit.Never }), ratelimit.ErrNever)

		short := p
		short.MaxWait = 39 * time.Second
		start := time.Now()
		acquireCall(rl, t.Context(), short)
		d.want(t, "would wait for too long", of(event.Denied, 0, denied), context.DeadlineExceeded)
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}

		done := make(chan *ratelimit.Reservation)
		go func() {
			res, _, _ := acquireCall(rl, t.Context(), p)
			done <- res
		}()
		synctest.Wait()
		d.none(t, "waiting")
		if _, _, err := acquireCall(rl, t.Context(), p); !errors.Is(err, ratelimit.ErrCrowded) {
			t.Error(err)
		}
		crowded := d.Since()
		if len(crowded) != 1 || crowded[0].Kind != event.Denied || crowded[0].Limit != "requests_per_minute" || crowded[0].RetryAfter != 40*time.Second || !errors.Is(crowded[0].Err, ratelimit.ErrCrowded) {
			t.Errorf("crowded: %+v", crowded)
		}
		res.Commit(1, 2)
		d.want(t, "Commit", of(event.Settled, -1, func(e *event.Event) { e.Used = ratelimit.Tokens{Input: 1, Output: 2} }), nil)
		res = <-done
		d.want(t, "waited", of(event.Admitted, 1, func(e *event.Event) { e.Waited = 40 * time.Second }), nil)
		res.Cancel()
		d.want(t, "Cancel", of(event.Cancelled, -1, nil), nil)

		for range 6 { // now the model denies
			rl.RecordUsage("m", 0, 0)
		}
		d.Since()
		tryCall(t, rl, p)
		d.want(t, "the model denies", of(event.Denied, 2, func(e *event.Event) { e.Limit, e.RetryAfter = "max_rpm", time.Minute }), nil)

		p.Limits = perMinute(0, 100)
		tryCall(t, rl, p)
		d.want(t, "no limit on requests", of(event.Denied, -1, func(e *event.Event) { e.Limit, e.RetryAfter = "max_rpm", time.Minute }), nil)
		p.Model, p.Limits = "", perMinute(5, 0)
		res, _ = tryCall(t, rl, p)
		d.want(t, "no model", event.Event{Kind: event.Admitted, Project: "p", RemainingMinute: 4, Estimated: 10}, nil)
		res.Commit(1, 1)
		d.want(t, "no model", event.Event{Kind: event.Settled, Project: "p", RemainingMinute: -1, Estimated: 10, Used: ratelimit.Tokens{Input: 1, Output: 1}}, nil)

		_, _, err := tryAcquireCall(rl, t.Context(), projectCall{Project: "p", Requests: -1, Limits: p.Limits})
		invalid := d.Since()
		if err == nil || len(invalid) != 1 || invalid[0].Kind != event.Refused || invalid[0].Project != "p" {
			t.Errorf("invalid: %+v, %v", invalid, err)
		}
	})
}

// Each method that asks a store that does not answer sends an event.
func TestObserverOfALostStore(t *testing.T) {
	e, d := newElsewhere(), &diary{}
	rl, err := ratelimit.NewWithStore(e, ratelimit.Config{Quotas: quotas{"m": {MaxRPM: 5}}, Observer: d})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	lost := errors.New("lost")
	e.lose(lost)
	call := projectCall{Model: "m", Project: "p", Limits: perMinute(5, 0)}
	for what, do := range map[string]func(){
		"TryAcquire":     func() { rl.TryAcquire("m", 1) },
		"Acquire":        func() { rl.Acquire(t.Context(), "m", 1) },
		"TryAcquireCall": func() { tryAcquireCall(rl, t.Context(), call) },
		"AcquireCall":    func() { acquireCall(rl, t.Context(), call) },
	} {
		do()
		if list := d.Since(); len(list) != 1 || list[0].Kind != event.Lost || list[0].Err != lost || list[0].Model != "m" || list[0].RemainingMinute != -1 {
			t.Errorf("%s: %+v; want that it failed", what, list)
		}
	}
	e.lose(nil)
	reserved, _ := rl.TryAcquire("m", 1)
	d.Since()
	e.lose(lost)
	reserved.Commit(1, 1) // the correction is made later
	if list := d.Since(); len(list) != 1 || list[0].Kind != event.Settled {
		t.Errorf("%+v", list)
	}
	e.lose(nil)
}

func TestStoreEvents(t *testing.T) {
	d := &diary{}
	lost := store.Event{Kind: store.Lost, Err: redisstore.ErrLost, Denied: 3}
	event.OfStore(d)(lost)
	list := d.Since()
	if len(list) != 1 || list[0].Kind != event.Store || list[0].RemainingMinute != -1 || list[0].Store == nil || *list[0].Store != lost || list[0].Err != lost.Err {
		t.Errorf("%+v", list)
	}
}

// A limiter that makes its store in Redis sends events when Redis is lost and when it is back.
func TestRedisObserver(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	d := &diary{}
	rl := onRedisWith(t, ratelimit.Config{FilePath: proxy.URL(), Quotas: quotas{"m": {MaxRPM: 1000}}, Observer: d})
	mustTake(t, rl, 1)
	proxy.Cut()
	if _, dec := rl.TryAcquire("m", 1); dec.Code != ratelimit.DecisionStoreLost {
		t.Errorf("%+v", dec)
	}
	var kinds []event.Kind
	told := func(want func(e event.Event) bool) func() bool {
		return func() bool {
			list := d.Since()
			for _, e := range list {
				kinds = append(kinds, e.Kind)
			}
			return slices.ContainsFunc(list, func(e event.Event) bool { return e.Kind == event.Store && want(e) })
		}
	}
	testkit.Eventually(t, "it is told of the loss", told(func(e event.Event) bool {
		return e.Store.Kind == store.Lost && errors.Is(e.Err, redisstore.ErrLost)
	}))
	if !slices.Contains(kinds, event.Lost) {
		t.Errorf("%v; want the call that failed too", kinds)
	}
	proxy.Heal()
	testkit.Eventually(t, "it is told of the return", told(func(e event.Event) bool { return e.Store.Kind == store.Back }))
}

// Without an observer, a call and its settlement allocate 6 times, or 7 times if many scopes are charged: whatever the
// depth of its project in a tree of projects.
func TestTryAcquireAllocates(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	rl := inMemory(t, quotas{"m": {MaxRPM: 1 << 30, MaxTPM: 1 << 30, MaxRPD: 1 << 30}})
	each := project.Limit{DollarsPerMonth: price.Dollar << 20, Resets: limit.Calendar{Zone: "UTC"}}
	withProjects(t, rl, project.Config{Limits: map[string]project.Limit{"a": each, "a/b": each, "a/b/c": each, "a/b/c/d": each, "a/b/c/d/e": each}})
	for _, id := range []string{"", "a", "a/b", "a/b/c/d/e"} {
		call := func() {
			res, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "m", Project: id, Estimated: 10, Dollars: 100})
			if err != nil || !d.Allowed {
				t.Fatal(d.Reason(), err)
			}
			res.CommitPriced(ratelimit.Tokens{Input: 1, Output: 1}, 1)
		}
		for range 5000 { // grows the log to its full size
			call()
		}
		if n := testing.AllocsPerRun(1000, call); n > 7 {
			t.Errorf("%v allocations of a call of project %q; want 7 at most", n, id)
		}
	}
}
