package telemetry_test

import (
	"context"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

// A span that is not sampled costs what an empty one does: nothing is built for it.
func TestUnsampledSpansAreEmpty(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	o, err := opentelemetry.New(opentelemetry.Config{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, tracer := context.Background(), provider.Tracer("bare")
	bare := testing.AllocsPerRun(100, func() {
		_, span := tracer.Start(ctx, "rate_limiter.allow")
		span.End()
	})
	const timestamp = 2 // the option, and the list it is in
	for i, e := range telemetrytest.Story {
		if n := telemetrytest.Allocs(o, e); n > bare+timestamp {
			t.Errorf("event %d, %s: %v allocations, want at most %v", i, e.Kind, n, bare+timestamp)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	none := metricnoop.NewMeterProvider()
	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	sampled := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}))
	metered, _ := newMetered(b, opentelemetry.Config{Projects: []string{"acme"}})
	telemetrytest.BenchmarkObserver(b, "otel=metrics", metered)
	for name, cfg := range map[string]opentelemetry.Config{
		"otel=unsampled": {TracerProvider: unsampled, MeterProvider: none},
		"otel=sampled":   {TracerProvider: sampled, MeterProvider: sdkmetric.NewMeterProvider()},
	} {
		o, err := opentelemetry.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		telemetrytest.BenchmarkObserver(b, name, o)
	}
}

// discard is where spans end that nobody wants.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }
