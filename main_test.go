package ratelimit

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// A call waits on its own goroutine, and the goroutine of BackgroundPrune ends with stop, so
// none is left when the tests are over.
func TestMain(m *testing.M) {
	bus.Isolate() // most tests have fake time
	settings.PollInterval = 10 * time.Minute
	goleak.VerifyTestMain(m,
		// A closed client of a Redis cluster leaves these goroutines asleep for up to five
		// seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
	)
}

// memModel is the model of memLimiter.
const memModel = "m"

// memLimiter returns a limiter in memory, with a quota for one model.
func memLimiter(t testing.TB, quota ModelQuota) *RateLimiter {
	t.Helper()
	return memConfigured(t, Config{Quotas: map[string]ModelQuota{memModel: quota}})
}

// memConfigured returns a limiter in memory. Its file does not exist.
func memConfigured(t testing.TB, cfg Config) *RateLimiter {
	t.Helper()
	cfg.FilePath = filepath.Join(t.TempDir(), "ratelimits.yaml")
	return memMade(t, cfg)
}

// memMade returns a limiter in memory whose clock a test can replace.
func memMade(t testing.TB, cfg Config) *RateLimiter {
	t.Helper()
	c := &memTime{read: clock.New()}
	cfg.clock = func() int64 { return c.read() }
	rl, err := NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	memClocks.Store(rl, c)
	t.Cleanup(func() { memClocks.Delete(rl) })
	return rl
}

// memClocks are the clocks of the limiters that memMade has made.
var memClocks sync.Map

// memReads calls fn whenever the limiter reads its clock.
func memReads(rl *RateLimiter, fn func()) {
	c, _ := memClocks.Load(rl)
	before := c.(*memTime).read
	c.(*memTime).read = func() int64 {
		fn()
		return before()
	}
}

// memClock gives the limiter a clock that stands still until the test moves it.
func memClock(rl *RateLimiter) *memTime {
	found, _ := memClocks.Load(rl)
	c := found.(*memTime)
	c.now = c.read()
	c.read = func() int64 { return c.now }
	return c
}

type memTime struct {
	now  int64
	read func() int64
}

func (c *memTime) pass(d time.Duration) { c.now += int64(d) }

// memTake reserves tokens, which must be possible.
func memTake(t testing.TB, rl *RateLimiter, tokens int) *Reservation {
	t.Helper()
	res, d := rl.TryAcquire(memModel, tokens)
	if !d.Allowed || res == nil {
		t.Fatalf("TryAcquire(%d) = %v, %+v; want it allowed", tokens, res, d)
	}
	return res
}

// memDenied asks for tokens, which must be denied, and returns the decision.
func memDenied(t testing.TB, rl *RateLimiter, tokens int) Decision {
	t.Helper()
	before := rl.Stats(memModel)
	res, d := rl.TryAcquire(memModel, tokens)
	if d.Allowed || res != nil {
		t.Fatalf("TryAcquire(%d) = %v, %+v; want it denied", tokens, res, d)
	}
	if looked := rl.Decide(memModel, tokens); looked != d {
		t.Fatalf("Decide(%d) = %+v; TryAcquire said %+v", tokens, looked, d)
	}
	if after := rl.Stats(memModel); after != before || d.Stats != before {
		t.Fatalf("a denial with %+v turned %+v into %+v", d.Stats, before, after)
	}
	return d
}

// memPassesIn fails the test unless tokens are denied with a code until exactly a time from
// now. It moves the clock there.
func memPassesIn(t testing.TB, rl *RateLimiter, tokens int, code DecisionCode, in time.Duration) {
	t.Helper()
	if d := memDenied(t, rl, tokens); d.Code != code || d.RetryAfter != in {
		t.Fatalf("%d tokens: %s, retry after %v; want %s, %v", tokens, d.Code, d.RetryAfter, code, in)
	}
	time.Sleep(in - 1)
	if d := memDenied(t, rl, tokens); d.Code != code || d.RetryAfter != 1 {
		t.Fatalf("%d tokens, 1ns early: %s, retry after %v; want %s, 1ns", tokens, d.Code, d.RetryAfter, code)
	}
	time.Sleep(time.Nanosecond)
	if d := rl.Decide(memModel, tokens); !d.Allowed || d.Code != DecisionAllowed || d.RetryAfter != 0 {
		t.Fatalf("%d tokens, in time: %+v; want them allowed", tokens, d)
	}
}
