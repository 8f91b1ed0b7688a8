package project_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// Who waits does so on the caller's goroutine, and Close ends what follows a
// store, so none is left.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A client of Redis that is closed leaves these asleep for up to five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
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

// kinds is where a limiter may count. In a file, which is looked at every second, not
// much time should pass.
var kinds = map[string]func(t testing.TB, cfg project.Config) project.Config{
	"memory": func(_ testing.TB, cfg project.Config) project.Config { return cfg },
	"a store in memory": func(_ testing.TB, cfg project.Config) project.Config {
		cfg.Store = store.NewMemory()
		return cfg
	},
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
			t.Fatalf("request %d of %q: denied by %q for %v", i+1, id, d.Exceeded, d.RetryAfter)
		}
	}
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
