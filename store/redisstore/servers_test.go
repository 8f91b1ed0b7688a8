package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// month is a period of which next to nothing passes while a test runs.
const month = 1000 * time.Hour

// everyKind returns one limit of each algorithm, and of each way in which windows begin. None
// begins a window, or drains one, while a test runs.
func everyKind(count int64) map[string]limit.Limit {
	l := limit.New(count, month)
	now := time.Now().UTC()
	noon := time.Duration(now.Hour()+12)%24*time.Hour + time.Duration(now.Minute())*time.Minute // as far away as can be
	return map[string]limit.Limit{
		"gcra":            l,
		"token bucket":    l.Using(limit.TokenBucket),
		"leaky bucket":    l.Using(limit.LeakyBucket),
		"fixed window":    l.Using(limit.FixedWindow),
		"anchored":        l.Anchored(),
		"calendar":        limit.PerDay(count).ResetAt(noon, time.UTC),
		"sliding log":     l.Using(limit.SlidingLog),
		"sliding counter": l.Using(limit.SlidingCounter),
	}
}

// one returns a charge of one key under one limit.
func one(key string, l limit.Limit, n int64) []store.Charge {
	return []store.Charge{{Key: key, Limits: []limit.Limit{l}, N: n}}
}

// mustTake takes what must pass.
func mustTake(t testing.TB, s store.Store, charges []store.Charge) store.Receipt {
	t.Helper()
	r, decisions, err := s.Take(t.Context(), charges)
	if err != nil || r == nil {
		t.Fatalf("%v, %v of %+v", decisions, err, charges)
	}
	return r
}

// wantLeft fails unless so much is left of a limit.
func wantLeft(t testing.TB, s store.Store, key string, l limit.Limit, want int64) {
	t.Helper()
	decisions, err := s.Peek(t.Context(), one(key, l, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got := decisions[0].Remaining; got != want {
		t.Errorf("%s: %d are left of %v; want %d", key, got, l, want)
	}
}

// serverDo runs a command on the server itself.
func serverDo(t testing.TB, s *redistest.Server, args ...string) any {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatal(args, err)
	}
	return answer
}

func TestURLs(t *testing.T) {
	t.Parallel()
	l := limit.New(10, month)
	user := []string{"--user", "alice", "on", ">s3cret", "resetchannels", "&ratelimit:*", "~ratelimit:*",
		"+@read", "+@write", "+@scripting", "+@connection", "+@pubsub", "+time"}
	server, guarded, secure := redistest.New(t), redistest.New(t, user...), redistest.NewTLS(t)
	for _, c := range []struct {
		name, url, space string // where the keys are then
		server           *redistest.Server
	}{
		{"plain", server.URL(), "db0:", server},
		{"no database", server.URL() + "/", "", nil},
		{"a database", server.URL() + "/3", "db3:", server},
		{"valkey", "valkey://" + server.Addr + "/4", "db4:", server},
		{"RESP2", server.URL() + "/5?protocol=2", "db5:", server},
		{"a timeout", server.URL() + "/6?timeout=2s", "db6:", server},
		{"a user", guarded.LoginURL("alice", "s3cret"), "db0:", guarded},
		{"TLS of somebody unknown", secure.URL() + "?skip_verify", "db0:", secure.Server},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.server == nil {
				if _, err := New(Config{URL: c.url}); err == nil || !strings.Contains(err.Error(), "redis://127.0.0.1") {
					t.Error(err)
				}
				return
			}
			s := opened(t, c.url, Config{OnStoreLoss: Share, Timeout: 10 * time.Second})
			r := mustTake(t, s, one("a/key", l, 4))
			if err := s.Settle(t.Context(), r, []int64{3}); err != nil {
				t.Error(err)
			}
			wantLeft(t, s, "a/key", l, 7)
			if keys, err := s.Keys(t.Context(), "a/"); err != nil || !slices.Equal(keys, []string{"a/key"}) {
				t.Error(keys, err)
			}
			if info := fmt.Sprint(serverDo(t, c.server, "INFO", "keyspace")); !strings.Contains(info, c.space) {
				t.Errorf("no %s in %s", c.space, info)
			}
			if err := s.Reset(t.Context(), "a/"); err != nil {
				t.Error(err)
			}
			wantLeft(t, s, "a/key", l, 10)
		})
	}
}

