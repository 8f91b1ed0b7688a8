package opentelemetry

import (
	"cmp"
	"context"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/telemetry/internal/counts"
)

// Config configures an [Observer]. The zero value is ready to use.
type Config struct {
	// TracerProvider makes the spans. The default is the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the metrics. The default is the global one.
	MeterProvider metric.MeterProvider

	// Models is how many models metrics distinguish: the first ones with a quota that are used. The
	// default is 100. All others count as "other". Spans always name the model.
	Models int

	// Projects has the ids of the projects that metrics distinguish. The default is none. All others
	// count as "other". Spans always name the project.
	Projects []string
}

// Observer is an observer that makes a span for each decision, and counts. The package's
// documentation lists its spans and metrics. It lives as long as its meter provider, which asks it
// whether the store is lost.
type Observer struct {
	tracer  trace.Tracer    // nil: tracing is off
	metrics *counts.Metrics // nil: metrics are off

	// unsetTracers and unsetMeters are the global providers, if the program had not set its own yet;
	// otherwise nil. Until the program does, nothing is exported.
	unsetTracers trace.TracerProvider
	unsetMeters  metric.MeterProvider
}

var _ event.Observer = (*Observer)(nil)

// scope is the instrumentation scope of all spans and metrics.
const scope = "dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"

// New returns an observer with the given configuration.
func New(cfg Config) (*Observer, error) {
	o := &Observer{}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
		if isPlaceholder(cfg.TracerProvider) {
			o.unsetTracers = cfg.TracerProvider
		}
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
		if isPlaceholder(cfg.MeterProvider) {
			o.unsetMeters = cfg.MeterProvider
		}
	}
	o.tracer = cfg.TracerProvider.Tracer(scope)
	if _, off := o.tracer.(tracenoop.Tracer); off {
		o.tracer = nil
	}
	in := &instruments{meter: cfg.MeterProvider.Meter(scope)}
	metrics, err := counts.New(in, cfg.Models, cfg.Projects)
	if err := cmp.Or(err, in.err); err != nil {
		return nil, err
	}
	if _, off := cfg.MeterProvider.(metricnoop.MeterProvider); !off {
		o.metrics = metrics
	}
	return o, nil
}

// Observe makes a span for a decision, and counts every event.
func (o *Observer) Observe(ctx context.Context, e event.Event) {
	if o.metrics != nil && (o.unsetMeters == nil || otel.GetMeterProvider() != o.unsetMeters) {
		o.metrics.Observe(ctx, &e)
	}
	if o.tracer != nil && (o.unsetTracers == nil || otel.GetTracerProvider() != o.unsetTracers) && counts.IsDecision(e.Kind) {
		o.span(ctx, &e)
	}
}

// isPlaceholder reports whether a global provider is the one that stands in until another is set.
func isPlaceholder(provider any) bool {
	t := reflect.TypeOf(provider)
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().PkgPath(), "otel/internal/global")
}
