package gateway

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
)

// pauses is an observer that logs the beginning and the end of each pause of a model, and notifies
// those who follow. Calls that were in progress when the pause began, and are throttled later, are
// not logged.
type pauses struct{ g *Gateway }

// Observe implements [event.Observer].
func (p pauses) Observe(_ context.Context, e event.Event) {
	switch {
	case e.Kind == event.Paused && e.Began:
		provider := p.g.setup.Load().providerOf(e.Model)
		p.publish(EventPause, e, provider)
		p.g.log.Warn("a model is paused: its provider has refused a call", "model", e.Model, "provider", provider,
			"cause", e.Cause, "for", e.RetryAfter.String(), "until", time.Now().Add(e.RetryAfter))
	case e.Kind == event.Resumed:
		provider := p.g.setup.Load().providerOf(e.Model)
		p.publish(EventResume, e, provider)
		p.g.log.Info("a model is not paused any more", "model", e.Model, "provider", provider,
			"cause", e.Cause, "after", e.Waited.Round(time.Millisecond).String())
	}
}

// publish sends a pause to the followers. Only here the event is allocated: Observe is called for
// every call.
func (p pauses) publish(kind EventKind, e event.Event, provider string) {
	p.g.Publish(&Event{Kind: kind, Limiter: &e, Provider: provider})
}
