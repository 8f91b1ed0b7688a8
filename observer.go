package ratelimit

import (
	"context"
	"iter"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// Observer receives an event for everything that happens to calls, and to the store that
// counts them. Package telemetry has an observer for Prometheus, and telemetry/opentelemetry one for OpenTelemetry.
type Observer = event.Observer

// Observers is several observers as one.
type Observers = event.Observers

// Event is something that happened.
type Event = event.Event

// EventKind is what happened.
type EventKind = event.Kind

// The kinds of events. Package event says what each of them means.
const (
	EventAdmitted  = event.Admitted
	EventDenied    = event.Denied
	EventRefused   = event.Refused
	EventLeft      = event.Left
	EventLost      = event.Lost
	EventSettled   = event.Settled
	EventCancelled = event.Cancelled
	EventPaused    = event.Paused
	EventResumed   = event.Resumed
	EventLowered   = event.Lowered
	EventLearned   = event.Learned
	EventStore     = event.Store
	EventThreshold = event.Threshold
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
