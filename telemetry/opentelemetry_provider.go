package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// otelProvider has the metrics of what providers report about their limits.
type otelProvider struct{ throttled, lowered, learned metric.Int64Counter }

func newOtelProvider(in *instruments) *otelProvider {
	return &otelProvider{
		throttled: in.counter("ratelimit.provider.throttled", "{call}", "Calls that were made, and that a provider has throttled, by its cause."),
		lowered:   in.counter("ratelimit.quota.lowered", "{time}", "How often a provider had less left of a limit than the quota of the model."),
		learned:   in.counter("ratelimit.quota.learned", "{time}", "How often the maximum of a quota was replaced by what a provider grants."),
	}
}

func (p *otelProvider) observe(ctx context.Context, all *series[otelSeries], e *ratelimit.Event) {
	switch e.Kind {
	case ratelimit.EventPaused:
		if p.throttled.Enabled(ctx) {
			p.throttled.Add(ctx, 1, all.of(e).throttle(causeOf(e.Cause))...)
		}
	case ratelimit.EventLowered:
		if p.lowered.Enabled(ctx) {
			p.lowered.Add(ctx, 1, all.of(e).limited(limitOf(e.Limit))...)
		}
	case ratelimit.EventLearned:
		if p.learned.Enabled(ctx) {
			p.learned.Add(ctx, 1, all.of(e).limited(limitOf(e.Limit))...)
		}
	}
}

func (s *otelSeries) throttle(cause int) []metric.AddOption {
	return s.throttled[cause].get(func() []metric.AddOption {
		return addOf(keyModel.String(s.model), keyCause.String(causeNames[cause]))
	})
}

func (s *otelSeries) limited(limit int) []metric.AddOption {
	return s.limits[limit].get(func() []metric.AddOption {
		return addOf(keyModel.String(s.model), keyLimit.String(limitNames[limit]))
	})
}
