package keys

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// Close stops following the store, so no goroutine is left.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A closed client of Redis leaves this goroutine asleep for up to five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	)
}

var bg = context.Background()

// ring returns the keys of a keeper, until the test ends.
func ring(t testing.TB, k settings.Keeper) *Ring {
	t.Helper()
	r, err := Open(k, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func create(t testing.TB, r *Ring, project, name string, ttl time.Duration) (string, Key) {
	t.Helper()
	secret, k, err := r.Create(bg, project, name, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return secret, k
}

func rotate(t testing.TB, r *Ring, id string, grace time.Duration) (string, Key) {
	t.Helper()
	secret, k, err := r.Rotate(bg, id, grace)
	if err != nil {
		t.Fatal(err)
	}
	return secret, k
}

func revoke(t testing.TB, r *Ring, id string) {
	t.Helper()
	if err := r.Revoke(bg, id); err != nil {
		t.Fatal(err)
	}
}

// difference says where two values differ; times must be the same in their zone, too.
func difference(want, got any) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a == b }))
}

// wantKey checks whether a secret is valid, and whose it is.
func wantKey(t testing.TB, r *Ring, secret string, valid bool, want Key) {
	t.Helper()
	if !valid {
		want = Key{}
	}
	got, ok := r.Find(secret)
	if diff := difference(want, got); diff != "" || ok != valid {
		t.Errorf("valid is %t, want %t; the key: want (-), got (+):\n%s", ok, valid, diff)
	}
}

func openSQLite(t testing.TB, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openRedis(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// stores is where several gateways may keep their keys, each through a store of its own.
var stores = map[string]func(t testing.TB) (connect func() settings.Keeper){
	"SQLite": func(t testing.TB) func() settings.Keeper {
		path := filepath.Join(t.TempDir(), "limits.db")
		return func() settings.Keeper { return hidden.Of[settings.Keeper](openSQLite(t, path)) }
	},
	"Redis": func(t testing.TB) func() settings.Keeper {
		url := redistest.New(t).URL()
		return func() settings.Keeper { return hidden.Of[settings.Keeper](openRedis(t, url)) }
	},
}
