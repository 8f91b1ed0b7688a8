package telemetry_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/telemetry"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

// newTraced returns an observer without metrics, and what keeps its spans.
func newTraced(t testing.TB) (*opentelemetry.Observer, *sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	o, err := opentelemetry.New(opentelemetry.Config{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	return o, provider, recorder
}

// newMetered returns an observer without spans, and what reads its metrics.
func newMetered(t testing.TB, cfg opentelemetry.Config) (*opentelemetry.Observer, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	cfg.TracerProvider = tracenoop.NewTracerProvider()
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	o, err := opentelemetry.New(cfg)
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
		event  event.Event
		want   attributes
		status codes.Code
		reason string
	}{
		"admitted": {
			event.Event{Kind: event.Admitted, Project: "acme", Model: "gpt-4o", RemainingMinute: 59},
			attributes{"project_id": "acme", "remaining_minute": int64(59), "gen_ai.request.model": "gpt-4o",
				"ratelimit.outcome": "admitted", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Ok, "",
		},
		"admitted after a wait, for which no limit is exceeded any more": {
			event.Event{Kind: event.Admitted, Limit: "requests_per_minute", Waited: 1500 * time.Millisecond},
			attributes{"remaining_minute": int64(0), "ratelimit.outcome": "admitted", "ratelimit.shadow": false, "ratelimit.waited_seconds": 1.5},
			codes.Ok, "",
		},
		"denied": {
			event.Event{Kind: event.Denied, Project: "acme", Limit: "requests_per_minute", RetryAfter: time.Second},
			attributes{"project_id": "acme", "limit_exceeded": "requests_per_minute", "remaining_minute": int64(0),
				"ratelimit.outcome": "denied", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"denied in the shadow": {
			event.Event{Kind: event.Denied, Project: "anybody's", Limit: "requests_per_hour", Shadow: true, RemainingMinute: -1},
			attributes{"project_id": "anybody's", "limit_exceeded": "requests_per_hour",
				"ratelimit.outcome": "denied", "ratelimit.shadow": true, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"never": {
			event.Event{Kind: event.Denied, Model: "made-up", Limit: "max_tpm", RetryAfter: ratelimit.Never, RemainingMinute: -1},
			attributes{"gen_ai.request.model": "made-up", "limit_exceeded": "max_tpm",
				"ratelimit.outcome": "denied", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Unset, "",
		},
		"waited in vain": {
			event.Event{Kind: event.Denied, Limit: "max_rpm", Waited: time.Minute, RemainingMinute: -1, Err: context.DeadlineExceeded},
			attributes{"limit_exceeded": "max_rpm", "ratelimit.outcome": "denied", "ratelimit.shadow": false, "ratelimit.waited_seconds": 60.0},
			codes.Unset, "",
		},
		"failed": {
			event.Event{Kind: event.Lost, RemainingMinute: -1, Err: telemetrytest.ErrGone},
			attributes{"ratelimit.outcome": "lost", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
			codes.Error, "the store is gone",
		},
		"failed, nobody says why": {
			event.Event{Kind: event.Lost, RemainingMinute: -1},
			attributes{"ratelimit.outcome": "lost", "ratelimit.shadow": false, "ratelimit.waited_seconds": 0.0},
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
			testkit.Equal(t, "attributes", c.want, got)
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
		telemetrytest.Tell(t, o, event.Event{Kind: event.Admitted, Waited: 3 * time.Second})
		telemetrytest.Tell(t, o, event.Event{Kind: event.Denied})
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
	for _, kind := range []event.Kind{event.Settled, event.Cancelled, event.Store, event.Paused, event.Lowered, event.Learned, "new"} {
		telemetrytest.Tell(t, o, event.Event{Kind: kind})
	}
	if n := len(recorder.Started()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
}

// otelMetrics is how many the story makes.
const otelMetrics = 20

// point is a data point: its sum, and of a histogram how many there are.
type point struct {
	Sum   float64
	Count uint64
}

func TestMeter(t *testing.T) {
	o, reader := newMetered(t, opentelemetry.Config{Projects: []string{"acme"}})
	telemetrytest.Tell(t, o, telemetrytest.Story...)
	metrics := collected(t, reader)
	for name, c := range map[string]struct {
		unit string
		want map[string]point
	}{
		"ratelimit.decisions": {"{decision}", map[string]point{
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.outcome=admitted,ratelimit.shadow=false":                                   {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=max_tpm,ratelimit.outcome=admitted,ratelimit.shadow=false":           {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=requests_per_minute,ratelimit.outcome=denied,ratelimit.shadow=false": {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=other,ratelimit.limit=max_tpm,ratelimit.outcome=denied,ratelimit.shadow=false":            {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=paused,ratelimit.outcome=denied,ratelimit.shadow=false":              {1, 0},
			"project_id=other,ratelimit.limit=requests_per_day,ratelimit.outcome=denied,ratelimit.shadow=true":                                {1, 0},
			"gen_ai.request.model=gpt-4o,project_id=acme,ratelimit.limit=max_rpm,ratelimit.outcome=denied,ratelimit.shadow=false":             {1, 0},
			"gen_ai.request.model=other,ratelimit.outcome=lost,ratelimit.shadow=false":                                                        {1, 0},
		}},
		"ratelimit.wait.duration": {"s", map[string]point{
			"gen_ai.request.model=gpt-4o,ratelimit.outcome=admitted": {1.5, 2},
			"gen_ai.request.model=gpt-4o,ratelimit.outcome=denied":   {60, 1},
		}},
		"gen_ai.client.token.usage": {"{token}", map[string]point{
			"gen_ai.request.model=gpt-4o,gen_ai.token.type=input":  {1200, 2},
			"gen_ai.request.model=gpt-4o,gen_ai.token.type=output": {400, 2},
		}},
		"ratelimit.thresholds": {"{threshold}", map[string]point{
			"project_id=acme,ratelimit.limit=dollars_per_month,ratelimit.owner=project,ratelimit.percent=80": {1, 0},
		}},
		"ratelimit.thresholds.missed": {"{threshold}", map[string]point{"": {1, 0}}},
		"ratelimit.estimated_tokens":  {"{token}", map[string]point{"gen_ai.request.model=gpt-4o,project_id=acme": {2000, 0}}},
		"ratelimit.compared_tokens":   {"{token}", map[string]point{"gen_ai.request.model=gpt-4o,project_id=acme": {1600, 0}}},
		"ratelimit.estimate.error":    {"1", map[string]point{"gen_ai.request.model=gpt-4o": {1200.0/1000 - 1 + 400.0/1000 - 1, 2}}},
		"ratelimit.cancelled":         {"{call}", map[string]point{"gen_ai.request.model=gpt-4o,project_id=acme": {1, 0}}},
		"ratelimit.provider.throttled": {"{call}", map[string]point{
			"gen_ai.request.model=gpt-4o,ratelimit.cause=rate_limit": {1, 0},
			"gen_ai.request.model=gpt-4o,ratelimit.cause=spend_cap":  {1, 0},
			"gen_ai.request.model=other,ratelimit.cause=overload":    {1, 0},
		}},
		"ratelimit.quota.lowered":          {"{time}", map[string]point{"gen_ai.request.model=gpt-4o,ratelimit.limit=max_tpm": {1, 0}}},
		"ratelimit.quota.learned":          {"{time}", map[string]point{"gen_ai.request.model=gpt-4o,ratelimit.limit=max_rpm": {1, 0}}},
		"ratelimit.store.lost":             {"{part}", map[string]point{"": {1, 0}}},
		"ratelimit.store.losses":           {"{loss}", map[string]point{"": {2, 0}}},
		"ratelimit.store.reconciled.keys":  {"{key}", map[string]point{"": {2, 0}}},
		"ratelimit.store.reconciled.units": {"{unit}", map[string]point{"": {700, 0}}},
		"ratelimit.store.missed_events":    {"{event}", map[string]point{"": {1, 0}}},
		"ratelimit.store.decisions": {"{decision}", map[string]point{
			"ratelimit.mode=share,ratelimit.outcome=admitted": {10, 0},
			"ratelimit.mode=share,ratelimit.outcome=denied":   {4, 0},
		}},
	} {
		testkit.Equal(t, name, c.want, pointsOf(metrics[name]))
		if m := metrics[name]; m.Unit != c.unit || m.Description == "" {
			t.Errorf("%s has the unit %q and the description %q, want %q and some", name, m.Unit, m.Description, c.unit)
		}
	}
	if len(metrics) != otelMetrics {
		t.Errorf("%d metrics, want %d", len(metrics), otelMetrics)
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
	o, reader := newMetered(t, opentelemetry.Config{})
	telemetrytest.Tell(t, o, event.Event{Kind: event.Settled, Used: ratelimit.Tokens{Input: 5}})
	want := map[string]point{"gen_ai.token.type=input": {5, 1}}
	testkit.Equal(t, "points", want, pointsOf(collected(t, reader)["gen_ai.client.token.usage"]))
}

// Each event changes these metrics by so much, and no other.
func TestMeterCounts(t *testing.T) {
	type changes map[string]map[string]point
	for name, c := range map[string]struct {
		event event.Event
		want  changes
	}{
		"settled for less": {
			event.Event{Kind: event.Settled, Project: "acme", Model: "m", Limited: true, Estimated: 1000, Used: ratelimit.Tokens{Input: 200, Output: 50}},
			changes{
				"gen_ai.client.token.usage": {
					"gen_ai.request.model=m,gen_ai.token.type=input":  {200, 1},
					"gen_ai.request.model=m,gen_ai.token.type=output": {50, 1},
				},
				"ratelimit.estimated_tokens": {"gen_ai.request.model=m,project_id=acme": {1000, 0}},
				"ratelimit.compared_tokens":  {"gen_ai.request.model=m,project_id=acme": {250, 0}},
				"ratelimit.estimate.error":   {"gen_ai.request.model=m": {-0.75, 1}},
			},
		},
		"settled for more": {
			event.Event{Kind: event.Settled, Estimated: 100, Used: ratelimit.Tokens{Output: 300}},
			changes{
				"gen_ai.client.token.usage":  {"gen_ai.token.type=output": {300, 1}},
				"ratelimit.estimated_tokens": {"": {100, 0}},
				"ratelimit.compared_tokens":  {"": {300, 0}},
				"ratelimit.estimate.error":   {"": {2, 1}},
			},
		},
		"settled, and nothing was reserved": {
			event.Event{Kind: event.Settled, Used: ratelimit.Tokens{Input: 7}},
			changes{"gen_ai.client.token.usage": {"gen_ai.token.type=input": {7, 1}}},
		},
		"settled, and only the prompt is known": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: -1}},
			changes{"gen_ai.client.token.usage": {"gen_ai.token.type=input": {900, 1}}},
		},
		"settled, and only the output is known": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: 800}},
			changes{"gen_ai.client.token.usage": {"gen_ai.token.type=output": {800, 1}}},
		},
		"settled, and it is not known for what": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: -1}},
			changes{},
		},
		"cancelled, by a project that is not listed and for a model without a quota": {
			event.Event{Kind: event.Cancelled, Project: "initech", Model: "made-up", Estimated: 5},
			changes{"ratelimit.cancelled": {"gen_ai.request.model=other,project_id=other": {1, 0}}},
		},
		"refused by the provider": {
			event.Event{Kind: event.Paused, Model: "m", Limited: true, RetryAfter: time.Hour, Cause: llm.DayLimited},
			changes{"ratelimit.provider.throttled": {"gen_ai.request.model=m,ratelimit.cause=day_limit": {1, 0}}},
		},
		"refused by the provider of a model that anybody can name, for a reason that is not known": {
			event.Event{Kind: event.Paused, Model: "made-up", Cause: "bad mood"},
			changes{"ratelimit.provider.throttled": {"gen_ai.request.model=other,ratelimit.cause=other": {1, 0}}},
		},
		"lowered": {
			event.Event{Kind: event.Lowered, Model: "m", Limited: true, Limit: "max_rpm", Said: 3, RetryAfter: time.Minute},
			changes{"ratelimit.quota.lowered": {"gen_ai.request.model=m,ratelimit.limit=max_rpm": {1, 0}}},
		},
		"learned": {
			event.Event{Kind: event.Learned, Model: "m", Limited: true, Limit: "max_input_tpm", Said: 30_000},
			changes{"ratelimit.quota.learned": {"gen_ai.request.model=m,ratelimit.limit=max_input_tpm": {1, 0}}},
		},
		"the store is lost": {
			telemetrytest.Stored(store.Event{Kind: store.Lost, Mode: redisstore.Deny}),
			changes{"ratelimit.store.lost": {"": {1, 0}}, "ratelimit.store.losses": {"": {1, 0}}},
		},
		"decided without the store": {
			telemetrytest.Stored(store.Event{Kind: store.Decided, Mode: redisstore.Allow, Allowed: 3, Denied: 2}),
			changes{"ratelimit.store.decisions": {
				"ratelimit.mode=allow,ratelimit.outcome=admitted": {3, 0},
				"ratelimit.mode=allow,ratelimit.outcome=denied":   {2, 0},
			}},
		},
		"a mode that is not known": {telemetrytest.Stored(store.Event{Kind: store.Decided, Mode: "guess", Allowed: 3}), changes{}},
		"reconciled, and events were missed before": {
			telemetrytest.Stored(store.Event{Kind: store.Reconciled, Keys: 3, Charged: 40, Missed: 2}),
			changes{
				"ratelimit.store.reconciled.keys":  {"": {3, 0}},
				"ratelimit.store.reconciled.units": {"": {40, 0}},
				"ratelimit.store.missed_events":    {"": {2, 0}},
			},
		},
		"numbers that make no sense": {
			telemetrytest.Stored(store.Event{Kind: store.Reconciled, Keys: -3, Charged: -40, Missed: -2}),
			changes{},
		},
		"an event of the store without one":     {event.Event{Kind: event.Store}, changes{}},
		"something that is new since, of kinds": {event.Event{Kind: "new", Model: "m", Limited: true}, changes{}},
	} {
		t.Run(name, func(t *testing.T) {
			o, reader := newMetered(t, opentelemetry.Config{Projects: []string{"acme"}})
			telemetrytest.Tell(t, o, c.event)
			got := changes{}
			for name, m := range collected(t, reader) {
				got[name] = pointsOf(m)
			}
			if lost := got["ratelimit.store.lost"]; lost[""].Sum == 0 {
				delete(got, "ratelimit.store.lost") // it is always there
			}
			testkit.Equal(t, "changes", c.want, got)
		})
	}
}

// Histograms have the same bounds as those for Prometheus.
func TestMeterBounds(t *testing.T) {
	p, registry := newProm(t, telemetry.PrometheusConfig{})
	o, reader := newMetered(t, opentelemetry.Config{})
	telemetrytest.Tell(t, event.Observers{p, o}, telemetrytest.Story...)
	want, metrics := boundsOf(t, registry), collected(t, reader)
	for name, same := range map[string]string{
		"ratelimit.wait.duration":  "ratelimit_wait_seconds",
		"ratelimit.estimate.error": "ratelimit_estimate_error_ratio",
	} {
		data, ok := metrics[name].Data.(metricdata.Histogram[float64])
		if !ok || len(data.DataPoints) == 0 {
			t.Fatalf("%s is %T without points, want a histogram", name, metrics[name].Data)
		}
		testkit.Equal(t, fmt.Sprintf("%s, bounds", name), want[same], data.DataPoints[0].Bounds)
	}
}

// boundsOf returns the bounds of Prometheus's histograms, by their names.
func boundsOf(t *testing.T, from prometheus.Gatherer) map[string][]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]float64{}
	for _, family := range families {
		for _, bucket := range family.Metric[0].GetHistogram().GetBucket() {
			all[family.GetName()] = append(all[family.GetName()], bucket.GetUpperBound())
		}
	}
	return all
}

// How many groups are lost is known whatever the order and however often it is reported.
func TestMeterStoreLost(t *testing.T) {
	o, reader := newMetered(t, opentelemetry.Config{})
	for i, step := range telemetrytest.Losing {
		telemetrytest.Tell(t, o, telemetrytest.Stored(store.Event{Kind: step.Kind, Group: step.Group}))
		want := map[string]point{"": {step.Lost, 0}}
		testkit.Equal(t, fmt.Sprintf("step %d, %s %d", i, step.Kind, step.Group), want, pointsOf(collected(t, reader)["ratelimit.store.lost"]))
	}
	if got := pointsOf(collected(t, reader)["ratelimit.store.losses"])[""].Sum; got != 5 {
		t.Errorf("%v losses, want 5", got)
	}
}

// Of several stores with one provider all that are lost count.
func TestMeterSeveralStores(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	for group := range 2 {
		o, err := opentelemetry.New(opentelemetry.Config{MeterProvider: provider})
		if err != nil {
			t.Fatal(err)
		}
		telemetrytest.Tell(t, o, telemetrytest.Stored(store.Event{Kind: store.Lost}), telemetrytest.Stored(store.Event{Kind: store.Lost, Group: group}))
	}
	if got := pointsOf(collected(t, reader)["ratelimit.store.lost"])[""].Sum; got != 1+2 {
		t.Errorf("%v groups are lost, want 3", got)
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
	o, err := opentelemetry.New(opentelemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	telemetrytest.Tell(t, o, telemetrytest.Story...) // nobody listens
	recorder, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	telemetrytest.Tell(t, o, telemetrytest.Story...)
	if n := len(recorder.Ended()); n != 8 {
		t.Errorf("%d spans, want one for each of 8 decisions", n)
	}
	metrics := collected(t, reader)
	if n := len(metrics); n != otelMetrics {
		t.Errorf("%d metrics, want %d", n, otelMetrics)
	}
	if got := pointsOf(metrics["ratelimit.store.lost"])[""].Sum; got != 1 {
		t.Errorf("%v parts of the store are lost, want 1", got)
	}
}
