package rate

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// start is the origin of the times in tables. It has no monotonic reading, like times from elsewhere.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

const ms = time.Millisecond

// A step is an AllowN and, before it, the expected result of TokensAt.
type step struct {
	at     time.Duration
	tokens float64
	n      int
	ok     bool
}

func (s step) check(t *testing.T, i int, lim *Limiter, now time.Time) {
	t.Helper()
	if got := lim.TokensAt(now); got != s.tokens {
		t.Errorf("step %d: TokensAt(%v) = %v, want %v", i, s.at, got, s.tokens)
	}
	if got := lim.AllowN(now, s.n); got != s.ok {
		t.Errorf("step %d: AllowN(%v, %d) = %v, want %v", i, s.at, s.n, got, s.ok)
	}
}

func TestAllowN(t *testing.T) {
	nan, infinite := Limit(math.NaN()), Limit(math.Inf(1))
	cases := []struct {
		name  string
		limit Limit
		burst int
		steps []step
	}{
		{"a burst of one", 10, 1, []step{
			{0, 1, 1, true}, {0, 0, 1, false}, {99 * ms, 0.99, 1, false}, {100 * ms, 1, 1, true}, {100 * ms, 0, 1, false},
			{500 * ms, 1, 2, false}, {500 * ms, 1, 1, true},
		}},
		{"a burst of three", 10, 3, []step{
			{0, 3, 2, true}, {0, 1, 2, false}, {0, 1, 1, true}, {50 * ms, 0.5, 1, false}, {200 * ms, 2, 4, false},
			{200 * ms, 2, 2, true}, {time.Hour, 3, 3, true}, {time.Hour, 0, 0, true},
		}},
		{"a denial changes nothing", 1, 2, []step{
			{0, 2, 2, true}, {500 * ms, 0.5, 1, false}, {999 * ms, 0.999, 1, false}, {time.Second, 1, 1, true},
		}},
		{"time goes back", 10, 3, []step{
			{100 * ms, 3, 1, true}, {0, 2, 1, true}, {0, 1, 1, true}, {0, 0, 1, false},
			{100 * ms, 1, 1, true}, {100 * ms, 0, 1, false}, {200 * ms, 1, 1, true},
		}},
		{"time goes back on a denial, which changes nothing", 10, 1, []step{
			{time.Second, 1, 1, true}, {0, 0, 1, false}, {1050 * ms, 0.5, 1, false}, {1100 * ms, 1, 1, true},
		}},
		{"time goes back by a hundred years, and on again", 10, 2, []step{
			{0, 2, 2, true}, {-100 * 365 * 24 * time.Hour, 0, 1, false}, {100 * ms, 1, 1, true},
			{-100 * 365 * 24 * time.Hour, 0, 0, true}, {0, 2, 2, true},
		}},
		{"goroutines overtake each other", 1000, 10, []step{
			{ms, 10, 10, true}, {ms / 2, 0, 1, false}, {ms, 0, 1, false}, {2 * ms, 1, 1, true}, {ms + 1, 0, 1, false},
			{2 * ms, 0, 1, false},
		}},
		{"no refill", 0, 2, []step{{0, 2, 1, true}, {0, 1, 1, true}, {100 * 365 * 24 * time.Hour, 0, 1, false}}},
		{"a negative limit", -5, 1, []step{{0, 1, 1, true}, {time.Hour, 0, 1, false}}},
		{"not a number", nan, 1, []step{{0, 1, 1, true}, {time.Hour, 0, 1, false}}},
		{"a tiny limit", 1e-10, 1, []step{{0, 1, 1, true}, {0, 0, 1, false}}},
		{"the smallest limit", math.SmallestNonzeroFloat64, 1, []step{{0, 1, 1, true}, {time.Hour, 0, 1, false}}},
		{"no burst", 10, 0, []step{{0, 0, 1, false}, {time.Hour, 0, 1, false}, {time.Hour, 0, 0, true}}},
		{"no burst and a limit beyond one a nanosecond", 1e12, 0, []step{{0, 0, 1, false}, {time.Hour, 0, 1, false}}},
		{"a negative burst", 10, -1, []step{{0, 0, 0, false}, {0, 0, 1, false}}},
		{"infinity", Inf, 0, []step{{0, 0, 0, true}, {0, 0, 1, true}, {0, 0, 1 << 40, true}, {time.Hour, 0, math.MaxInt, true}}},
		{"the other infinity", infinite, 0, []step{{0, 0, math.MaxInt, true}}},
		{"more than any bucket holds in a nanosecond", 1e30, 5, []step{{0, 5, 5, true}, {0, 5, 5, true}, {0, 5, 6, false}}},
		{"a token every nanosecond", 1e9, 2, []step{{0, 2, 2, true}, {0, 0, 1, false}, {1, 1, 1, true}, {3, 2, 2, true}}},
		{"a thousand tokens a nanosecond", 1e12, 1000, []step{{0, 1000, 1000, true}, {1, 1000, 1000, true}}},
		{"the largest burst", 1e6, math.MaxInt, []step{
			{0, math.MaxInt, 1, true}, {0, math.MaxInt, math.MaxInt - 1, true}, {0, 0, 1, false}, {time.Second, 1e6, 1e6, true},
			{time.Second, 0, 1, false},
		}},
		{"the largest burst at the largest limit", 1e27, math.MaxInt, []step{
			{0, math.MaxInt, math.MaxInt, true}, {time.Hour, math.MaxInt, math.MaxInt, true},
		}},
		{"a negative n gives back", 1, 5, []step{{0, 5, 4, true}, {0, 1, -2, true}, {0, 3, -9, true}, {0, 5, 6, false}, {0, 5, 5, true}}},
		{"the most negative n", 1, 5, []step{{0, 5, 4, true}, {0, 1, math.MinInt, true}, {0, 5, 5, true}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, origin := range []time.Time{start, {}, time.Now(), epoch} {
				lim := NewLimiter(c.limit, c.burst)
				for i, s := range c.steps {
					s.check(t, i, lim, origin.Add(s.at))
				}
			}
		})
	}
}

