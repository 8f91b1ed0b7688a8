package telemetry

import (
	"context"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// OpenTelemetryConfig is how an [OpenTelemetry] is made. The zero value is a good
// one.
type OpenTelemetryConfig struct {
	// TracerProvider makes the spans. The default is the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider

	// Models is how many models are told apart in metrics: those with a quota
	// that are used first. The default is 100. All others count as "other".
	// Spans name the model whatever it is.
	Models int

	// Projects is the ids of the projects that are told apart in metrics. By
	// default none is. All others count as "other". Spans name the project
	// whatever it is.
	Projects []string
}

// OpenTelemetry is an observer that makes a span of each decision, and counts. The
// package's documentation lists its spans and metrics. It lives as long as its
// meter provider, which asks it whether the store is lost.
type OpenTelemetry struct {
	tracer trace.Tracer         // nil: there is none
	unset  trace.TracerProvider // the global one before anybody has set it, if it is that; or nil
	meter  *otelMeter
}

var _ ratelimit.Observer = (*OpenTelemetry)(nil)

// scope is by whom spans and metrics are made.
const scope = "dappco.re/go/core/go-ratelimit/telemetry"

// NewOpenTelemetry returns an observer as cfg describes it.
func NewOpenTelemetry(cfg OpenTelemetryConfig) (*OpenTelemetry, error) {
	var unset trace.TracerProvider
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
		if nobodySet(cfg.TracerProvider) {
			unset = cfg.TracerProvider
		}
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	meter, err := newOtelMeter(cfg)
	if err != nil {
		return nil, err
	}
	o := &OpenTelemetry{tracer: cfg.TracerProvider.Tracer(scope), unset: unset, meter: meter}
	if _, off := o.tracer.(noop.Tracer); off {
		o.tracer = nil
	}
	return o, nil
}

// Observe makes a span of a decision, and counts whatever happens.
func (o *OpenTelemetry) Observe(ctx context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.EventStore:
		o.meter.store.observe(ctx, e.Store)
	case ratelimit.EventSettled:
		o.meter.settle(ctx, &e)
	case ratelimit.EventCancelled:
		o.meter.cancel(ctx, &e)
	case ratelimit.EventPaused, ratelimit.EventLowered, ratelimit.EventLearned:
		o.meter.provider.observe(ctx, o.meter.series, &e)
	default:
		o.decide(ctx, &e)
	}
}

func (o *OpenTelemetry) decide(ctx context.Context, e *ratelimit.Event) {
	became, ok := outcomeOf(e)
	if !ok {
		return
	}
	o.meter.decide(ctx, e, became)
	if o.traces() {
		o.span(ctx, e, became)
	}
}

// traces reports whether anybody may want spans. The global provider that nobody
// has set yet would make some that go nowhere; it hands on what it is asked once
// it is set.
func (o *OpenTelemetry) traces() bool {
	return o.tracer != nil && (o.unset == nil || otel.GetTracerProvider() != o.unset)
}

// nobodySet reports whether a global provider is the one that stands for what will
// be set.
func nobodySet(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().PkgPath(), "otel/internal/global")
}
