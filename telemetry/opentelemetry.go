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

// OpenTelemetryConfig configures an [OpenTelemetry]. The zero value is ready to use.
type OpenTelemetryConfig struct {
	// TracerProvider makes the spans. The default is the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider

	// Models is how many models metrics tell apart: the first ones with a quota that are used. The
	// default is 100. All others count as "other". Spans always name the model.
	Models int

	// Projects has the ids of the projects that metrics tell apart. The default is none. All others
	// count as "other". Spans always name the project.
	Projects []string
}

// OpenTelemetry is an observer that makes a span for each decision, and counts. The package's
// documentation lists its spans and metrics. It lives as long as its meter provider, which asks it
// whether the store is lost.
type OpenTelemetry struct {
	tracer      trace.Tracer         // nil: tracing is off
	placeholder trace.TracerProvider // the global provider if it was not set yet; or nil
	meter       *otelMeter
}

var _ ratelimit.Observer = (*OpenTelemetry)(nil)

// scope is the instrumentation scope of all spans and metrics.
const scope = "dappco.re/go/core/go-ratelimit/telemetry"

// NewOpenTelemetry returns an observer with the given configuration.
func NewOpenTelemetry(cfg OpenTelemetryConfig) (*OpenTelemetry, error) {
	var placeholder trace.TracerProvider
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
		if isPlaceholder(cfg.TracerProvider) {
			placeholder = cfg.TracerProvider
		}
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	meter, err := newOtelMeter(cfg)
	if err != nil {
		return nil, err
	}
	o := &OpenTelemetry{tracer: cfg.TracerProvider.Tracer(scope), placeholder: placeholder, meter: meter}
	if _, off := o.tracer.(noop.Tracer); off {
		o.tracer = nil
	}
	return o, nil
}

// Observe makes a span for a decision, and counts every event.
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
	result, ok := outcomeOf(e)
	if !ok {
		return
	}
	o.meter.decide(ctx, e, result)
	if o.traces() {
		o.span(ctx, e, result)
	}
}

// traces reports whether spans may be exported. The global provider would make spans that go
// nowhere before it is set; afterwards it passes them on.
func (o *OpenTelemetry) traces() bool {
	return o.tracer != nil && (o.placeholder == nil || otel.GetTracerProvider() != o.placeholder)
}

// isPlaceholder reports whether a global provider is the one that stands in until another is set.
func isPlaceholder(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().PkgPath(), "otel/internal/global")
}
