package admission_test

import (
	"context"
	"testing"
	"testing/synctest"

	"dappco.re/go/core/go-ratelimit/internal/admission"
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
	for name, scopes := range map[string]func(b *bench) admission.Scopes{
		"shared": func(b *bench) admission.Scopes {
			return admission.Scopes{b.shared("m", nil, perMinute(admission.Requests, 1))}
		},
		"own": func(b *bench) admission.Scopes { return admission.Scopes{b.own("p", perMinute(admission.Requests, 1))} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &counting{Store: store.NewMemory()}
				b := newBench(t, s)
				all := scopes(b)
				for range 2 {
					var r admission.Result
					b.must(b.Acquire(t.Context(), callOf("p", 0), all, &r))
				}
				if s.takes != 3 {
					t.Errorf("%d takes for two calls, the second of which waits; want 3", s.takes)
				}
			})
		})
	}
}
