package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Of the calls of a flow that wait, the one with the highest priority passes first, and of those with
// the same the one that came first; whichever of their scopes denies them.
func TestTurnsInAFlow(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for _, full := range []string{"shared", "innermost", "outer"} {
			limits := map[string][]engine.Limit{full: {atATime(1)}}
			scopes := []*engine.Scope{
				b.shared(full+" shared", nil, limits["shared"]...), b.own(full+" innermost", limits["innermost"]...), b.own(full+" outer", limits["outer"]...),
			}
			held := b.take(callOf("", 0), scopes...)
			var all []*waiting
			for i, priority := range []int{0, 1, 0, 2, 1} {
				c := callOf(fmt.Sprint(i), 0)
				c.Priority = priority
				all = append(all, b.acquire(c, scopes...))
			}
			var order []int
			for range all {
				held.Cancel()
				for i, w := range all {
					if w.passed() && !slices.Contains(order, i) {
						order = append(order, i)
						held = w.result.Reservation
					}
				}
			}
			if want := []int{3, 1, 4, 0, 2}; !slices.Equal(order, want) {
				t.Errorf("%s: they pass in the order %d; want %d", full, order, want)
			}
			held.Cancel()
		}
	})
}

// A call that comes later does not overtake one that waits, although there is enough for it:
// neither if it asks once nor if it waits, and whichever of their scopes denies the first.
func TestSmallCallsDoNotOvertake(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		for _, full := range []string{"shared", "innermost", "outer"} {
			limits := map[string][]engine.Limit{full: {perMinute(engine.AllTokens, 10)}}
			scopes := []*engine.Scope{
				b.shared(full+" shared", nil, limits["shared"]...), b.own(full+" innermost", limits["innermost"]...), b.own(full+" outer", limits["outer"]...),
			}
			b.take(callOf("", 6), scopes...)
			large := b.acquire(callOf("large", 5), scopes...)
			b.wantDenied(callOf("try", 1), "tokens", time.Minute, scopes...)
			small := b.acquire(callOf("small", 1), scopes...)
			never := b.acquire(callOf("never", 11), scopes...)
			if large.ended() || small.ended() {
				t.Errorf("%s: the large call has ended: %t; the small one: %t", full, large.ended(), small.ended())
			}
			if !never.ended() || !errors.Is(never.err, limit.ErrNever) {
				t.Errorf("%s: a call that can never pass: %v", full, never.err)
			}
			time.Sleep(time.Minute)
			if !large.passed() || !small.passed() {
				t.Errorf("%s: the large call has passed: %t; the small one: %t", full, large.passed(), small.passed())
			}
			time.Sleep(time.Minute)
		}
	})
}

// Calls of a flow with a higher rank come first, also before calls that wait; those of a lower rank
// do not pass.
func TestRanks(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		m := b.shared("m", nil, perMinute(engine.Requests, 2))
		ranked := func(rank int) *engine.Scope {
			p := b.NewOwn(fmt.Sprint("rank", rank, "/"), fmt.Sprint("rank", rank))
			b.must(b.SetRules(p, &engine.Rules{Rank: rank}))
			return p
		}
		low, middle, high := ranked(-1), ranked(0), ranked(1)
		b.take(callOf("", 0), m)
		two := &engine.Call{Project: "middle", Requests: 2}
		waits := b.acquire(two, m, middle)
		b.wantDenied(callOf("low", 0), "requests", time.Minute, m, low)
		b.take(callOf("high", 0), m, high)
		later := b.acquire(callOf("low", 0), m, low)
		first := b.acquire(callOf("high", 0), m, high)
		time.Sleep(time.Minute)
		if !first.passed() || waits.ended() || later.ended() {
			t.Errorf("high, middle and low have ended: %t, %t, %t; want the first alone", first.passed(), waits.ended(), later.ended())
		}
		waits.leave()
		later.leave()
	})
}

// A reset lets calls pass that wait, and so do higher limits.
func TestWaitEndsByAChange(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		m, p, outer := b.shared("m", nil), b.own("p"), b.own("outer")
		for _, s := range []*engine.Scope{m, p, outer} {
			for name, change := range map[string]func(){
				"a reset": func() { b.must(b.Reset(t.Context(), s)) },
				"a limit": func() { b.set(s, perMinute(engine.Requests, 2)) },
			} {
				b.set(s, perMinute(engine.Requests, 1))
				b.take(callOf("", 0), m, p, outer)
				w := b.acquire(callOf("", 0), m, p, outer)
				if w.ended() {
					t.Errorf("%s of %s: it does not wait: %v", name, s.Key, w.err)
				}
				change()
				if !w.passed() {
					t.Errorf("%s of %s: it waits", name, s.Key)
				}
				w.leave()
				time.Sleep(time.Minute)
			}
			b.set(s)
		}
	})
}
