package ratelimit

import (
	"context"
	"iter"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// ModelUsage returns the usage of each model that has a quota, in no order, with the limits
// that the quota sets. Package telemetry makes metrics of it.
func (rl *RateLimiter) ModelUsage() iter.Seq[event.ModelUsage] {
	return func(yield func(event.ModelUsage) bool) {
		for name, m := range *rl.quotas.Load() {
			var v view
			said, err := m.look(context.Background())
			if err == nil {
				v.fill(m, said)
			}
			u := event.ModelUsage{Model: name, Paused: rl.Paused(name), Lost: err != nil || v.local}
			for d := range kind.Models {
				if most := *m.quota().Max(d); most > 0 {
					u.Limits = append(u.Limits, event.LimitUsage{Name: d.Name(), Used: int(v.used[d]), Max: most})
				}
			}
			if !yield(u) {
				return
			}
		}
	}
}
