package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// changing is a store that lets something happen while it is asked what it would say.
type changing struct {
	store.Store
	meanwhile func()
}

func (s *changing) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	s.meanwhile()
	return s.Store.Peek(ctx, charges)
}

// A model's limits may be removed while a call borrows.
func TestRulesChangeWhileACallBorrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{Store: store.NewMemory()}
		b := newBench(t, s)
		model := b.NewShared("m/", "m", nil)
		limited := func() *engine.Rules {
			return &engine.Rules{Limits: []engine.Limit{{Name: "rpm", Unit: engine.Requests, Limit: limit.New(10, time.Minute).Using(limit.SlidingLog)}}}
		}
		b.must(b.SetRules(model, limited()))
		changed := false
		s.meanwhile = func() { changed = true; b.must(b.SetRules(model, &engine.Rules{})) }
		call := func(name string) {
			var r engine.Result
			c := &engine.Call{}
			p := b.NewOwn("p/"+name+"/", name)
			b.must(b.SetRules(p, &engine.Rules{}))
			b.must(b.Try(t.Context(), c, engine.Scopes{p, model}, &r))
			if r.Reservation == nil {
				t.Fatalf("a call of %s is denied", name)
			}
			r.Reservation.Commit(llm.Tokens{})
		}
		call("b")
		time.Sleep(40 * time.Second)
		for range 7 {
			call("a")
		}
		if !changed {
			t.Error("no call has borrowed")
		}
	})
}

// Calls that wait when a limit above them appears, or is one of another kind, wait for their shares of that.
func TestWaitingCallsFollowLimitsThatAreDivided(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		acme := b.own("acme", perMinute(engine.AllTokens, 10))
		a, c := b.NewBelow(acme, "a/", "acme/a"), b.NewBelow(acme, "c/", "acme/c")
		b.take(callOf("acme/a", 10), a.Append(nil)...)
		waits := []*waiting{b.acquire(callOf("acme/a", 10), a.Append(nil)...), b.acquire(callOf("acme/c", 10), c.Append(nil)...)}
		wantWaiting := func(when string, want int) {
			t.Helper()
			n := 0
			for _, s := range b.Shares(acme) {
				n += s.Waiting
			}
			if n != want {
				t.Errorf("%s: %d calls wait for their shares of acme; want %d", when, n, want)
			}
		}
		wantWaiting("at first", 2)
		hour := engine.Limit{Name: "hour", Unit: engine.AllTokens, Limit: limit.New(15, time.Hour).Using(limit.SlidingLog)}
		b.set(acme, perMinute(engine.AllTokens, 10), hour)
		synctest.Wait()
		wantWaiting("after another limit has appeared", 2)
		b.set(acme, perMinute(engine.AllTokens, 10))
		synctest.Wait()
		wantWaiting("after it has gone", 2)
		for _, w := range waits {
			w.leave()
			<-w.done
		}
		wantWaiting("in the end", 0)
	})
}