// Errors of connecting say what to do, and contain no password.
func TestURLsThatDoNotWork(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush"
	guarded := redistest.New(t, "--requirepass", "another", "--user", "alice", "on", ">another", "~ratelimit:*", "+@all",
		"--user", "reader", "on", ">"+secret, "~ratelimit:*", "+@all", "-@write")
	secure := redistest.NewTLS(t)
	nobody := testkit.NewPort(t).Addr
	for _, c := range []struct{ name, url, want string }{
		{"a wrong password", guarded.LoginURL("alice", secret), "WRONGPASS"},
		{"a wrong password of no user", guarded.LoginURL("", secret), "WRONGPASS"},
		{"an unknown user", guarded.LoginURL("bob", secret), "WRONGPASS"},
		{"no password", guarded.URL(), "NOAUTH"},
		{"a timeout without a unit", guarded.URL() + "?timeout=5", "it must be like 250ms or 1s"},
		{"nobody vouches", "rediss://x:" + secret + "@" + secure.Addr, "certificate"},
		{"nobody is there", "redis://x:" + secret + "@" + nobody, "no connection to " + nobody + ": connect: connection refused"},
		{"a scheme", "http://x:" + secret + "@127.0.0.1", "redis://127.0.0.1"},
		{"no number", "redis://x:" + secret + "@127.0.0.1/one", "redis://127.0.0.1"},
		{"a number and a slash in it", "redis://x:1/" + secret + "@127.0.0.1:6379", "redis://127.0.0.1"},
		{"a port", "redis://x:" + secret + "@127.0.0.1:port", "redis://127.0.0.1"},
		{"a slash in it", "redis://x:" + secret + "/more@127.0.0.1", "redis://127.0.0.1"},
		{"a percent in it", "redis://x:" + secret + "%" + secret + "@127.0.0.1", "redis://127.0.0.1"},
		{"a space in it", "redis://x:" + secret + " more@127.0.0.1", "redis://127.0.0.1"},
		{"no scheme", "x:" + secret + "@127.0.0.1", "redis://127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(Config{URL: c.url, Timeout: 10 * time.Second})
			if err == nil {
				s.Close()
				t.Fatal("it works")
			}
			text := err.Error()
			if !strings.HasPrefix(text, "ratelimit: ") || !strings.Contains(text, c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
			if strings.Contains(text, "hush") || strings.Contains(text, "%hu") {
				t.Errorf("it tells the password: %v", err)
			}
		})
	}
	t.Run("a user who may not write", func(t *testing.T) {
		s := opened(t, guarded.LoginURL("reader", secret), Config{Timeout: 10 * time.Second})
		_, _, err := s.Take(t.Context(), one("key", limit.New(10, month), 1))
		if !errors.Is(err, ErrLost) || strings.Contains(err.Error(), secret) {
			t.Error(err)
		}
	})
}

