package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// randomRules returns limits on every unit that deny some of a few calls at a time.
func randomRules() *engine.Rules {
	r := &engine.Rules{Limits: []engine.Limit{atATime(3 + rand.Int64N(3))}}
	for _, u := range []engine.Unit{engine.Requests, engine.AllTokens, engine.Input, engine.Output} {
		for _, l := range []limit.Limit{
			limit.New(1, time.Hour).Using(limit.SlidingLog), limit.New(1, 2*time.Hour).Using(limit.SlidingLog), limit.PerDay(1).Anchored(),
		} {
			if rand.IntN(2) == 0 {
				l = l.WithCount(40 + rand.Int64N(40))
				r.Limits = append(r.Limits, engine.Limit{Name: fmt.Sprint(u, " ", l.Period()), Unit: u, Limit: l})
			}
		}
	}
	return r
}

// randomCall returns a call of any part and any estimate.
func randomCall() *engine.Call {
	c := &engine.Call{Requests: 1 + rand.IntN(3), Estimated: rand.IntN(20), Priority: rand.IntN(2)}
	engine.SetPart(c, engine.Part(rand.IntN(3)))
	if rand.IntN(2) == 0 {
		c.Estimated, c.Tokens = 0, llm.Tokens{Input: 5 + rand.IntN(10), FreeInput: rand.IntN(5), Output: 5 + rand.IntN(10), FreeOutput: rand.IntN(5)}
	}
	return c
}

// While calls of one to six scopes are taken, wait and are cancelled at the same time, rules change.
// When all calls have ended, everything was given back.
func TestEverythingIsGivenBack(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Config{Store: open(t), Owned: true, Clock: clock.New(), OnError: func(err error) { t.Error(err) }})
			e.Undivided() // shares are kept for those who have just called
			b := &bench{Engine: e, t: t}
			defer b.Close()
			scopes := engine.Scopes{b.NewShared("m/", "m", nil)}
			for i := range 5 {
				scopes = append(scopes, b.NewOwn(fmt.Sprint("p", i, "/"), "p"))
			}
			for _, s := range scopes {
				b.must(b.SetRules(s, randomRules()))
			}
			ctx, cancel := testkit.WithHiddenTimeout(t.Context(), time.Minute)
			defer cancel()
			var passed, denied atomic.Int32
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 150 {
						var r engine.Result
						ask := e.Try
						if rand.IntN(3) == 0 {
							ask = e.Acquire
						}
						b.must(ask(ctx, randomCall(), scopes[:1+rand.IntN(6)], &r))
						if r.Reservation == nil {
							denied.Add(1)
							continue
						}
						passed.Add(1)
						time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
						r.Reservation.Cancel()
					}
				})
			}
			all.Go(func() {
				for range 100 { // and then none: only what is given back lets waiting calls pass
					b.must(b.SetRules(scopes[rand.IntN(6)], randomRules()))
					time.Sleep(50 * time.Microsecond)
				}
			})
			all.Wait()
			if passed.Load() < 100 || denied.Load() < 10 {
				t.Errorf("%d calls have passed, and %d were denied: that shows little", passed.Load(), denied.Load())
			}
			for _, s := range scopes {
				for i, used := range b.used(s) {
					if used != 0 {
						t.Errorf("limit %d of %s has %d in use", i, s.Key, used)
					}
				}
			}
		})
	}
}
