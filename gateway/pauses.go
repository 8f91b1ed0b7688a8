package gateway

import (
	"context"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// pauses is an observer that logs the beginning and the end of each pause of a model. Calls that
// were in progress when the pause began, and are throttled later, are not logged.
type pauses struct{ g *Gateway }

// Observe implements [ratelimit.Observer].
func (p pauses) Observe(_ context.Context, e ratelimit.Event) {
	switch {
	case e.Kind == ratelimit.EventPaused && e.Began:
		p.g.log.Warn("a model is paused: its provider has refused a call", "model", e.Model, "provider", p.g.setup.Load().providerOf(e.Model),
			"cause", e.Cause, "for", e.RetryAfter.String(), "until", time.Now().Add(e.RetryAfter))
	case e.Kind == ratelimit.EventResumed:
		p.g.log.Info("a model is not paused any more", "model", e.Model, "provider", p.g.setup.Load().providerOf(e.Model),
			"cause", e.Cause, "after", e.Waited.Round(time.Millisecond).String())
	}
}