func TestZeroLimiter(t *testing.T) {
	lim := new(Limiter)
	if lim.Limit() != 0 || lim.Burst() != 0 || lim.Tokens() != 0 {
		t.Errorf("limit %v, burst %v, tokens %v, want zeros", lim.Limit(), lim.Burst(), lim.Tokens())
	}
	for range 2 {
		if lim.Allow() || lim.AllowN(at(0), 1) || lim.Reserve().OK() {
			t.Error("an event was admitted")
		}
	}
	var later Limiter
	later.SetBurstAt(at(0), 2)
	later.SetLimitAt(at(0), 10)
	for i, s := range []step{{0, 0, 1, false}, {100 * ms, 1, 1, true}, {time.Second, 2, 2, true}} {
		s.check(t, i, &later, at(s.at))
	}
}

func TestEvery(t *testing.T) {
	for interval, want := range map[time.Duration]Limit{
		0: Inf, -1: Inf, ms: 1000, time.Second: 1, 4 * time.Second: 0.25,
	} {
		if got := Every(interval); got != want {
			t.Errorf("Every(%v) = %v, want %v", interval, got, want)
		}
	}
}

// A limit of Every(d) is rounded to a float64, but what it lets pass after d, d−1 and n×d is not.
func TestEveryIsExact(t *testing.T) {
	for d := time.Duration(1); d < time.Hour/2; d += d/7 + 1 {
		lim := NewLimiter(Every(d), 1)
		now := start
		for i := range 50 {
			if !lim.AllowN(now, 1) {
				t.Fatalf("Every(%v): event %d was denied after %v", d, i, now.Sub(start))
			}
			if d > 1 && lim.AllowN(now.Add(d-1), 1) {
				t.Fatalf("Every(%v): event %d was admitted a nanosecond early", d, i+1)
			}
			now = now.Add(d)
		}
		r := NewLimiter(Every(d), 1)
		r.AllowN(start, 1)
		for i := range time.Duration(50) {
			if got := r.ReserveN(start, 1).DelayFrom(start); got != (i+1)*d {
				t.Fatalf("Every(%v): reservation %d is due in %v", d, i, got)
			}
		}
	}
}

func TestSetLimitAndBurst(t *testing.T) {
	lim := NewLimiter(10, 2)
	for i, s := range []struct {
		set func()
		step
	}{
		{func() {}, step{0, 2, 2, true}},
		{func() { lim.SetLimitAt(at(50*ms), 100) }, step{60 * ms, 1.5, 1, true}},
		{func() { lim.SetBurstAt(at(60*ms), 10) }, step{60 * ms, 0.5, 1, false}},
		{func() {}, step{time.Second, 10, 5, true}},
		{func() { lim.SetBurstAt(at(time.Second), 3) }, step{time.Second, 3, 4, false}},
		{func() { lim.SetBurstAt(at(time.Second), 1<<40) }, step{time.Second, 3, 4, false}},
		{func() { lim.SetLimitAt(at(time.Second), 1e9) }, step{time.Hour, 1 << 40, 4, true}},
		{func() { lim.SetLimitAt(at(time.Hour), 10) }, step{time.Hour, 1<<40 - 4, 4, true}},
		{func() { lim.SetBurstAt(at(time.Second), 1) }, step{time.Second, 1, 1, true}},
		{func() { lim.SetLimitAt(at(time.Second), Inf) }, step{time.Second, 0, 7, true}},
		{func() { lim.SetLimitAt(at(time.Second), 0) }, step{time.Hour, 0, 1, false}},
		{func() { lim.SetLimitAt(at(0), 10) }, step{100 * ms, 1, 1, true}},
	} {
		s.set()
		s.check(t, i, lim, at(s.at))
	}
	if lim.Limit() != 10 || lim.Burst() != 1 {
		t.Errorf("limit %v, burst %v, want 10 and 1", lim.Limit(), lim.Burst())
	}
	lim.SetLimit(7)
	lim.SetBurst(8)
	if lim.Limit() != 7 || lim.Burst() != 8 {
		t.Errorf("limit %v, burst %v, want 7 and 8", lim.Limit(), lim.Burst())
	}
}

