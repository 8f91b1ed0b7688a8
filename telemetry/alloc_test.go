package telemetry

import (
	"context"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/alone"
)

// allocs returns how many allocations an event costs that was seen before.
func allocs(o ratelimit.Observer, e ratelimit.Event) float64 {
	ctx := context.Background()
	o.Observe(ctx, e)
	return testing.AllocsPerRun(100, func() { o.Observe(ctx, e) })
}

// What was seen before costs no allocation.
func TestPrometheusAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	p, _ := newProm(t, PrometheusConfig{Projects: []string{"acme"}})
	for i, e := range story {
		if n := allocs(p, e); n != 0 {
			t.Errorf("event %d, %s: %v allocations, want none", i, e.Kind, n)
		}
	}
}

// Switched off, or not yet on, it costs no allocation at all.
func TestOpenTelemetryOffAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, cfg := range map[string]OpenTelemetryConfig{
		"off":           {TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()},
		"unset globals": {},
	} {
		o, err := NewOpenTelemetry(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range story {
			if n := allocs(o, e); n != 0 {
				t.Errorf("%s: event %d, %s: %v allocations, want none", name, i, e.Kind, n)
			}
		}
	}
}

// A span that is not sampled costs what an empty one does: nothing is built for it.
func TestUnsampledSpansAreEmpty(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	o, err := NewOpenTelemetry(OpenTelemetryConfig{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	bare := testing.AllocsPerRun(100, func() {
		_, span := o.tracer.Start(ctx, spanName)
		span.End()
	})
	const timestamp = 2 // the option, and the list it is in
	for i, e := range story {
		if n := allocs(o, e); n > bare+timestamp {
			t.Errorf("event %d, %s: %v allocations, want at most %v", i, e.Kind, n, bare+timestamp)
		}
	}
}

var usual = map[string]ratelimit.Event{
	"admitted": {Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "tpm", RemainingMinute: 58, Waited: time.Millisecond, Estimated: 1000},
	"denied":   {Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "concurrent", RetryAfter: time.Second},
	"settled":  {Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}},
}

func BenchmarkObserve(b *testing.B) {
	prom, _ := newProm(b, PrometheusConfig{Projects: []string{"acme"}})
	newOtel := func(cfg OpenTelemetryConfig) *OpenTelemetry {
		o, err := NewOpenTelemetry(cfg)
		if err != nil {
			b.Fatal(err)
		}
		return o
	}
	metered, _ := newMetered(b, OpenTelemetryConfig{Projects: []string{"acme"}})
	off := OpenTelemetryConfig{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()}
	unsampled := OpenTelemetryConfig{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())), MeterProvider: off.MeterProvider}
	sampled := OpenTelemetryConfig{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{})), MeterProvider: sdkmetric.NewMeterProvider()}
	for _, c := range []struct {
		name     string
		observer ratelimit.Observer
	}{
		{"prometheus", prom},
		{"otel=off", newOtel(off)},
		{"otel=globals-unset", newOtel(OpenTelemetryConfig{})},
		{"otel=metrics", metered},
		{"otel=unsampled", newOtel(unsampled)},
		{"otel=sampled", newOtel(sampled)},
	} {
		for _, event := range []string{"admitted", "denied", "settled"} {
			b.Run(c.name+"/"+event, func(b *testing.B) {
				e, ctx := usual[event], b.Context()
				b.ReportAllocs()
				for b.Loop() {
					c.observer.Observe(ctx, e)
				}
			})
		}
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	p, _ := newProm(b, PrometheusConfig{Projects: []string{"acme"}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.Observe(b.Context(), usual["admitted"])
		}
	})
}

// discard is where spans end that nobody wants.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }
