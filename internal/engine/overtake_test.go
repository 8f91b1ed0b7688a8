package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// perDay returns a limit on a unit in a day that begins with its first request.
func perDay(u engine.Unit, n int64) engine.Limit {
	return engine.Limit{Name: u.String() + "-day", Unit: u, Limit: limit.PerDay(n).Anchored()}
}

// While a large call waits for a shared scope, calls of other flows pass that do not delay it: calls
// that wait, and calls that do not.
func TestSmallCallsOvertakeALargeOne(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		m := b.shared("m", nil, perMinute(engine.Tokens, 100))
		p, q, r := b.own("p"), b.own("q"), b.own("r", perMinute(engine.Requests, 1))
		b.take(callOf("p", 70), m, p)
		time.Sleep(20 * time.Second)
		large := b.acquire(callOf("p", 80), m, p)
		b.wantDenied(callOf("q", 21), "tokens", 40*time.Second, m, q)
		b.wantDenied(callOf("p", 1), "tokens_share", 40*time.Second, m, p) // q, which was turned away, has a share now
		b.take(callOf("q", 10), m, q)
		waits := b.acquire(callOf("q", 7), m, q)
		if !waits.passed() || waits.result.Waited != 0 {
			t.Errorf("a call that fits beside the large one: %v, %v", waits.err, waits.result.Waited)
		}
		short := callOf("r", 2)
		short.MaxWait = time.Second
		if w := b.acquire(short, m, r); !w.passed() {
			t.Errorf("a call that may not wait for long: %v", w.err)
		}
		if w := b.acquire(short, m, r); !w.ended() || !errors.Is(w.err, context.DeadlineExceeded) {
			t.Errorf("a call that its own limits deny: %v", w.err)
		}
		b.wantDenied(callOf("q", 2), "tokens", 40*time.Second, m, q)
		time.Sleep(61 * time.Second) // q, which was turned away and has had less, may try again for a minute
		if !large.passed() || large.result.Waited < time.Minute {
			t.Errorf("the large call: %v, %v", large.err, large.result.Waited)
		}
	})
}

// A call that waits for a day to begin lets all calls pass that fit into what is left of this one.
func TestOvertakesInAWindowThatEndsFirst(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		b.Undivided()
		m := b.shared("m", nil, perMinute(engine.Tokens, 100), perDay(engine.Tokens, 1000))
		p, q := b.own("p"), b.own("q")
		for range 10 {
			b.take(callOf("p", 95), m, p)
			time.Sleep(time.Minute)
		}
		large := b.acquire(callOf("p", 100), m, p)
		for range 5 {
			if w := b.acquire(callOf("q", 10), m, q); !w.passed() || w.result.Waited != 0 {
				t.Errorf("a small call: %v, %v", w.err, w.result.Waited)
			}
		}
		b.wantDenied(callOf("q", 1), "tokens-day", 23*time.Hour+50*time.Minute, m, q)
		time.Sleep(23*time.Hour + 50*time.Minute)
		if !large.passed() {
			t.Errorf("the large call waits in the next day: %v", large.err)
		}
	})
}

// No call overtakes another while the gate of their scope is closed, or lowers its limits.
func TestNoneOvertakesThroughAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, store.NewMemory())
		g := new(gate)
		m := b.shared("m", g, perMinute(engine.Tokens, 100))
		p, q := b.own("p"), b.own("q")
		b.take(callOf("p", 70), m, p)
		large := b.acquire(callOf("p", 80), m, p)
		g.lowers = true
		b.wantDenied(callOf("q", 5), "tokens", time.Minute, m, q)
		g.lowers = false
		b.take(callOf("q", 5), m, q)
		large.leave()
	})
}

// Whatever comes, a large call that waits passes when it would if nothing else came, and all calls
// pass in the end.
func TestOvertakingDelaysNoLargeCall(t *testing.T) {
	early := 0
	for name, open := range stores {
		seeds := uint64(200)
		if name != "memory" {
			seeds = 10
		}
		for seed := range seeds {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 3))
				b := newBench(t, open(t))
				b.Undivided()
				limits := []engine.Limit{perMinute(engine.Tokens, 1000), perMinute(engine.Requests, 60), perDay(engine.Tokens, 4000)}
				if seed%3 == 0 {
					limits = append(limits, engine.Limit{Name: "pace", Unit: engine.Tokens, Limit: limit.PerMinute(1000).WithBurst(700), Pace: true})
				}
				m := b.shared("m", nil, limits...)
				for range 10 + random.IntN(20) {
					b.try(callOf("before", 1+random.IntN(250)), m, b.own("before"))
					time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
				}
				c, p := callOf("large", 500+random.IntN(501)), b.own("large")
				r := new(engine.Result)
				b.must(b.Look(t.Context(), c, engine.Scopes{m, p}, r))
				due := r.RetryAfter()
				large := b.acquire(c, m, p)
				start := time.Now()
				var others []*waiting
				for i := 0; i < 40 && time.Since(start) < due; i++ {
					call, own := callOf("small", 1+random.IntN([]int{10, 100}[random.IntN(2)])), b.own(fmt.Sprint("small", random.IntN(5)))
					if random.IntN(2) == 0 {
						b.try(call, m, own)
					} else {
						w := b.acquire(call, m, own)
						if others = append(others, w); w.passed() && !large.ended() {
							early++
						}
					}
					time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
				}
				time.Sleep(49 * time.Hour)
				if !large.passed() || large.result.Waited != due {
					t.Errorf("%s, seed %d: the large call: %v, after %v; want it after %v", name, seed, large.err, large.result.Waited, due)
				}
				for i, w := range others {
					if !w.passed() {
						t.Errorf("%s, seed %d: call %d waits: %v", name, seed, i, w.err)
					}
				}
			})
		}
	}
	t.Logf("%d calls that wait have overtaken", early)
	if early < 100 {
		t.Errorf("%d calls that wait have overtaken; want more, or this shows nothing", early)
	}
}

// No call overtakes one that waits for the pace of a scope, whether it is larger than the burst or not:
// what it takes would be ahead of the pace when the large call passes.
func TestNoneOvertakesAtAPace(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		pace := engine.Limit{Name: "pace", Unit: engine.Tokens, Limit: limit.PerMinute(6000).WithBurst(600), Pace: true}
		m := b.shared("m", nil, perMinute(engine.Tokens, 6000), pace)
		p, q := b.own("p"), b.own("q")
		for _, c := range []struct {
			n   int
			due time.Duration
		}{{1000, 5 * time.Second}, {300, 2 * time.Second}} {
			b.take(callOf("p", 500), m, p)
			large := b.acquire(callOf("p", c.n), m, p)
			b.wantDenied(callOf("q", 50), "pace", c.due, m, q)
			time.Sleep(c.due)
			if !large.passed() || large.result.Waited != c.due {
				t.Errorf("a call of %d has waited for %v, %v; want %v", c.n, large.result.Waited, large.err, c.due)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}
