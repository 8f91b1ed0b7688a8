package telemetry

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// newTraced returns an observer without metrics, and what keeps its spans.
func newTraced(t testing.TB) (*OpenTelemetry, *sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	o, err := NewOpenTelemetry(OpenTelemetryConfig{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	return o, provider, recorder
}

// newMetered returns an observer without spans, and what reads its metrics.
func newMetered(t testing.TB, cfg OpenTelemetryConfig) (*OpenTelemetry, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	cfg.TracerProvider = tracenoop.NewTracerProvider()
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	o, err := NewOpenTelemetry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o, reader
}

func collected(t testing.TB, from sdkmetric.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := from.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]metricdata.Metrics{}
	for _, by := range all.ScopeMetrics {
		if by.Scope.Name != scope {
			t.Errorf("metrics are made by %q, want %q", by.Scope.Name, scope)
		}
		for _, m := range by.Metrics {
			metrics[m.Name] = m
		}
	}
	return metrics
}

func TestSpans(t *testing.T) {
	type attributes = map[string]any
	for name, c := range map[string]struct {
		event  ratelimit.Event
		want   attributes
		status codes.Code
		reason string
	}{
		"admitted": {
			ratelimit.Event{Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", RemainingMinute: 59},
			attributes{"project_id": "acme", "remaining_minute": int64(59), "gen_ai.request.model": "gpt-4o",
				"ratelimit.outcome": "admitted", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Ok, "",
		},
		"admitted after a wait, for which no limit is exceeded any more": {
			ratelimit.Event{Kind: ratelimit.EventAdmitted, Limit: "minute", Waited: 1500 * time.Millisecond},
			attributes{"remaining_minute": int64(0), "ratelimit.outcome": "admitted", "ratelimit.shadow": false, "ratelimit.waited_seconds": 1.5},
			codes.Ok, "",
		},
		"denied": {
			ratelimit.Event{Kind: ratelimit.EventDenied, Project: "acme", Limit: "minute", RetryAfter: time.Second},
			attributes{"project_id": "acme", "limit_exceeded": "minute", "remaining_minute": int64(0),
				"ratelimit.outcome": "denied", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"denied in the shadow": {
			ratelimit.Event{Kind: ratelimit.EventDenied, Project: "anybody's", Limit: "hour", Shadow: true, RemainingMinute: -1},
			attributes{"project_id": "anybody's", "limit_exceeded": "hour",
				"ratelimit.outcome": "denied", "ratelimit.shadow": true, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"never": {
			ratelimit.Event{Kind: ratelimit.EventDenied, Model: "made-up", Limit: "tpm", RetryAfter: ratelimit.Never, RemainingMinute: -1},
			attributes{"gen_ai.request.model": "made-up", "limit_exceeded": "tpm",
				"ratelimit.outcome": "never", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"shed": {
			ratelimit.Event{Kind: ratelimit.EventShed, Limit: "rpm", Waited: time.Minute, RemainingMinute: -1, Err: context.DeadlineExceeded},
			attributes{"limit_exceeded": "rpm", "ratelimit.outcome": "shed", "ratelimit.shadow": false, "ratelimit.waited_seconds": 60.0},
			codes.Unset, "",
		},
		"failed": {
			ratelimit.Event{Kind: ratelimit.EventFailed, RemainingMinute: -1, Err: errGone},
			attributes{"ratelimit.outcome": "failed", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Error, "the store is gone",
		},
		"failed, nobody says why": {
			ratelimit.Event{Kind: ratelimit.EventFailed, RemainingMinute: -1},
			attributes{"ratelimit.outcome": "failed", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Error, "ratelimit: the store could not be asked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, provider, recorder := newTraced(t)
			ctx, parent := provider.Tracer("test").Start(t.Context(), "POST /v1/chat/completions")
			o.Observe(ctx, c.event)
			ended := recorder.Ended()
			if len(ended) != 1 {
				t.Fatalf("%d spans, want 1", len(ended))
			}
			span := ended[0]
			if span.Name() != "rate_limiter.allow" || span.Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("the span is %q below %s, want rate_limiter.allow below %s", span.Name(), span.Parent().SpanID(), parent.SpanContext().SpanID())
			}
			got := attributes{}
			for _, kv := range span.Attributes() {
				got[string(kv.Key)] = kv.Value.AsInterface()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("attributes, -want +got:\n%s", diff)
			}
			if status := span.Status(); status.Code != c.status || status.Description != c.reason {
				t.Errorf("the status is %v, want %v %q", status, c.status, c.reason)
			}
		})
	}
}

// A span is as long as its wait, and ends when its decision was made.
func TestSpanTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, recorder := newTraced(t)
		begun := time.Now()
		time.Sleep(3 * time.Second)
		tell(t, o, ratelimit.Event{Kind: ratelimit.EventAdmitted, Waited: 3 * time.Second})
		tell(t, o, ratelimit.Event{Kind: ratelimit.EventDenied})
		for i, want := range []time.Time{begun, begun.Add(3 * time.Second)} {
			span := recorder.Ended()[i]
			if !span.StartTime().Equal(want) || !span.EndTime().Equal(begun.Add(3*time.Second)) {
				t.Errorf("span %d is from %v to %v after the beginning, want %v to 3s", i, span.StartTime().Sub(begun), span.EndTime().Sub(begun), want.Sub(begun))
			}
		}
	})
}

// What is no decision makes no span.
func TestNoSpans(t *testing.T) {
	o, _, recorder := newTraced(t)
	for _, kind := range []ratelimit.EventKind{ratelimit.EventSettled, ratelimit.EventCancelled, ratelimit.EventStore, "new"} {
		tell(t, o, ratelimit.Event{Kind: kind})
	}
	if n := len(recorder.Started()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
}

// point is a data point: its sum, and of a histogram how many there are.
type point struct {
	Sum   float64
	Count uint64
}

func TestMeter(t *testing.T) {
	o, reader := newMetered(t, OpenTelemetryConfig{Projects: []string{"acme"}})
	tell(t, o, story...)
	metrics := collected(t, reader)
	for name, c := range map[string]struct {
		unit string
		want map[string]point
	}{
		"ratelimit.decisions": {"{decision}", map[string]point{
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.outcome=admitted,ratelimit.shadow=false":                      {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=tpm,ratelimit.outcome=admitted,ratelimit.shadow=false":  {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=minute,ratelimit.outcome=denied,ratelimit.shadow=false": {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=other,ratelimit.limit=tpm,ratelimit.outcome=never,ratelimit.shadow=false":    {1, 0},
			"project_id=other,ratelimit.limit=day,ratelimit.outcome=denied,ratelimit.shadow=true":                                {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=rpm,ratelimit.outcome=shed,ratelimit.shadow=false":      {1, 0},
			"gen_ai.request.model=other,ratelimit.outcome=failed,ratelimit.shadow=false":                                         {1, 0},
		}},
		"ratelimit.wait.duration": {"s", map[string]point{
			"gen_ai.request.model=gpt-4o,ratelimit.outcome=admitted": {1.5, 2},
			"gen_ai.request.model=gpt-4o,ratelimit.outcome=shed":     {60, 1},
		}},
		"gen_ai.client.token.usage": {"{token}", map[string]point{
			"gen_ai.request.model=gpt-4o,gen_ai.token.type=input":  {1200, 2},
			"gen_ai.request.model=gpt-4o,gen_ai.token.type=output": {400, 2},
		}},
	} {
		if diff := cmp.Diff(c.want, pointsOf(metrics[name])); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
		if m := metrics[name]; m.Unit != c.unit || m.Description == "" {
			t.Errorf("%s has the unit %q and the description %q, want %q and some", name, m.Unit, m.Description, c.unit)
		}
	}
	if len(metrics) != 3 {
		t.Errorf("%d metrics, want 3", len(metrics))
	}
}

func pointsOf(m metricdata.Metrics) map[string]point {
	points := map[string]point{}
	enter := func(attributes attribute.Set, p point) { points[attributes.Encoded(attribute.DefaultEncoder())] = p }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			enter(p.Attributes, point{float64(p.Value), 0})
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			enter(p.Attributes, point{float64(p.Sum), p.Count})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			enter(p.Attributes, point{p.Sum, p.Count})
		}
	}
	return points
}

// Tokens that were not used are not measured: who embeds has no output.
func TestMeterNoTokens(t *testing.T) {
	o, reader := newMetered(t, OpenTelemetryConfig{})
	tell(t, o, ratelimit.Event{Kind: ratelimit.EventSettled, Used: ratelimit.Tokens{Input: 5}})
	want := map[string]point{"gen_ai.token.type=input": {5, 1}}
	if diff := cmp.Diff(want, pointsOf(collected(t, reader)["gen_ai.client.token.usage"])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOpenTelemetryConfig(t *testing.T) {
	for name, cfg := range map[string]OpenTelemetryConfig{
		"negative models": {Models: -1},
		"empty project":   {Projects: []string{""}},
	} {
		if o, err := NewOpenTelemetry(cfg); o != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v, %v; want an error", name, o, err)
		}
	}
}

// Without providers the global ones are used, also if they are set later. They can
// be set so only once in a process, so the test has one of its own.
func TestOpenTelemetryGlobals(t *testing.T) {
	const inside = "TELEMETRY_TEST_GLOBALS"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOpenTelemetryGlobals$", "-test.count=1")
		cmd.Env = append(os.Environ(), inside+"=1")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	o, err := NewOpenTelemetry(OpenTelemetryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tell(t, o, story...) // nobody hears it
	recorder, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	tell(t, o, story...)
	if n := len(recorder.Ended()); n != 7 {
		t.Errorf("%d spans, want one for each of 7 decisions", n)
	}
	if n := len(collected(t, reader)); n != 3 {
		t.Errorf("%d metrics, want 3", n)
	}
}
