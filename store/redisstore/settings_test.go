package redisstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/settings/settingstest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// connect returns a store that waits for Redis as long as a busy machine may take, unless cfg has a timeout.
func connect(t testing.TB, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	cfg.Timeout = cmp.Or(cfg.Timeout, 20*time.Second)
	s, err := redisstore.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type values = map[string]string

func wantSettings(t *testing.T, s *redisstore.Store, want values) {
	t.Helper()
	got, err := hidden.Of[settings.Keeper](s).Settings(t.Context())
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("settings %q, %v; want %q", got, err, want)
	}
}

func TestKeeper(t *testing.T) {
	settingstest.Run(t, func(t *testing.T) settingstest.Connect {
		url := redistest.New(t).URL()
		return func() settings.Keeper { return hidden.Of[settings.Keeper](connect(t, redisstore.Config{URL: url})) }
	})
}

func TestSettingsOfANamespace(t *testing.T) {
	server := redistest.New(t)
	a, b := connect(t, redisstore.Config{URL: server.URL()}), connect(t, redisstore.Config{URL: server.URL(), Namespace: "other"})
	settingstest.Put(t, hidden.Of[settings.Keeper](a), "x", "1")
	wantSettings(t, a, values{"x": "1"})
	wantSettings(t, b, values{})
}

// Setting the same value is not announced.
func TestAnnounced(t *testing.T) {
	server := redistest.New(t)
	s := connect(t, redisstore.Config{URL: server.URL()})
	announced := func() int {
		answer, err := server.Do("INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(answer.(string), "cmdstat_publish:calls=")
		n := 0
		fmt.Sscan(strings.Split(rest, ",")[0], &n)
		return n
	}
	for i, step := range []struct {
		values  values
		onlyNew bool
		want    int // so far
	}{
		{values{"x": "1", "y": "2"}, false, 1},
		{values{"x": "1", "y": "2"}, false, 1},
		{values{"x": "3", "y": "4"}, true, 1},
		{values{"x": "3", "z": "4"}, true, 2},
		{values{"x": "3"}, false, 3},
	} {
		if _, err := hidden.Of[settings.Keeper](s).PutSettings(t.Context(), step.values, step.onlyNew); err != nil {
			t.Fatal(err)
		}
		if got := announced(); got != step.want {
			t.Errorf("step %d: %d were announced; want %d", i, got, step.want)
		}
	}
}

// A watcher that was cut off learns what has changed meanwhile.
func TestWatchAgain(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, server *redistest.Server, proxy *redistest.Proxy, change func(value string)){
		"cut": func(_ *testing.T, _ *redistest.Server, proxy *redistest.Proxy, change func(string)) {
			proxy.Cut()
			change("1")
			proxy.Heal()
		},
		"killed": func(t *testing.T, server *redistest.Server, _ *redistest.Proxy, change func(string)) {
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			change("1")
		},
		"unsubscribed": func(t *testing.T, server *redistest.Server, _ *redistest.Proxy, change func(string)) {
			if _, err := server.Do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
				t.Fatal(err)
			}
			change("1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			proxy := redistest.NewProxy(t, server.Addr)
			s := connect(t, redisstore.Config{URL: proxy.URL()})
			settingstest.Put(t, hidden.Of[settings.Keeper](s), "x", "0")
			news := settingstest.Watched(t, hidden.Of[settings.Keeper](s))
			settingstest.Await(t, hidden.Of[settings.Keeper](s), news, "x", "0")
			fail(t, server, proxy, func(value string) {
				if _, err := server.Do("HSET", "ratelimit:settings", "x", value); err != nil { // without a message on the channel
					t.Fatal(err)
				}
			})
			settingstest.Await(t, hidden.Of[settings.Keeper](s), news, "x", "1")
		})
	}
}

// stop does not wait for a server that does not answer.
func TestStopWatching(t *testing.T) {
	server := redistest.New(t)
	s := connect(t, redisstore.Config{URL: server.URL()})
	server.Pause()
	defer server.Resume()
	hidden.Of[settings.Keeper](s).WatchSettings(func() {})()
}

func TestSettingsOfAClosedStore(t *testing.T) {
	s := connect(t, redisstore.Config{URL: redistest.New(t).URL()})
	begun := make(chan struct{}, 100)
	stop := hidden.Of[settings.Keeper](s).WatchSettings(func() { begun <- struct{}{} })
	<-begun
	s.Close()
	stop()
	if _, err := hidden.Of[settings.Keeper](s).Settings(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := hidden.Of[settings.Keeper](s).PutSettings(t.Context(), values{"x": "1"}, true); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestSettingsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := connect(t, redisstore.Config{URL: server.URL(), Timeout: 50 * time.Millisecond})
	wantLost := func(when string) {
		t.Helper()
		_, read := hidden.Of[settings.Keeper](s).Settings(t.Context())
		_, write := hidden.Of[settings.Keeper](s).PutSettings(t.Context(), values{"x": "1"}, false)
		for _, err := range []error{read, write} {
			if !errors.Is(err, redisstore.ErrLost) {
				t.Errorf("%s: %v; want %v", when, err, redisstore.ErrLost)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hidden.Of[settings.Keeper](s).Settings(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, redisstore.ErrLost) {
		t.Errorf("cancelled: %v", err)
	}
	server.Pause()
	wantLost("paused")
	server.Resume()
	if _, err := server.Do("SET", "ratelimit:settings", "mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := hidden.Of[settings.Keeper](connect(t, redisstore.Config{URL: server.URL()})).Settings(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("not a hash: %v", err)
	}
	server.Kill()
	wantLost("killed")
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the settings can be written again", func() bool {
		_, err := hidden.Of[settings.Keeper](s).PutSettings(t.Context(), values{"x": "1"}, false)
		return err == nil
	})
	wantSettings(t, connect(t, redisstore.Config{URL: server.URL()}), values{"x": "1"})
}

func TestSettingsInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 3)
	a, b := connect(t, redisstore.Config{URL: cluster.URL()}), connect(t, redisstore.Config{URL: cluster.URL()})
	news := settingstest.Watched(t, hidden.Of[settings.Keeper](b))
	settingstest.Put(t, hidden.Of[settings.Keeper](a), "x", "1")
	settingstest.Await(t, hidden.Of[settings.Keeper](b), news, "x", "1")
}
