package engine_test

import (
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
)

// A call that is larger than its flow's maximum is told so at once, even while the quota is used up.
func TestLargerThanTheMaximumNeverPasses(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		log := limit.New(100, time.Minute).Using(limit.SlidingLog)
		model := b.shared("m", nil, engine.Limit{Name: "rpm", Unit: engine.Requests, Limit: log})
		capped, other := b.NewOwn("capped/", "capped"), b.own("other")
		b.must(b.SetRules(capped, &engine.Rules{MaxShare: .2}))
		for _, used := range []int{0, 95} {
			if used > 0 {
				var r engine.Result
				c := engine.Call{Requests: used}
				b.must(b.Try(t.Context(), &c, engine.Scopes{other, model}, &r))
				if !r.Allowed() {
					t.Fatal("the other flow is denied")
				}
			}
			c := engine.Call{Requests: 21}
			var r engine.Result
			b.must(b.Try(t.Context(), &c, engine.Scopes{capped, model}, &r))
			if r.Allowed() || r.RetryAfter() != limit.Never || r.Limit() != "rpm"+engine.ShareEnd {
				t.Errorf("with %d used: allowed %v, by %q, again in %v", used, r.Allowed(), r.Limit(), r.RetryAfter())
			}
			r = engine.Result{}
			if err := b.Acquire(t.Context(), &c, engine.Scopes{capped, model}, &r); !errors.Is(err, limit.ErrNever) {
				t.Errorf("with %d used: waiting ends with %v", used, err)
			}
		}
	})
}
