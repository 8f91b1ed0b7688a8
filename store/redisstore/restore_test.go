package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// serveAll takes one after another until it is denied, and returns how many passed. It goes on when the
// server is lost.
func serveAll(t testing.TB, s *Store, key string, limits ...limit.Limit) (n int64) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; {
		r, _, err := s.Take(t.Context(), []store.Charge{{Key: key, Limits: limits, N: 1}})
		switch {
		case errors.Is(err, ErrLost) && time.Now().Before(late):
			time.Sleep(time.Millisecond)
		case err != nil:
			t.Fatal(err)
		case r == nil:
			return n
		default:
			n++
		}
	}
}

// A server without persistence is killed, and started again. All nodes together admit the limit once,
// whatever its algorithm, and the window ends when it would have ended.
func TestServerForgets(t *testing.T) {
	server := redistest.New(t)
	for _, mode := range []StoreLoss{Deny, Share} {
		for name, l := range everyKind(30) {
			t.Run(fmt.Sprint(mode, "/", name), func(t *testing.T) {
				var all []*Store
				for range 2 {
					s := opened(t, server.URL(), Config{OnStoreLoss: mode, Timeout: 20 * time.Second, Namespace: "forgets-" + t.Name()})
					all = append(all, s)
				}
				for _, s := range all {
					if others := s.top.(*fallback).nodes; others != nil {
						others.announceOnce(t.Context())
					}
				}
				passed := serveAll(t, all[0], "key", l) + serveAll(t, all[1], "key", l)
				idle := mustTake(t, all[1], one("idle", l, 20)) // only one node knows of it
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
				passed += serveAll(t, all[1], "key", l) + serveAll(t, all[0], "key", l)
				if passed != 30 {
					t.Errorf("%d passed; want 30", passed)
				}
				for _, s := range all {
					awaitRecovered(t, s)
				}
				if n := serveAll(t, all[0], "idle", l); n != 10 {
					t.Errorf("%d of a key passed that another node has used 20 of; want 10", n)
				}
				if err := all[1].Settle(t.Context(), idle, []int64{5}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// awaitRecovered waits until a node asks nobody but Redis.
func awaitRecovered(t testing.TB, s *Store) {
	t.Helper()
	if others := s.top.(*fallback).nodes; others != nil {
		(&cutNode{Store: s}).awaitRecovery(t)
	}
}

// A node that has not noticed that the server has forgotten everything finds out with its next call,
// which waits until it is put back.
func TestServerForgetsUnnoticed(t *testing.T) {
	server := redistest.New(t)
	lost := make(chan store.Event, 100)
	s := opened(t, server.URL(), Config{Timeout: 20 * time.Second, OnEvent: func(e store.Event) { lost <- e }})
	l := limit.PerHour(10).Using(limit.SlidingLog)
	mustTake(t, s, one("key", l, 7))
	serverDo(t, server, "FLUSHALL")
	if r, _, err := s.Take(t.Context(), one("key", l, 7)); r != nil || err != nil && !errors.Is(err, ErrLost) {
		t.Fatalf("%v, %v", r, err)
	}
	if e := <-lost; e.Kind != store.Unsaved {
		t.Errorf("%+v", e)
	}
	if e := <-lost; e.Kind != store.Lost || !errors.Is(e.Err, errForgotten) {
		t.Errorf("%+v", e)
	}
	if e := <-lost; e.Kind != store.Back {
		t.Errorf("%+v", e)
	}
	wantLeft(t, s, "key", l, 3)
}

// Nodes put back what each of them knows, in any order and at the same time. What counts is the most.
func TestRaise(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	now := time.Now().UnixNano()
	for name, l := range everyKind(100) {
		t.Run(name, func(t *testing.T) {
			r := newRemote(client, "raise-"+name, 5*time.Second, func() int64 { return now }, nil)
			defer r.Close()
			var known limit.Account
			for _, n := range []int64{20, 50, 30} {
				known = limit.Account{}
				impose(&known, []limit.Limit{l}, now, n)
				k := newObservations()
				d := known.Check(l, now, 0)
				k.recordOne(&store.Charge{Key: "key", Limits: []limit.Limit{l}}, 0, []limit.Decision{d}, now)
				if err := r.restore([]observedKey{{"key", k.at("key", now)}}); err != nil {
					t.Fatal(err)
				}
			}
			decisions, err := r.Peek(t.Context(), one("key", l, 1))
			if used := decisions[0].Used; err != nil || used != 50 {
				t.Errorf("%d are used, %v; want 50", used, err)
			}
		})
	}
}

// What a call has used beyond its estimate is put back as well, although no call has asked for the key since.
func TestDebtsArePutBack(t *testing.T) {
	server := redistest.New(t)
	for name, l := range everyKind(100) {
		t.Run(name, func(t *testing.T) {
			s := opened(t, server.URL(), Config{Timeout: 20 * time.Second, Namespace: "debts-" + name})
			if err := s.Settle(t.Context(), mustTake(t, s, one("key", l, 10)), []int64{90}); err != nil {
				t.Fatal(err)
			}
			if err := s.Settle(t.Context(), mustTake(t, s, one("more", l, 10)), []int64{1 << 40}); err != nil {
				t.Fatal(err)
			}
			serverDo(t, server, "FLUSHALL")
			if n := serveAll(t, s, "key", l); n != 10 {
				t.Errorf("%d of 100 passed after 90 were used", n)
			}
			if n := serveAll(t, s, "more", l); n != 0 {
				t.Errorf("%d of 100 passed after more than all were used", n)
			}
		})
	}
}

// meddler is a client of a node. After each of its commands another node takes from a key.
type meddler struct {
	rueidis.Client
	take func()
}

func (m *meddler) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	result := m.Client.Do(ctx, cmd)
	m.take()
	return result
}

// A node that puts back what it knows is not kept out by other nodes that take from one of the keys all
// the time. What they take counts in addition, and other keys are put back as they were.
func TestBusyKeysArePutBack(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	now := time.Now().UnixNano()
	for name, l := range everyKind(1000) {
		t.Run(name, func(t *testing.T) {
			other := newRemote(client, "busy-"+name, 5*time.Second, func() int64 { return now }, nil)
			defer other.Close()
			const most = 100
			taken := int64(0)
			r := newRemote(&meddler{client, func() {
				if taken < most {
					mustTake(t, other, one("busy", l, 1))
					taken++
				}
			}}, "busy-"+name, 5*time.Second, func() int64 { return now }, nil)
			defer r.Close()
			var known limit.Account
			impose(&known, []limit.Limit{l}, now, 600)
			k := newObservations()
			keys := []string{"busy"}
			for i := range 20 {
				keys = append(keys, fmt.Sprint("quiet-", i))
			}
			var all []observedKey
			for _, key := range keys {
				k.recordOne(&store.Charge{Key: key, Limits: []limit.Limit{l}}, 0, []limit.Decision{known.Check(l, now, 0)}, now)
				all = append(all, observedKey{key, k.at(key, now)})
			}
			if err := r.restore(all); err != nil {
				t.Fatal(err)
			}
			if taken == most {
				t.Errorf("it was kept out until the other node had stopped")
			}
			for _, key := range keys {
				decisions, err := other.Peek(t.Context(), one(key, l, 1))
				if err != nil {
					t.Fatal(err)
				}
				used := decisions[0].Used
				if key == "busy" && (used <= 600 || used > 600+taken) || key != "busy" && used != 600 {
					t.Errorf("%d of %s are used; want 600, and of the busy one what the other node has taken since: it took %d in all", used, key, taken)
				}
			}
		})
	}
}

// A server without an append-only file is reported once, and one that does not tell is not.
func TestUnsaved(t *testing.T) {
	plain, saved := redistest.New(t), redistest.New(t, "--appendonly", "yes")
	serverDo(t, plain, "ACL", "SETUSER", "limiter", "on", ">secret", "~ratelimit:*", "&ratelimit:*", "+@all", "-@admin", "-@dangerous")
	for url, want := range map[string]bool{plain.URL(): true, saved.URL(): false, plain.LoginURL("limiter", "secret"): false} {
		events := make(chan store.Event, 10)
		s := opened(t, url, Config{Timeout: 20 * time.Second, OnEvent: func(e store.Event) { events <- e }})
		mustTake(t, s, one("key", limit.PerHour(10), 1))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for passing := true; passing; time.Sleep(time.Millisecond) {
			sent := &s.top.(*fallback).events
			sent.mu.Lock()
			passing = sent.running
			sent.mu.Unlock()
		}
		select {
		case e := <-events:
			if !want || e.Kind != store.Unsaved || e.Err.Error() != "ratelimit: "+plain.Addr+": appendonly is no" {
				t.Errorf("%s: %+v", url, e)
			}
		default:
			if want {
				t.Errorf("%s: nothing was reported", url)
			}
		}
	}
}

// In a cluster, each part of the keyspace is put back by itself.
func TestClusterForgets(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster takes seconds to start")
	}
	t.Parallel()
	cluster := redistest.NewCluster(t, 3)
	s := opened(t, cluster.URL(), Config{Timeout: 10 * time.Second})
	l := limit.PerHour(10).Using(limit.SlidingLog)
	for i := range 20 {
		mustTake(t, s, one(fmt.Sprintf("model/%d/requests", i), l, 7))
	}
	for _, master := range cluster.Servers {
		serverDo(t, master, "FLUSHALL")
	}
	for i := range 20 {
		if n := serveAll(t, s, fmt.Sprintf("model/%d/requests", i), l); n != 3 {
			t.Errorf("%d of model %d passed; want 3", n, i)
		}
	}
}