// A client that the caller made stays open.
func TestNewFromClient(t *testing.T) {
	t.Parallel()
	l := limit.New(10, month)
	secure := redistest.NewTLS(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{secure.Addr}, TLSConfig: secure.Config, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := range int64(3) {
		s, err := NewFromClient(client, Config{OnStoreLoss: Share, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, one("key", l, 1))
		wantLeft(t, s, "key", l, 9-n)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Take(t.Context(), one("key", l, 1)); !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
		if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

// expireAll deletes all keys of a server, as if they had expired: it does not forget that they were there.
func expireAll(t testing.TB, s *redistest.Server) {
	t.Helper()
	for _, name := range serverDo(t, s, "KEYS", "*").([]any) {
		if !strings.HasSuffix(name.(string), ":born") {
			serverDo(t, s, "DEL", name.(string))
		}
	}
}

// due returns when each key of a server expires, in Unix milliseconds. -1: never.
func due(t testing.TB, s *redistest.Server) map[string]int64 {
	t.Helper()
	at := map[string]int64{}
	for _, name := range serverDo(t, s, "KEYS", "*").([]any) {
		if strings.HasSuffix(name.(string), ":born") {
			continue
		}
		at[name.(string)] = serverDo(t, s, "PEXPIRETIME", name.(string)).(int64)
	}
	return at
}

// A key expires when it is full, to the millisecond unless it has a log. Markers and nodes expire
// soon, and only settings and birth marks never do.
func TestExpiry(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{OnStoreLoss: Share, Timeout: 10 * time.Second})
	if _, err := inside(s).PutSettings(t.Context(), map[string]string{"name": "value"}, false); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, key string) {
		t.Helper()
		accounts, now, err := s.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		fullAt := accounts[0].FullAt()
		found := 0
		for name, at := range due(t, server) {
			switch {
			case name == "ratelimit:settings":
				if at != -1 {
					t.Errorf("%s expires at %d", name, at)
				}
			case name == "ratelimit:nodes" || strings.Contains(name, ":last:"):
				if soon := now/1e6 + 60_000; at < 0 || at > soon {
					t.Errorf("%s expires at %d; want %d at the latest", name, at, soon)
				}
			case strings.HasSuffix(name, fmt.Sprintf(":%d:%s", len(key), key)):
				found++
				want, slack := (fullAt+999_999)/1e6, int64(130_000) // not every call says when a key expires
				if at < want || at > want+slack {
					t.Errorf("%s expires at %d, %d ms after it is full", name, at, at-want)
				}
			case at < 0:
				t.Errorf("%s does not expire", name)
			}
		}
		if found == 0 && fullAt > now {
			t.Error("it is not there")
		}
	}
	kinds := everyKind(10)
	all := make([]limit.Limit, 0, len(kinds))
	for _, l := range kinds {
		all = append(all, l)
	}
	for name, limits := range map[string][]limit.Limit{
		"all":          all,
		"minute":       {limit.PerMinute(10)},
		"day":          {limit.PerDay(10)},
		"minute, hour": {limit.PerMinute(10).Using(limit.SlidingLog), limit.PerHour(20).Using(limit.SlidingLog)},
	} {
		t.Run(name, func(t *testing.T) { expires(t, s, name, limits, check) })
	}
	for name, l := range everyKind(10) {
		t.Run(name, func(t *testing.T) { expires(t, s, name, []limit.Limit{l}, check) })
	}
}

// expires takes and settles, and checks each time when the key expires.
func expires(t *testing.T, s *Store, key string, limits []limit.Limit, check func(*testing.T, string)) {
	charges := []store.Charge{{Key: key, Limits: limits, N: 3}}
	first := mustTake(t, s, charges)
	check(t, key)
	second := mustTake(t, s, charges)
	check(t, key)
	for _, step := range []struct {
		r      store.Receipt
		actual int64
	}{{second, 1}, {first, 30}} {
		if err := s.Settle(t.Context(), step.r, []int64{step.actual}); err != nil {
			t.Error(err)
		}
		check(t, key)
	}
	for _, l := range limits {
		wantLeft(t, s, key, l, 0)
	}
}

// A key that has expired is as good as new, and a key in use does not expire.
func TestExpired(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: 10 * time.Second})
	for i, l := range []limit.Limit{
		limit.New(3, 200*time.Millisecond),
		limit.New(3, 200*time.Millisecond).Anchored(),
		limit.New(3, 200*time.Millisecond).Using(limit.SlidingLog),
	} {
		key := strconv.Itoa(i)
		for range 3 {
			mustTake(t, s, one(key, l, 1))
		}
		accounts, at, err := s.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for full := accounts[0].FullAt(); at < full; { // the server's clock
			decisions, err := s.Peek(t.Context(), one(key, l, 0))
			if err != nil {
				t.Fatal(err)
			}
			if accounts, at, err = s.Read(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if at < full && decisions[0].Remaining == 3 {
				t.Fatalf("%v: %d ns before it is full, 3 are left", l, full-at)
			}
			if at < full && accounts[0].FullAt() != full {
				t.Fatalf("%v: it has gone %d ns before it is full", l, full-at)
			}
		}
		mustTake(t, s, one(key, l, 3))
	}
}

// A take from a key that has expired since can be settled, and does not disturb later takes.
func TestSettledAfterItExpired(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: 10 * time.Second})
	l := limit.New(10, 50*time.Millisecond)
	for _, l := range []limit.Limit{
		l, l.Using(limit.TokenBucket), l.Using(limit.LeakyBucket), l.Using(limit.FixedWindow), l.Anchored(),
		l.Using(limit.SlidingLog), l.Using(limit.SlidingCounter),
	} {
		t.Run(l.String(), func(t *testing.T) {
			for _, actual := range []int64{2, 5} {
				r := mustTake(t, s, one("key", l, 4))
				awaitFull(t, s, "key")
				if err := s.Settle(t.Context(), r, []int64{actual}); err != nil {
					t.Fatal(err)
				}
				awaitFull(t, s, "key") // of a bucket, what was used beyond it drains now
				mustTake(t, s, one("key", l, 10))
				awaitFull(t, s, "key")
			}
		})
	}
}

