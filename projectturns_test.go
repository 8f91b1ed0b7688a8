package ratelimit_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// plenty is a quota that denies nothing in these tests.
var plenty = ratelimit.ModelQuota{MaxRPM: 1 << 53, MaxTPM: 1 << 53}

// withProjects gives a limiter limits of projects.
func withProjects(t testing.TB, rl *ratelimit.RateLimiter, cfg project.Config) *project.Limiter {
	t.Helper()
	projects, err := rl.NewProjects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return projects
}

// turns runs calls of AcquireCall in a bubble, and records when each has returned.
type turns struct {
	*ratelimit.RateLimiter
	projects *project.Limiter
	start    time.Time
	came     []string // the names of all calls, in order

	mu       sync.Mutex
	at       map[string]time.Duration
	told     map[string]ratelimit.Decision
	errs     map[string]error
	reserved map[string]*ratelimit.Reservation
}

func newTurns(t testing.TB, rl *ratelimit.RateLimiter, cfg project.Config) *turns {
	return &turns{RateLimiter: rl, projects: withProjects(t, rl, cfg), start: time.Now(), at: map[string]time.Duration{},
		told: map[string]ratelimit.Decision{}, errs: map[string]error{}, reserved: map[string]*ratelimit.Reservation{}}
}

// join starts a call, and returns when it waits or has returned.
func (w *turns) join(ctx context.Context, name string, c ratelimit.Call) {
	w.came = append(w.came, name)
	go func() {
		res, d, err := w.AcquireCall(ctx, c)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at[name], w.told[name], w.errs[name], w.reserved[name] = time.Since(w.start), d, err, res
	}()
	synctest.Wait()
}

// sleep moves the clock to a time since the start.
func (w *turns) sleep(until time.Duration) {
	time.Sleep(until - time.Since(w.start))
	synctest.Wait()
}

// all returns the names of the calls that have passed, in order. Calls that passed at the same
// time are in the order in which they came.
func (w *turns) all() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.came {
		if w.reserved[name] != nil {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(w.at[a], w.at[b]) })
	return names
}

// passed fails the test unless exactly the calls with these names have passed, in that order.
func (w *turns) passed(t testing.TB, names ...string) {
	t.Helper()
	if got := w.all(); !slices.Equal(got, names) {
		t.Fatalf("after %v %q have passed; want %q", time.Since(w.start), got, names)
	}
}

// failed fails the test unless a call has failed at a time with an error. It returns the
// decision.
func (w *turns) failed(t testing.TB, name string, at time.Duration, want error) ratelimit.Decision {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at[name] != at || !errors.Is(w.errs[name], want) || w.reserved[name] != nil {
		t.Fatalf("%s has failed at %v with %v; want %v, %v", name, w.at[name], w.errs[name], at, want)
	}
	return w.told[name]
}

// of returns a call of a project for the model m.
func of(id string) ratelimit.Call { return ratelimit.Call{Project: id, Model: "m"} }

// While a call of one project asks the store in its turn, calls of other projects for the same
// model are not denied.
func TestNoisyWaitersDenyNobody(t *testing.T) {
	const away = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		rl := onStore(t, slowly{store.NewMemory(), away / 2}, quotas{"m": plenty})
		projects := withProjects(t, rl, project.Config{Limits: map[string]project.Limit{"loud": {RequestsPerMinute: 1}, "quiet": {RequestsPerMinute: 1 << 40}}})
		if _, d, err := rl.TryAcquireCall(t.Context(), of("loud")); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loud sync.WaitGroup
		loud.Go(func() { rl.AcquireCall(ctx, of("loud")) })
		defer loud.Wait()
		defer cancel()
		time.Sleep(away + away/2) // it asks for the second time, so it is in line now
		synctest.Wait()
		urgent := of("loud")
		urgent.Priority = 1
		for what, wake := range map[string]func(){
			"it has asked":         func() {},
			"its limit was set":    func() { projects.SetLimit("loud", project.Limit{RequestsPerMinute: 1}) },
			"its time has come":    func() { time.Sleep(time.Minute - 2*away) },
			"another of it waits":  func() { loud.Go(func() { rl.AcquireCall(ctx, urgent) }) },
			"something came back":  func() { projects.Reset(ctx, "nobody") },
			"it may have had less": func() { projects.SetLimit("loud", project.Limit{RequestsPerMinute: 1, RequestsPerHour: 1}) },
		} {
			wake()
			synctest.Wait() // the call is on its way to the store
			if _, d, err := rl.TryAcquireCall(ctx, of("quiet")); err != nil || !d.Allowed {
				t.Errorf("%s: %q, %v, %v", what, d.Limit, d.RetryAfter, err)
			}
		}
	})
}
