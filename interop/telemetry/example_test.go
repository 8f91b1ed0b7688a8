package telemetry_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

func Example_traces() {
	spans := tracetest.NewSpanRecorder() // in a program: an exporter
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	traces, err := opentelemetry.New(opentelemetry.Config{TracerProvider: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas:   map[string]ratelimit.ModelQuota{"gpt-4o": {MaxTPM: 1000}},
		Observer: traces,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, request := provider.Tracer("app").Start(context.Background(), "POST /chat")
	defer request.End()

	res, _ := rl.Acquire(ctx, "gpt-4o", 800)
	defer res.Cancel()
	rl.Acquire(ctx, "gpt-4o", 1200) // which can never pass

	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), span.Status().Code, span.Parent().SpanID() == request.SpanContext().SpanID())
		for _, kv := range span.Attributes() {
			fmt.Println("  ", kv.Key, "=", kv.Value.String())
		}
	}
	// Output:
	// rate_limiter.allow Ok true
	//    ratelimit.outcome = admitted
	//    ratelimit.shadow = false
	//    ratelimit.waited_seconds = 0
	//    gen_ai.request.model = gpt-4o
	// rate_limiter.allow Unset true
	//    ratelimit.outcome = denied
	//    ratelimit.shadow = false
	//    ratelimit.waited_seconds = 0
	//    gen_ai.request.model = gpt-4o
	//    limit_exceeded = max_tpm
}
