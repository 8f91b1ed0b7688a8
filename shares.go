package ratelimit

import (
	"iter"

	"dappco.re/go/core/go-ratelimit/event"
)

// Shares returns where each project stands that uses a model, in the order of their names. It
// has the limits of the model's quota that projects share: all but MaxConcurrent.
func (rl *RateLimiter) Shares(model string) []event.ProjectShare { return rl.find(model).shares() }

// AllShares returns the [RateLimiter.Shares] of each model that has a quota, in no order. Package
// telemetry makes metrics of it.
func (rl *RateLimiter) AllShares() iter.Seq2[string, []event.ProjectShare] {
	return func(yield func(string, []event.ProjectShare) bool) {
		for name, m := range *rl.quotas.Load() {
			if !yield(name, m.shares()) {
				return
			}
		}
	}
}

func (m *model) shares() []event.ProjectShare { return m.limiter.engine.Shares(m.scope) }