// awaitFull waits until a key is full again, by the server's clock.
func awaitFull(t testing.TB, s *Store, key string) {
	t.Helper()
	for {
		accounts, at, err := s.Read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if at >= accounts[0].FullAt() {
			return
		}
	}
}

// A take is settled after the count of its limit has changed, too, as in memory.
func TestSettledAfterAChange(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	defer memory.Close()
	s := opened(t, redistest.New(t).URL(), Config{Timeout: 10 * time.Second})
	for name, l := range everyKind(100) {
		changed := l.WithCount(50).WithBurst(50)
		for _, actual := range []int64{0, 4, 13, 90} {
			key := fmt.Sprint(name, actual)
			var left []int64
			for _, s := range []store.Store{memory, s} {
				mustTake(t, s, one(key, l, 15))
				before := mustTake(t, s, one(key, l, 10))
				after := mustTake(t, s, one(key, changed, 5))
				for _, r := range []store.Receipt{before, after, before} {
					if err := s.Settle(t.Context(), r, []int64{actual}); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				}
				decisions, err := s.Peek(t.Context(), one(key, changed, 0))
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, decisions[0].Remaining)
			}
			if left[0] != left[1] {
				t.Errorf("%s: %d are left; in memory %d", key, left[1], left[0])
			}
		}
	}
}

// nameIn returns the name of a key in Redis.
func nameIn(key string) string {
	return (&remote{namespace: defaultNamespace}).redisKey(partOf(key), key)
}