// The supply outgrows the word of a bucket again and again. Nothing is lost or gained when a new bucket begins.
func TestBeyondTheHorizon(t *testing.T) {
	for _, limit := range []Limit{1e3, 1e6, 1e9, 1e12, 1e15} {
		lim := NewLimiter(limit, 10)
		horizon := time.Duration(lim.bucket.Load().horizon)
		now := start
		lim.AllowN(now, 10)
		for range 5 {
			if tokens := lim.TokensAt(now); tokens != 0 {
				t.Fatalf("limit %v: %v tokens, want none", limit, tokens)
			}
			lim.ReserveN(now, 10)
			now = now.Add(horizon + 1)
			if !lim.AllowN(now, 10) {
				t.Fatalf("limit %v: no tokens after %v", limit, horizon+1)
			}
		}
	}
}

func TestConcurrentAllowAdmitsTheBurst(t *testing.T) {
	const burst, goroutines, calls = 1000, 8, 1000
	lim := NewLimiter(1e-10, burst)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range calls {
				if g%2 == 0 && lim.Allow() || g%2 == 1 && lim.AllowN(time.Now(), 1) {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != burst {
		t.Errorf("%d were admitted, want %d", admitted.Load(), burst)
	}
}

// Every change of parameters makes a new bucket. No token is lost or doubled.
func TestConcurrentSetKeepsTheTokens(t *testing.T) {
	const burst, goroutines = 200_000, 4
	lim := NewLimiter(0, burst)
	var admitted, running atomic.Int64
	running.Store(goroutines)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			defer running.Add(-1)
			for lim.Allow() {
				admitted.Add(1)
			}
		})
	}
	for i := 0; running.Load() > 0; i++ {
		lim.SetLimit(Limit(-i))
		lim.SetBurst(burst + i%2)
		lim.Tokens()
	}
	wg.Wait()
	if admitted.Load() != burst {
		t.Errorf("%d were admitted, want %d", admitted.Load(), burst)
	}
}

// Goroutines read the clock and are overtaken before they ask. That must not give any tokens.
func TestConcurrentAllowKeepsTheLimit(t *testing.T) {
	const limit, burst, goroutines, calls = 1e6, 10, 16, 20_000
	lim := NewLimiter(limit, burst)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for range calls {
				if g%4 > 0 && lim.Allow() {
					admitted.Add(1)
				}
				if g%4 == 0 && lim.Reserve().Delay() == 0 {
					lim.Tokens()
				}
			}
		})
	}
	wg.Wait()
	most := burst + limit*time.Since(began).Seconds() + 1
	if got := float64(admitted.Load()); got > most {
		t.Errorf("%v were admitted, at most %v may be", got, most)
	}
}

func TestNoAllocations(t *testing.T) {
	lim, now := NewLimiter(1e9, 1<<30), time.Now()
	for name, f := range map[string]func(){
		"Allow":  func() { lim.Allow() },
		"AllowN": func() { lim.AllowN(now, 2); now = now.Add(ms) },
		"Wait":   func() { _ = lim.Wait(t.Context()) },
		"Tokens": func() { lim.Tokens() },
		"denial": func() { lim.AllowN(now, 1<<31) },
	} {
		if n := testing.AllocsPerRun(1000, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestTimesFarAwayFreezeNothing(t *testing.T) {
	for _, far := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<40, 0)} {
		lim := NewLimiter(1, 1)
		lim.AllowN(far, 1)
		lim.AllowN(time.Now(), 1)
		lim.SetBurst(2)
		if tokens := lim.Tokens(); tokens >= 1 != lim.Allow() {
			t.Errorf("after an event at %v there are %v tokens, and Allow says otherwise", far, tokens)
		}
	}
}
