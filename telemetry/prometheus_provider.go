package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// promProvider has the metrics of what providers report about their limits.
type promProvider struct{ throttled, lowered, learned *prometheus.CounterVec }

func newPromProvider() *promProvider {
	return &promProvider{
		throttled: counters("provider_throttled_total", "Calls that were made, and that a provider has throttled, by its cause.", "model", "cause"),
		lowered:   counters("quota_lowered_total", "How often a provider had less left of a limit than the quota of the model.", "model", "limit"),
		learned:   counters("quota_learned_total", "How often the maximum of a quota was replaced by what a provider grants.", "model", "limit"),
	}
}

func (p *promProvider) observe(s *promSeries, e *ratelimit.Event) {
	switch e.Kind {
	case ratelimit.EventPaused:
		cause := causeOf(e.Cause)
		s.throttled[cause].get(func() prometheus.Counter { return p.throttled.WithLabelValues(s.model, causeNames[cause]) }).Inc()
	case ratelimit.EventLowered:
		limit := limitOf(e.Limit)
		s.lowered[limit].get(func() prometheus.Counter { return p.lowered.WithLabelValues(s.model, limitNames[limit]) }).Inc()
	case ratelimit.EventLearned:
		limit := limitOf(e.Limit)
		s.learned[limit].get(func() prometheus.Counter { return p.learned.WithLabelValues(s.model, limitNames[limit]) }).Inc()
	}
}