// A value of another program under the name of a key is an error that says so, and does not affect
// the keys that are asked for at the same time.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: 10 * time.Second, OnStoreLoss: Allow})
	good := limit.New(10, month)
	head := nameIn("key")
	half := []string{"EVAL", "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 30))", "1", head}
	for _, c := range []struct {
		kind, name string
		do         []string
	}{
		{"gcra", "a list", []string{"RPUSH", head, "x"}},
		{"sliding log", "a list", []string{"RPUSH", head, "x"}},
		{"gcra", "nothing", []string{"SET", head, ""}},
		{"gcra", "a byte", []string{"SET", head, "x"}},
		{"gcra", "a word", []string{"SET", head, "something else"}},
		{"gcra", "a long text", []string{"SET", head, strings.Repeat("something else ", 100)}},
		{"gcra", "ones", []string{"SET", head, strings.Repeat("\xff", 200)}},
		{"gcra", "half of it", half},
		{"sliding log", "half of it", half},
	} {
		t.Run(c.kind+", "+c.name, func(t *testing.T) {
			defer expireAll(t, server)
			l := everyKind(10)[c.kind]
			r := mustTake(t, s, one("key", l, 3))
			if c.do[0] == "RPUSH" {
				serverDo(t, server, "DEL", c.do[1])
			}
			serverDo(t, server, c.do...)
			both := append(one("other", good, 1), one("key", l, 1)...)
			for name, call := range map[string]func() error{
				"take":      func() error { _, _, err := s.Take(t.Context(), one("key", l, 1)); return err },
				"take both": func() error { _, _, err := s.Take(t.Context(), both); return err },
				"peek":      func() error { _, err := s.Peek(t.Context(), both); return err },
				"settle":    func() error { return s.Settle(t.Context(), r, []int64{2}) },
				"read":      func() error { _, _, err := s.Read(t.Context(), "key"); return err },
			} {
				err := call()
				if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), head) || errors.Is(err, ErrLost) {
					t.Errorf("%s: %v; want an error that names %s", name, err, head)
				}
			}
			wantLeft(t, s, "other", good, 10)
			if err := s.Reset(t.Context(), "key"); err != nil {
				t.Error(err)
			}
			mustTake(t, s, one("key", l, 10))
		})
	}
}

// Whatever happens to the server between a take and its settlement: amounts that it still has are
// corrected, others are not given back, and what was used beyond is owed. Only an anchored window
// that is gone is not opened again for that.
func TestBetweenTakeAndSettle(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: 10 * time.Second})
	takeAll := func(t *testing.T) map[string]store.Receipt {
		receipts := map[string]store.Receipt{}
		for name, l := range everyKind(10) {
			receipts[name] = mustTake(t, s, one(name, l, 6))
		}
		return receipts
	}
	type left struct{ same, less, more, bucket, anchored int64 } // what is left of 10, when a take of 6 used 6, 2 and 9
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		want left
	}{
		{"nothing", func(*testing.T) {}, left{4, 8, 1, 1, 1}},
		{"no scripts", func(t *testing.T) { serverDoAll(t, server, "SCRIPT FLUSH", "FUNCTION FLUSH") }, left{4, 8, 1, 1, 1}},
		{"no connections", func(t *testing.T) { serverDo(t, server, "CLIENT", "KILL", "TYPE", "normal") }, left{4, 8, 1, 1, 1}},
		{"no keys", func(t *testing.T) { expireAll(t, server) }, left{10, 10, 7, 1, 10}}, // a bucket's receipt knows its backlog
		{"other keys", func(t *testing.T) {
			expireAll(t, server)
			takeAll(t)
		}, left{4, 4, 1, 1, 4}},
		{"restarted", func(t *testing.T) {
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}, left{4, 4, 1, 1, 4}}, // and what was taken is put back
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, actual := range []int64{6, 2, 9, -1} {
				expireAll(t, server)
				receipts := takeAll(t)
				c.do(t)
				for name, l := range everyKind(10) {
					for range 2 { // once
						if err := s.Settle(t.Context(), receipts[name], []int64{actual}); err != nil {
							t.Error(err)
						}
					}
					want := c.want.same
					switch {
					case actual == 2:
						want = c.want.less
					case actual == 9 && isBucket(l):
						want = c.want.bucket
					case actual == 9 && name == "anchored":
						want = c.want.anchored
					case actual == 9:
						want = c.want.more
					}
					wantLeft(t, s, name, l, want)
				}
			}
		})
	}
}

