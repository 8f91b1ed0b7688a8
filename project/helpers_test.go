package project_test

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// A call waits on the goroutine of its caller, and Close ends what follows a store, so no
// goroutine is left.
func TestMain(m *testing.M) {
	bus.Isolate() // most tests have fake time
	goleak.VerifyTestMain(m,
		// A client of Redis that is closed leaves this asleep for up to five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
}

// newLimiter returns a limiter as cfg describes it, until the test ends.
func newLimiter(t testing.TB, cfg project.Config) *project.Limiter {
	t.Helper()
	l, err := project.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// limited returns a limiter in memory in which each project may use so much.
func limited(t testing.TB, each project.Limit) *project.Limiter {
	t.Helper()
	return newLimiter(t, project.Config{Default: &each})
}

// kinds is where a limiter may count. In a file, which is looked at every second, not
// much time should pass.
var kinds = map[string]func(t testing.TB, cfg project.Config) project.Config{
	"memory": func(_ testing.TB, cfg project.Config) project.Config { return cfg },
	"another store": func(_ testing.TB, cfg project.Config) project.Config {
		cfg.Store = another{store.NewMemory()}
		return cfg
	},
	"SQLite": func(t testing.TB, cfg project.Config) project.Config {
		cfg.Store = openSQLite(t, filepath.Join(t.TempDir(), "limits.db"))
		return cfg
	},
}

// another is a store that is asked as any other is: what is faster for [store.Memory] alone
// has no part in it.
type another struct{ *store.Memory }

// longest returns how much time may pass at once in a history on a kind.
func longest(kind string) time.Duration {
	if kind == "SQLite" {
		return 10 * time.Minute
	}
	return project.Never
}

// openSQLite returns a store in a file.
func openSQLite(t testing.TB, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openRedis returns a store in Redis, for which it waits as long as a busy machine may
// take.
func openRedis(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openRedisFor(t testing.TB, url string, timeout time.Duration) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// do has a server carry out a command.
func do(t testing.TB, s *redistest.Server, args ...string) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// stores is where several limiters may count together: each returns what one of them
// needs.
var stores = map[string]func(t testing.TB) func() store.Store{
	"memory": func(testing.TB) func() store.Store {
		s := store.NewMemory()
		return func() store.Store { return s }
	},
	"SQLite": func(t testing.TB) func() store.Store {
		path := filepath.Join(t.TempDir(), "limits.db")
		return func() store.Store { return openSQLite(t, path) }
	},
	"Redis": func(t testing.TB) func() store.Store {
		url := redistest.New(t).URL()
		return func() store.Store { return openRedis(t, url) }
	},
}

// far is a store that is some way off: to ask it takes a while.
type far struct{ *store.Memory }

const away = time.Millisecond

func (f far) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	time.Sleep(away)
	return f.Memory.Take(ctx, charges)
}

func (f far) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	time.Sleep(away)
	return f.Memory.Peek(ctx, charges)
}

// setLimit sets a limit that is valid.
func setLimit(t testing.TB, l *project.Limiter, id string, limit project.Limit) {
	t.Helper()
	if err := l.SetLimit(id, limit); err != nil {
		t.Fatal(err)
	}
	if got := l.Limit(id); got != limit {
		t.Fatalf("%q has %+v; want %+v", id, got, limit)
	}
}

// spend charges a call, which must not fail.
func spend(t testing.TB, l *project.Limiter, c project.Call) project.Decision {
	t.Helper()
	d, err := l.Spend(context.Background(), c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return d
}

// use charges so many requests to a project, one by one, which must pass.
func use(t testing.TB, l *project.Limiter, id string, requests int) {
	t.Helper()
	for i := range requests {
		if d := spend(t, l, project.Call{Project: id}); !d.Allowed {
			t.Fatalf("request %d of %q: denied by %q for %v", i+1, id, d.Limit, d.RetryAfter)
		}
	}
}

// allow asks for a request, and wants an error that says so if it is denied.
func allow(t *testing.T, l *project.Limiter, id string) bool {
	t.Helper()
	allowed, err := l.Allow(t.Context(), id)
	if allowed != (err == nil) || !allowed && !errors.Is(err, project.ErrExceeded) {
		t.Fatalf("%t, %v", allowed, err)
	}
	return allowed
}

// left returns what remains in each of a project's windows, by their names.
func left(t testing.TB, l *project.Limiter, id string) map[string]int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	remaining := map[string]int64{}
	for _, s := range d.Windows() {
		remaining[s.Window.Name] = s.Remaining
	}
	return remaining
}

// everyDoor makes a call through every method that takes one, and returns what each
// has answered.
func everyDoor(l *project.Limiter, c project.Call) map[string]error {
	ctx := context.Background()
	errs := map[string]error{}
	if d, err := l.Spend(ctx, c); err != nil || d.Allowed {
		errs["Spend"] = err
	}
	if res, d, err := l.Take(ctx, c); err != nil || d.Allowed || res != nil {
		errs["Take"] = err
	}
	if res, d, err := l.Acquire(ctx, c); err != nil || d.Allowed || res != nil {
		errs["Acquire"] = err
	}
	return errs
}

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

// result returns what a call has reserved, and its error.
func (l *line) result(name string) (*project.Reservation, project.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name], l.told[name]
}

// all returns the names of the calls that have passed, in order: of those that did at the
// same time, in the order in which they came.
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

// witness is an observer that remembers.
type witness struct{ testkit.Recorder[event.Event] }

// saw returns what has happened since it was last asked, without errors.
func (w *witness) saw() []event.Event {
	all := w.Since()
	for i := range all {
		all[i].Err = nil
	}
	return all
}
