package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/bus/bustest"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"github.com/redis/rueidis"
)

// nodeOf returns a store that is closed when the test ends.
func TestBus(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) bustest.Connect {
		url := redistest.New(t).URL()
		return func() bustest.Node {
			return hidden.Of[bustest.Node](connect(t, redisstore.Config{URL: url}))
		}
	})
}

func TestBusInACluster(t *testing.T) {
	t.Parallel()
	url := redistest.NewCluster(t, 3).URL()
	bustest.Run(t, func(t *testing.T) bustest.Connect {
		namespace := strings.ReplaceAll(t.Name(), "/", ":")
		return func() bustest.Node {
			return hidden.Of[bustest.Node](connect(t, redisstore.Config{URL: url, Namespace: namespace}))
		}
	})
}

func BenchmarkBus(b *testing.B) {
	url := redistest.New(b).URL()
	bustest.Benchmark(b, func() bustest.Node { return hidden.Of[bustest.Node](connect(b, redisstore.Config{URL: url})) })
}

// Nodes of another namespace do not receive messages, and data that is not a message is dropped.
func TestBusOfANamespace(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	a, b := connect(t, redisstore.Config{URL: server.URL()}), connect(t, redisstore.Config{URL: server.URL()})
	stranger := connect(t, redisstore.Config{URL: server.URL(), Namespace: "other"})
	received := bustest.Subscribe(t, hidden.Of[bus.Bus](b))
	bustest.Publish(t, hidden.Of[bus.Bus](stranger), "not for you")
	for _, text := range []string{"", "short", strings.Repeat("x", 2*bus.MaxMessage)} {
		if n, err := server.Do("PUBLISH", "ratelimit:bus", text); err != nil || n != int64(1) {
			t.Fatalf("published to %v, %v", n, err)
		}
	}
	bustest.Publish(t, hidden.Of[bus.Bus](a), "for you")
	bustest.Want(t, received, "for you")
}

// Subscriptions survive the server and their connections.
func TestSubscribedAgain(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, server *redistest.Server){
		"restarted": func(t *testing.T, server *redistest.Server) {
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"unsubscribed": func(t *testing.T, server *redistest.Server) {
			if _, err := server.Do("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			a, b := connect(t, redisstore.Config{URL: server.URL()}), connect(t, redisstore.Config{URL: server.URL()})
			received := bustest.Subscribe(t, hidden.Of[bus.Bus](b))
			bustest.Publish(t, hidden.Of[bus.Bus](a), "before")
			bustest.Want(t, received, "before")
			fail(t, server)
			testkit.Eventually(t, "a message after the loss", func() bool {
				hidden.Of[bus.Bus](a).Publish(t.Context(), []byte("after"))
				return len(received) > 0
			})
		})
	}
}

// While Redis is lost, nothing waits for it. A subscription of that time begins when Redis is back.
func TestBusWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lose, back func(*redistest.Server) }{
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
		"killed": {(*redistest.Server).Kill, func(s *redistest.Server) { s.Restart() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			a, b := connect(t, redisstore.Config{URL: server.URL(), Timeout: time.Second}), connect(t, redisstore.Config{URL: server.URL(), Timeout: time.Second})
			c.lose(server)
			for range 1000 { // with the store's timeout each, they would take minutes
				if err := hidden.Of[bus.Bus](a).Publish(t.Context(), []byte("x")); !errors.Is(err, redisstore.ErrLost) {
					t.Fatalf("lost: %v", err)
				}
			}
			received := bustest.Subscribe(t, hidden.Of[bus.Bus](b))
			c.back(server)
			testkit.Eventually(t, "a message when Redis is back", func() bool {
				hidden.Of[bus.Bus](a).Publish(t.Context(), []byte("y"))
				return len(received) > 0
			})
		})
	}
}

// A node closes, and a subscriber unsubscribes, while the server does not answer.
func TestBusClosesWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	a, b := connect(t, redisstore.Config{URL: server.URL()}), connect(t, redisstore.Config{URL: server.URL()})
	bustest.Subscribe(t, hidden.Of[bus.Bus](a))
	unsubscribe, err := hidden.Of[bus.Bus](b).Subscribe(func([]byte) {})
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	unsubscribe()
	a.Close()
	b.Close()
}

// The caller's context ends a Publish that Redis does not answer, which says nothing about Redis.
func TestPublishCancelled(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := connect(t, redisstore.Config{URL: server.URL(), Timeout: time.Minute})
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := hidden.Of[bus.Bus](s).Publish(ctx, []byte("x")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redisstore.ErrLost) {
		t.Errorf("cancelled: %v", err)
	}
	server.Resume()
	bustest.Publish(t, hidden.Of[bus.Bus](s), "y")
}

// A closed store whose client stays open publishes nothing.
func TestPublishClosed(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redistest.New(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := redisstore.NewFromClient(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := hidden.Of[bus.Bus](s).Publish(t.Context(), []byte("x")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A subscription that the server refuses begins once the server allows it.
func TestSubscribeRefused(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	a, b := connect(t, redisstore.Config{URL: server.URL()}), connect(t, redisstore.Config{URL: server.URL(), Timeout: time.Second})
	allow := func(channels string) {
		if _, err := server.Do("ACL", "SETUSER", "default", channels); err != nil {
			t.Fatal(err)
		}
	}
	allow("resetchannels")
	received := bustest.Subscribe(t, hidden.Of[bus.Bus](b))
	if err := hidden.Of[bus.Bus](a).Publish(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("forbidden: %v", err)
	}
	allow("allchannels")
	testkit.Eventually(t, "a message once it is allowed", func() bool {
		bustest.Publish(t, hidden.Of[bus.Bus](a), "y")
		return len(received) > 0
	})
}