// A server that cannot serve is an error that says why, nothing is charged, and service goes on
// once it can.
func TestServersThatCannotServe(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	s := opened(t, server.URL(), Config{Timeout: time.Second})
	for _, c := range []struct {
		name, lose, back, why string
	}{
		{"out of memory", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "raise the server's maxmemory"},
		{"a replica", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "connect to its master"},
		{"too few replicas", "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "min-replicas-to-write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer expireAll(t, server)
			kinds := everyKind(10)
			receipts := map[string]store.Receipt{}
			for name, l := range kinds {
				receipts[name] = serve(t, s, one(name, l, 6))
			}
			serverDoAll(t, server, c.lose)
			for name, l := range kinds {
				_, _, err := s.Take(t.Context(), one(name, l, 1))
				if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v; want %s", err, c.why)
				}
				if err := s.Settle(t.Context(), receipts[name], []int64{5}); !errors.Is(err, ErrLost) {
					t.Error(err)
				}
			}
			serverDoAll(t, server, c.back)
			for name, l := range kinds {
				r := serve(t, s, one(name, l, 4))
				if err := s.Settle(t.Context(), receipts[name], []int64{5}); err != nil {
					t.Error(err)
				}
				wantLeft(t, s, name, l, 1)
				if err := s.Settle(t.Context(), r, []int64{0}); err != nil {
					t.Error(err)
				}
				wantLeft(t, s, name, l, 5)
			}
		})
	}
}

// A server that is too old for functions is an error that says so.
func TestServerWithoutFunctions(t *testing.T) {
	t.Parallel()
	s := opened(t, redistest.New(t, "--rename-command", "FCALL", "").URL(), Config{Timeout: patient})
	_, _, err := s.Take(t.Context(), one("key", limit.PerMinute(5), 1))
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "Redis 7.0 or newer is needed") {
		t.Error(err)
	}
}

// serve takes what must pass once the store serves again.
func serve(t testing.TB, s *Store, charges []store.Charge) store.Receipt {
	t.Helper()
	for {
		r, _, err := s.Take(t.Context(), charges)
		if err == nil && r != nil {
			return r
		}
		if !errors.Is(err, ErrLost) {
			t.Fatalf("%v, %v", r, err)
		}
		awaitBack(s)
	}
}

// A URL may have the timeout, unless the configuration has one.
func TestTimeoutInAURL(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for own, want := range map[time.Duration]time.Duration{0: 7 * time.Second, time.Minute: time.Minute} {
		if s := opened(t, server.URL()+"?timeout=7s", Config{Timeout: own}); s.timeout != want || linkOf(s).cfg.timeout != want {
			t.Errorf("a call waits for %v, want %v", s.timeout, want)
		}
	}
	if _, err := New(Config{URL: server.URL() + "?timeout=-1s"}); err == nil || !strings.Contains(err.Error(), "it must be a millisecond or more") {
		t.Error(err)
	}
}

// A library that was asked for more forms of takes than it remembers answers as before.
func TestManyFormsOfTakes(t *testing.T) {
	t.Parallel()
	s := opened(t, redistest.New(t).URL(), Config{Timeout: patient})
	const calls, count = 729, 10_000 // of six charges with three forms each, so that there are 1,092 beginnings of answers
	all := everyKind(count)
	forms := [][]limit.Limit{{all["gcra"]}, {all["fixed window"]}, {all["gcra"], all["sliding log"]}}
	for i := range calls {
		var charges []store.Charge
		for k := range 6 {
			charges = append(charges, store.Charge{Key: fmt.Sprint(k, " ", i%3), Limits: forms[i%3], N: 1})
			i /= 3
		}
		mustTake(t, s, charges)
	}
	for k := range 6 {
		for i, limits := range forms {
			for _, l := range limits {
				wantLeft(t, s, fmt.Sprint(k, " ", i), l, count-calls/3)
			}
		}
	}
}
