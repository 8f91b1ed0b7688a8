package opentelemetry

import (
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// An observer starts no goroutine, and tests end those that they start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle has configurations that export nothing.
var idle = map[string]Config{
	"otel=off":           {TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()},
	"otel=globals-unset": {},
}

// Without a provider, or before one is set, events allocate nothing.
func TestIdleAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for name, cfg := range idle {
		o, err := New(cfg)
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
	for name, cfg := range idle {
		o, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		telemetrytest.BenchmarkObserver(b, name, o)
	}
}
