package opentelemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

func Example() {
	traces, err := opentelemetry.New(opentelemetry.Config{
		TracerProvider: printing{}, // without one it is the global one: otel.SetTracerProvider may come later
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas:   map[string]ratelimit.ModelQuota{"gpt-4o": {MaxRPM: 1}},
		Observer: traces,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	rl.TryAcquire("gpt-4o", 1000)
	rl.TryAcquire("gpt-4o", 1000) // one too many, and a decision like the first
	// Output:
	// a span rate_limiter.allow
	// a span rate_limiter.allow
}

// printing stands for OpenTelemetry's SDK: it prints the names of spans.
type printing struct{ noop.TracerProvider }

func (printing) Tracer(string, ...trace.TracerOption) trace.Tracer { return printer{} }

type printer struct{ noop.Tracer }

func (p printer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	fmt.Println("a span", name)
	return p.Tracer.Start(ctx, name, options...)
}
