package ratelimit_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// onRedis returns a limiter whose counters are in Redis. It waits for Redis as long as a busy
// machine may take.
func onRedis(t testing.TB, url string, q quotas) *ratelimit.RateLimiter {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{URL: url, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return onStore(t, s, q)
}

// onRedisWith returns a limiter as cfg describes it, with Redis.
func onRedisWith(t testing.TB, cfg ratelimit.Config) *ratelimit.RateLimiter {
	t.Helper()
	cfg.Backend = ratelimit.BackendRedis
	rl, err := ratelimit.NewWithConfig(cfg.Patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	return rl
}

// has waits until a limiter has a quota.
func has(t testing.TB, rl *ratelimit.RateLimiter, model string, quota ratelimit.ModelQuota) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%s has %+v", model, quota), func() bool { return rl.Quotas()[model] == quota })
}

// However many callers on however many nodes, together they get exactly the limit.
func TestRedisExactly(t *testing.T) {
	url := redistest.New(t).URL()
	q := quotas{
		"requests":         {MaxRPM: 100},
		"tokens":           {MaxTPM: 1000, MaxRPM: 10_000},
		"requests_per_day": {MaxRPD: 77, MaxTPM: 1 << 40},
		"slots":            {MaxConcurrent: 13, MaxRPM: 10_000},
	}
	want := map[string]int{"requests": 100, "tokens": 142, "requests_per_day": 77, "slots": 13}
	machines := []*ratelimit.RateLimiter{onRedis(t, url, q), onRedis(t, url, q)}
	var mu sync.Mutex
	admitted := map[string]int{}
	var wg sync.WaitGroup
	for model := range q {
		for i := range 8 {
			wg.Go(func() {
				n, d := fill(machines[i%2], model, 7)
				if d.Code == ratelimit.DecisionStoreLost || d.RetryAfter <= 0 {
					t.Errorf("%s: %+v", model, d)
				}
				mu.Lock()
				defer mu.Unlock()
				admitted[model] += n
			})
		}
	}
	wg.Wait()
	if !maps.Equal(admitted, want) {
		t.Errorf("admitted %v; want %v", admitted, want)
	}
}

func TestRedisProcesses(t *testing.T) { wantProcessesToShare(t, redistest.New(t).URL()) }

// Usage that one limiter takes, settles, records or resets, the other sees, on a file and on Redis.
func TestLimitersShareUsage(t *testing.T) {
	path, url := filepath.Join(t.TempDir(), "limits.db"), redistest.New(t).URL()
	for name, open := range map[string]func(t testing.TB, q quotas) *ratelimit.RateLimiter{
		"sqlite": func(t testing.TB, q quotas) *ratelimit.RateLimiter { return openFile(t, path, q) },
		"redis":  func(t testing.TB, q quotas) *ratelimit.RateLimiter { return onRedis(t, url, q) },
	} {
		t.Run(name, func(t *testing.T) { testSharedUsage(t, open) })
	}
}

func testSharedUsage(t *testing.T, open func(t testing.TB, q quotas) *ratelimit.RateLimiter) {
	q := quotas{"m": {MaxRPM: 4, MaxTPM: 100, MaxRPD: 9, MaxConcurrent: 3, MaxInputTPM: 90, MaxTPD: 1000}, "free": {}}
	a, b := open(t, q), open(t, q)
	reserved := mustTake(t, a, 30)
	if _, d := b.TryAcquire("m", 40); !d.Allowed || d.Stats != a.Stats("m") {
		t.Fatalf("%+v; want %+v", d, a.Stats("m"))
	}
	day := a.Stats("m").DayStart
	if since := time.Since(day); since < 0 || since > time.Minute {
		t.Errorf("the day began at %v", day)
	}
	want := ratelimit.ModelStats{RPM: 2, MaxRPM: 4, TPM: 70, MaxTPM: 100, RPD: 2, MaxRPD: 9, DayStart: day, Concurrent: 2, MaxConcurrent: 3, InputTPM: 70, MaxInputTPM: 90, TPD: 70, MaxTPD: 1000}
	wantStats(t, b, "m", want)
	reserved.Commit(5, 10)
	settled(a)
	want.TPM, want.InputTPM, want.TPD, want.Concurrent = 55, 45, 55, 1
	wantStats(t, b, "m", want)
	if d := b.Decide("m", 46); d.Code != overTPM || d.RetryAfter <= 0 || d.RetryAfter > time.Minute {
		t.Errorf("%+v", d)
	}
	if _, d := b.TryAcquire("m", 101); d.RetryAfter != ratelimit.Never {
		t.Errorf("%+v", d)
	}
	b.RecordUsage("m", 100, 100) // makes a debt
	for _, rl := range []*ratelimit.RateLimiter{a, b} {
		if _, d := rl.TryAcquire("m", 0); d.Allowed || d.Stats.TPM != 255 || d.Stats != a.Stats("m") {
			t.Errorf("%+v", d)
		}
	}
	b.RecordUsage("other", 1, 1)
	for _, rl := range []*ratelimit.RateLimiter{a, b} {
		if got := slices.Collect(rl.Models()); !slices.Equal(got, []string{"free", "m", "other"}) {
			t.Errorf("%q", got)
		}
		if got := rl.State()["m"]; len(got.Requests) != 3 || got.DayCount != 3 || !got.DayStart.Equal(day) {
			t.Errorf("%+v", got)
		}
	}
	a.Reset("m")
	if got := b.Stats("m"); got.RPM != 0 || got.RPD != 0 || got.Concurrent != 0 || !got.DayStart.IsZero() {
		t.Errorf("%+v", got)
	}
	if got := b.AllStats()["other"]; got.RPM != 1 || got.TPM != 2 {
		t.Errorf("%+v", got)
	}
	if err := errors.Join(a.Load(), a.Persist(), a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	again := open(t, q)
	if got := again.Stats("other"); got.RPM != 1 {
		t.Errorf("once all have left: %+v", got)
	}
}

// A slot that another node frees is found within a second or so, and a slot of this node at
// once.
func TestRedisSlots(t *testing.T) {
	t.Parallel() // waits for a second
	url := redistest.New(t).URL()
	q := quotas{"m": {MaxConcurrent: 1}}
	a, b := onRedis(t, url, q), onRedis(t, url, q)
	reserved := mustTake(t, a, 1)
	served := make(chan *ratelimit.Reservation)
	go func() {
		for range 2 {
			res, err := b.Acquire(t.Context(), "m", 1)
			if err != nil {
				t.Error(err)
			}
			served <- res
		}
	}()
	testkit.Eventually(t, "b waits", func() bool { return b.Waiting("m") == 1 })
	reserved.Commit(1, 1)
	reserved = <-served
	reserved.Cancel()
	(<-served).Cancel()
}

// A quota that is set at one limiter holds for all, without a Load.
func TestRedisQuotas(t *testing.T) {
	server := redistest.New(t)
	url := server.URL()
	a, b := onRedis(t, url, quotas{"m": {MaxRPM: 1}}), onRedis(t, url, quotas{"m": {MaxRPM: 1}})
	mustTake(t, a, 1)
	served := make(chan error, 1)
	go func() {
		_, err := b.Acquire(t.Context(), "m", 1)
		served <- err
	}()
	testkit.Eventually(t, "b waits", func() bool { return b.Waiting("m") == 1 })
	larger := ratelimit.ModelQuota{MaxRPM: 2, DayResetsAt: "12:00 America/Los_Angeles"}
	mustSetQuota(t, a, "m", larger)
	has(t, b, "m", larger)
	if err := <-served; err != nil { // the waiting call follows the new quota, too
		t.Error(err)
	}
	third := onRedis(t, url, quotas{"m": {MaxRPM: 1}, "n": {MaxTPM: 5}})
	if got, want := third.Quotas(), (quotas{"m": larger, "n": {MaxTPM: 5}}); !maps.Equal(got, want) {
		t.Errorf("quotas %v; want %v", got, want)
	}
	if err := errors.Join(third.Persist(), third.SetQuota("n", ratelimit.ModelQuota{MaxTPM: 5})); err != nil {
		t.Fatal(err)
	}
	has(t, a, "n", ratelimit.ModelQuota{MaxTPM: 5})
	mine := ratelimit.ModelQuota{MaxRPM: 7}
	if err := errors.Join(a.SetQuota("gpt-4o", mine), b.AddProvider(ratelimit.ProviderOpenAI)); err != nil {
		t.Fatal(err)
	}
	has(t, a, "o1", b.Quotas()["o1"])
	for _, rl := range []*ratelimit.RateLimiter{a, b} {
		has(t, rl, "gpt-4o", mine)
	}

	// Of quotas that another program wrote, an invalid one is reported.
	if _, err := server.Do("HSET", "ratelimit:settings", "quota/m", "much", "quota/n", `{"max_tpm":6}`); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, a)
	if got := a.Quotas(); got["m"] != larger || got["n"].MaxTPM != 6 {
		t.Errorf("quotas %v", got)
	}
	if err := a.Persist(); err == nil || !strings.Contains(err.Error(), "quota/m") {
		t.Errorf("Persist says %v", err)
	}
}

// A limiter that was cut off from Redis finds the quotas that were set meanwhile.
func TestRedisQuotasAfterACut(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	a, b := onRedis(t, server.URL(), quotas{"m": {MaxRPM: 1}}), onRedisWith(t, ratelimit.Config{FilePath: proxy.URL(), Quotas: quotas{"m": {MaxRPM: 1}}})
	proxy.Cut()
	mustSetQuota(t, a, "m", ratelimit.ModelQuota{MaxRPM: 2})
	if err := b.SetQuota("m", ratelimit.ModelQuota{MaxRPM: 3}); !errors.Is(err, redisstore.ErrLost) {
		t.Errorf("cut off: %v; want %v", err, redisstore.ErrLost)
	}
	proxy.Heal()
	has(t, b, "m", ratelimit.ModelQuota{MaxRPM: 2})
}

// A call asks Redis once. Its end goes with the next call, or once more if none comes for a moment.
func TestRedisRoundTrips(t *testing.T) {
	server := redistest.New(t)
	rl := onRedis(t, server.URL(), quotas{"m": {MaxRPM: 50, MaxTPM: 1000}})
	mustTake(t, rl, 1) // begins the day
	calls := func() (n int) {
		answer, err := server.Do("INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(answer.(string), "cmdstat_fcall:calls=")
		fmt.Sscan(strings.Split(rest, ",")[0], &n)
		return n
	}
	var reserved *ratelimit.Reservation
	for _, step := range []struct {
		what string
		most int
		do   func()
	}{
		{"TryAcquire", 1, func() { reserved = mustTake(t, rl, 1) }},
		{"Commit and Acquire", 2, func() { reserved.Commit(1, 1); reserved, _ = rl.Acquire(t.Context(), "m", 1) }},
		{"Commit and a denial", 2, func() { reserved.Commit(5, 5); rl.TryAcquire("m", 1000) }},
		{"a denial", 1, func() { rl.TryAcquire("m", 1000) }},
	} {
		before := calls()
		step.do()
		if n := calls() - before; n < 1 || n > step.most {
			t.Errorf("%s: %d calls; want at most %d", step.what, n, step.most)
		}
	}
}

func TestRedisRefuses(t *testing.T) {
	server := redistest.New(t, "--requirepass", "right")
	for name, c := range map[string]struct {
		cfg  ratelimit.Config
		says string
	}{
		"no URL":           {ratelimit.Config{FilePath: "limits.db"}, "redis://"},
		"another scheme":   {ratelimit.Config{FilePath: "http://user:sesame@" + server.Addr}, "redis"},
		"nonsense":         {ratelimit.Config{FilePath: "redis://user:sesame@host:port:1/%zz"}, "redis"},
		"wrong password":   {ratelimit.Config{FilePath: server.LoginURL("default", "sesame")}, server.Addr},
		"nobody there":     {ratelimit.Config{FilePath: "redis://user:sesame@127.0.0.1:1"}, "127.0.0.1:1"},
		"another way":      {ratelimit.Config{FilePath: server.LoginURL("default", "right"), OnStoreLoss: "hope"}, "hope"},
		"a bad quota":      {ratelimit.Config{FilePath: server.LoginURL("default", "right"), Quotas: quotas{"m": {MaxRPM: -1}}}, "max_rpm"},
		"unknown provider": {ratelimit.Config{FilePath: server.LoginURL("default", "right"), Providers: []ratelimit.Provider{"x"}}, "provider"},
	} {
		c.cfg.Backend = ratelimit.BackendRedis
		rl, err := ratelimit.NewWithConfig(c.cfg)
		if rl != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want an error that says %q", name, rl, err, c.says)
		}
		if err != nil && (strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), "right")) {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
	for _, cfg := range []ratelimit.Config{
		{OnStoreLoss: "deny"},
		{OnStoreLoss: "deny", Backend: ratelimit.BackendYAML},
		{OnStoreLoss: "deny", Backend: ratelimit.BackendSQLite, FilePath: t.TempDir() + "/limits.db"},
	} {
		if rl, err := ratelimit.NewWithConfig(cfg); rl != nil || err == nil || !strings.Contains(err.Error(), "OnStoreLoss") {
			t.Errorf("%+v: %v, %v", cfg, rl, err)
		}
	}
	for _, way := range []string{"", "deny", "allow", "share"} {
		closeFile(t, onRedisWith(t, ratelimit.Config{FilePath: server.LoginURL("default", "right"), OnStoreLoss: way}))
	}
}

// Without Redis calls are denied. When Redis is back, the limiter goes on by itself, and makes
// the settlements that were not possible meanwhile.
func TestRedisLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose, heal func(*redistest.Server, *redistest.Proxy)
	}{
		"paused": {
			func(s *redistest.Server, _ *redistest.Proxy) { s.Pause() },
			func(s *redistest.Server, _ *redistest.Proxy) { s.Resume() },
		},
		"cut off": {
			func(_ *redistest.Server, p *redistest.Proxy) { p.Cut() },
			func(_ *redistest.Server, p *redistest.Proxy) { p.Heal() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			proxy := redistest.NewProxy(t, server.Addr)
			rl := onRedisWith(t, ratelimit.Config{FilePath: proxy.URL(), Quotas: quotas{"m": {MaxTPM: 100, MaxRPM: 1000}}})
			var reserved *ratelimit.Reservation
			testkit.Eventually(t, "it is there", func() bool {
				reserved, _ = rl.TryAcquire("m", 80)
				return reserved != nil
			})
			c.lose(server, proxy)
			res, d := rl.TryAcquire("m", 1)
			if res != nil || d.Code != ratelimit.DecisionStoreLost || d.Allowed || d.RetryAfter <= 0 {
				t.Errorf("%+v", d)
			}
			reserved.Commit(5, 5)
			if _, err := rl.Acquire(t.Context(), "m", 1); !errors.Is(err, redisstore.ErrLost) {
				t.Errorf("%v; want %v", err, redisstore.ErrLost)
			}
			if d := rl.Decide("m", 1); d.Code != ratelimit.DecisionStoreLost {
				t.Errorf("%+v", d)
			}
			if s := rl.Stats("m"); s.MaxTPM != 100 {
				t.Errorf("%+v; want at least the quota", s)
			}
			c.heal(server, proxy)
			testkit.Eventually(t, "it heals, and is settled", func() bool {
				res, d := rl.TryAcquire("m", 90)
				return res != nil && d.Stats.TPM == 100
			})
			if err := rl.Persist(); !errors.Is(err, redisstore.ErrLost) {
				t.Errorf("Persist says %v; want %v", err, redisstore.ErrLost)
			}
		})
	}
}

// With "allow", calls pass without Redis, even with settlements that are still to be made, and
// are counted when Redis is back.
func TestRedisLostAndAllowed(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	rl := onRedisWith(t, ratelimit.Config{FilePath: proxy.URL(), OnStoreLoss: "allow", Quotas: quotas{"m": {MaxRPM: 3}}})
	reserved := mustTake(t, rl, 10)
	proxy.Cut()
	mustTake(t, rl, 10).Commit(2, 2) // finds out that Redis is lost
	reserved.Commit(1, 1)
	for range 4 {
		mustTake(t, rl, 10).Commit(2, 2)
	}
	proxy.Heal()
	testkit.Eventually(t, "what has passed is counted", func() bool { return rl.Stats("m").RPM == 6 })
	if _, d := rl.TryAcquire("m", 1); d.Code != overRPM || d.Stats.RPM != 6 || d.Stats.TPM != 22 {
		t.Errorf("%+v", d)
	}
}
