package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

// otlpCollector keeps the spans that are sent to it over HTTP, by their names.
type otlpCollector struct {
	t     *testing.T
	mu    sync.Mutex
	scope map[string]string
	spans map[string]*spans.Span
}

func (c *otlpCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Errorf("the request was cut off: %v", err)
		return
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil || r.URL.Path != "/v1/traces" {
		c.t.Errorf("%s has no spans: %v", r.URL.Path, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, by := range resource.ScopeSpans {
			for _, span := range by.Spans {
				c.spans[span.Name], c.scope[span.Name] = span, by.Scope.GetName()
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil {
		c.t.Error(err)
	}
	w.Write(answer)
}

// What arrives at a collector, with the real exporter in between.
func TestOTLP(t *testing.T) {
	heard := &otlpCollector{t: t, scope: map[string]string{}, spans: map[string]*spans.Span{}}
	server := httptest.NewServer(heard)
	defer server.Close()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	o, err := opentelemetry.New(opentelemetry.Config{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, parent := provider.Tracer("app").Start(t.Context(), "POST /v1/chat/completions")
	o.Observe(ctx, event.Event{Kind: event.Denied, Project: "acme", Model: "gpt-4o", Limit: "requests_per_minute", RemainingMinute: 0, Waited: 1500 * time.Millisecond})
	parent.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	above, span := heard.spans["POST /v1/chat/completions"], heard.spans["rate_limiter.allow"]
	if above == nil || span == nil {
		t.Fatalf("the collector has heard of %v", heard.spans)
	}
	if string(span.ParentSpanId) != string(above.SpanId) || string(span.TraceId) != string(above.TraceId) {
		t.Errorf("span %x of trace %x is below %x of %x", span.ParentSpanId, span.TraceId, above.SpanId, above.TraceId)
	}
	if by := heard.scope[span.Name]; by != scope {
		t.Errorf("it is made by %q, want %q", by, scope)
	}
	if took := time.Duration(span.EndTimeUnixNano - span.StartTimeUnixNano); took < 1500*time.Millisecond {
		t.Errorf("it took %v, want the wait of 1.5s and the time to tell of it", took)
	}
	got := map[string]any{}
	for _, kv := range span.Attributes {
		got[kv.Key] = plain(kv.Value)
	}
	want := map[string]any{
		"project_id": "acme", "limit_exceeded": "requests_per_minute", "remaining_minute": int64(0), "gen_ai.request.model": "gpt-4o",
		"ratelimit.outcome": "denied", "ratelimit.shadow": false, "ratelimit.waited_seconds": 1.5,
	}
	testkit.Equal(t, "attributes", want, got)
}

// plain returns the value of an attribute.
func plain(v *common.AnyValue) any {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	default:
		return nil
	}
}
