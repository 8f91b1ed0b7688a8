package admission_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
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
		limited := func() *admission.Rules {
			return &admission.Rules{Limits: []admission.Limit{{Name: "rpm", Unit: admission.Requests, Limit: limit.New(10, time.Minute).Using(limit.SlidingLog)}}}
		}
		b.must(b.SetRules(model, limited()))
		changed := false
		s.meanwhile = func() { changed = true; b.must(b.SetRules(model, &admission.Rules{})) }
		call := func(name string) {
			var r admission.Result
			c := &admission.Call{Ask: admission.Ask{Amounts: admission.Amounts{admission.Requests: 1}}}
			p := b.NewOwn("p/"+name+"/", name)
			b.must(b.SetRules(p, &admission.Rules{}))
			b.must(b.Try(t.Context(), c, admission.Scopes{p, model}, &r))
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
