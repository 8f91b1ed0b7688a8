package telemetry

import (
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// An event of a known model and project allocates nothing, unless it comes once a window.
func TestPrometheusAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	p, _ := newProm(t, PrometheusConfig{Projects: []string{"acme"}})
	for i, e := range telemetrytest.Story {
		if n := telemetrytest.Allocs(p, e); n != 0 && e.Kind != ratelimit.EventThreshold {
			t.Errorf("event %d, %s: %v allocations, want none", i, e.Kind, n)
		}
	}
}

// Without a provider, or before one is set, events allocate nothing.
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
		for i, e := range telemetrytest.Story {
			if n := telemetrytest.Allocs(o, e); n != 0 {
				t.Errorf("%s: event %d, %s: %v allocations, want none", name, i, e.Kind, n)
			}
		}
	}
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
	off := OpenTelemetryConfig{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()}
	for name, observer := range map[string]ratelimit.Observer{
		"prometheus":         prom,
		"otel=off":           newOtel(off),
		"otel=globals-unset": newOtel(OpenTelemetryConfig{}),
	} {
		telemetrytest.BenchmarkObserver(b, name, observer)
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	p, _ := newProm(b, PrometheusConfig{Projects: []string{"acme"}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.Observe(b.Context(), telemetrytest.Usual["admitted"])
		}
	})
}
