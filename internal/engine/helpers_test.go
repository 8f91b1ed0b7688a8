package engine_test

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// A call waits on its caller's goroutine, so no goroutine is left when the tests are over.
func TestMain(m *testing.M) {
	bus.Isolate() // most tests have fake time
	goleak.VerifyTestMain(m)
}

// stores are the stores that can be used in a bubble.
var stores = map[string]func(t testing.TB) store.Store{
	"memory": func(testing.TB) store.Store { return store.NewMemory() },
	"sqlite": func(t testing.TB) store.Store {
		s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "limits.db"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
}

// everyStore runs a test on an engine over each of the stores, each in a bubble.
func everyStore(t *testing.T, test func(t *testing.T, b *bench)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, newBench(t, open(t))) })
		})
	}
}

// bench is an engine with an observer.
type bench struct {
	*engine.Engine
	t        testing.TB
	observed recorder
	errs     []error // that no call could return
}

func newBench(t testing.TB, s store.Store) *bench {
	b := &bench{t: t}
	b.Engine = engine.New(engine.Config{
		Store: s, Owned: true, Clock: clock.New(), Observer: &b.observed, OnError: func(err error) { b.errs = append(b.errs, err) },
	})
	t.Cleanup(func() { b.Close() })
	return b
}

// must wants no error.
func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

// recorder is an observer that remembers the events of each project.
type recorder struct {
	mu     sync.Mutex
	events map[string][]event.Event
}

func (r *recorder) Observe(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events == nil {
		r.events = map[string][]event.Event{}
	}
	r.events[e.Project] = append(r.events[e.Project], e)
}

// kinds returns the kinds of the events of a project.
func (r *recorder) kinds(project string) (kinds []event.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events[project] {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// wantEvents wants the observer to have been told these events of a project, and no other.
func (b *bench) wantEvents(project string, want ...event.Kind) {
	b.t.Helper()
	if got := b.observed.kinds(project); !slices.Equal(got, want) {
		b.t.Errorf("the observer was told %v of %q; want %v", got, project, want)
	}
}

// shared returns a scope that has a line, and own one that has none.
func (b *bench) shared(key string, gate engine.Gate, limits ...engine.Limit) *engine.Scope {
	b.t.Helper()
	s := b.NewShared(key+"/", key, gate)
	b.set(s, limits...)
	return s
}

func (b *bench) own(key string, limits ...engine.Limit) *engine.Scope {
	b.t.Helper()
	s := b.NewOwn(key+"/", key)
	b.set(s, limits...)
	return s
}

// set sets the limits of a scope.
func (b *bench) set(s *engine.Scope, limits ...engine.Limit) {
	b.t.Helper()
	if err := b.SetRules(s, &engine.Rules{Limits: limits}); err != nil {
		b.t.Fatal(err)
	}
}

// perMinute returns a limit on a unit in any minute.
func perMinute(u engine.Unit, n int64) engine.Limit {
	return engine.Limit{Name: u.String(), Unit: u, Limit: limit.New(n, time.Minute).Using(limit.SlidingLog)}
}

// atATime returns a limit on calls under way.
func atATime(n int64) engine.Limit {
	return engine.Limit{Name: "slots", Unit: engine.Slots, Limit: engine.AtATime(n)}
}

// callOf returns a call of one request whose tokens are estimated.
func callOf(project string, tokens int) *engine.Call {
	return &engine.Call{Project: project, Estimated: tokens}
}

// try takes what a call asks for. It must be decided on.
func (b *bench) try(c *engine.Call, scopes ...*engine.Scope) *engine.Result {
	b.t.Helper()
	r := new(engine.Result)
	if err := b.Try(context.Background(), c, scopes, r); err != nil {
		b.t.Fatal(err)
	}
	if (r.Reservation != nil) != r.Allowed() {
		b.t.Fatalf("a reservation: %t; allowed: %t", r.Reservation != nil, r.Allowed())
	}
	return r
}

// take is try of a call that must be admitted.
func (b *bench) take(c *engine.Call, scopes ...*engine.Scope) *engine.Reservation {
	b.t.Helper()
	r := b.try(c, scopes...)
	if !r.Allowed() {
		b.t.Fatalf("denied by %q for %v; want it admitted", r.Limit(), r.RetryAfter())
	}
	return r.Reservation
}

// wantDenied wants a call to be denied by a limit for so long, and to take nothing.
func (b *bench) wantDenied(c *engine.Call, by string, retry time.Duration, scopes ...*engine.Scope) {
	b.t.Helper()
	if r := b.try(c, scopes...); r.Allowed() || r.Limit() != by || r.RetryAfter() != retry {
		b.t.Errorf("denied: %t, by %q for %v; want it denied by %q for %v", !r.Allowed(), r.Limit(), r.RetryAfter(), by, retry)
	}
}

// wantUsed checks how much of each limit of a scope is used, in the order of their units.
func (b *bench) wantUsed(s *engine.Scope, want ...int64) {
	b.t.Helper()
	if got := b.used(s); !slices.Equal(got, want) {
		b.t.Errorf("of %s %d are used; want %d", s.Key, got, want)
	}
}

// used returns what each limit of a scope says is used, in the order of their units.
func (b *bench) used(s *engine.Scope) (used []int64) {
	b.t.Helper()
	standing, err := b.LookAt(context.Background(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range standing.Len() {
		_, d := standing.At(i)
		used = append(used, d.Used)
	}
	return used
}

// waiting is a call that waits for admission.
type waiting struct {
	leave  context.CancelFunc
	done   chan struct{}
	result engine.Result // once done is closed
	err    error
}

// acquire lets a call wait on a goroutine of its own, and returns when it does or has ended.
func (b *bench) acquire(c *engine.Call, scopes ...*engine.Scope) *waiting {
	ctx, leave := context.WithCancel(context.Background())
	w := &waiting{leave: leave, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = b.Acquire(ctx, c, scopes, &w.result)
	}()
	synctest.Wait()
	return w
}

// ended reports whether the call waits no longer.
func (w *waiting) ended() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// passed reports whether the call was admitted.
func (w *waiting) passed() bool { return w.ended() && w.err == nil && w.result.Reservation != nil }
