package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// counting is a store that counts how often it is asked.
type counting struct {
	store.Store
	takes int
}

func (s *counting) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	s.takes++
	return s.Store.Take(ctx, charges)
}

func (s *counting) Local() bool { return true }

// A call that has to wait asks once when it comes, and once when it may pass.
func TestAsksOnceThenWaits(t *testing.T) {
	for name, scopes := range map[string]func(b *bench) engine.Scopes{
		"shared": func(b *bench) engine.Scopes {
			return engine.Scopes{b.shared("m", nil, perMinute(engine.Requests, 1))}
		},
		"own": func(b *bench) engine.Scopes { return engine.Scopes{b.own("p", perMinute(engine.Requests, 1))} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &counting{Store: store.NewMemory()}
				b := newBench(t, s)
				all := scopes(b)
				for range 2 {
					var r engine.Result
					b.must(b.Acquire(t.Context(), callOf("p", 0), all, &r))
				}
				if s.takes != 3 {
					t.Errorf("%d takes for two calls, the second of which waits; want 3", s.takes)
				}
			})
		})
	}
}

// When a limit is lowered, calls that wait and can never pass any more fail at once, also those
// that do not have the turn. The others go on waiting.
func TestCallsThatBecomeImpossible(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for _, lowered := range []string{"shared", "own"} {
			scopes := map[string]*engine.Scope{
				"shared": b.shared(lowered+" shared", nil, perMinute(engine.AllTokens, 10)),
				"own":    b.own(lowered+" own", perMinute(engine.AllTokens, 10)),
			}
			both := []*engine.Scope{scopes["shared"], scopes["own"]}
			b.take(callOf("", 10), both...)
			var all []*waiting
			for i, tokens := range []int{2, 9, 3, 8} {
				all = append(all, b.acquire(callOf(fmt.Sprint(lowered, i), tokens), both...))
			}
			b.set(scopes[lowered], perMinute(engine.AllTokens, 5))
			for i, w := range all {
				impossible := i%2 == 1
				if w.ended() != impossible {
					t.Fatalf("%s: call %d has ended: %t, %v", lowered, i, w.ended(), w.err)
				}
				if impossible && (!errors.Is(w.err, limit.ErrNever) || w.result.Limit() != "tokens" || w.result.RetryAfter() != limit.Never) {
					t.Errorf("%s: call %d: %v, by %q in %v", lowered, i, w.err, w.result.Limit(), w.result.RetryAfter())
				}
			}
			time.Sleep(time.Minute)
			for i, w := range all {
				if passes := i%2 == 0; w.passed() != passes {
					t.Errorf("%s: call %d: %v", lowered, i, w.err)
				}
			}
		}
	})
}

// A call that is larger than what a gate lowers a limit to for a while is not impossible: behind
// others, it waits.
func TestLoweredLimitIsNotNever(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		g := &gate{lowers: true, reconsider: time.Minute}
		m := b.shared("m", g, perMinute(engine.Tokens, 10))
		first, second := b.acquire(callOf("first", 10), m), b.acquire(callOf("second", 10), m)
		if first.ended() || second.ended() {
			t.Fatalf("%v, %v", first.err, second.err)
		}
		g.lowers = false
		b.Wake(m)
		if !first.passed() || second.ended() {
			t.Errorf("%v, %v", first.err, second.err)
		}
		first.result.Reservation.Cancel()
		if !second.passed() {
			t.Errorf("%v", second.err)
		}
	})
}
