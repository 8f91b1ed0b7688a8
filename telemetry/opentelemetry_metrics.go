package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// otelMeter is the metrics of an [OpenTelemetry].
type otelMeter struct {
	decisions metric.Int64Counter
	waits     metric.Float64Histogram
	tokens    metric.Int64Histogram
	series    *series[otelSeries]
}

// tokenBounds is what the conventions for generative AI advise.
var tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

func newOtelMeter(cfg OpenTelemetryConfig) (m *otelMeter, err error) {
	m = &otelMeter{}
	if m.series, err = newSeries(cfg.Models, cfg.Projects, newOtelSeries); err != nil {
		return nil, err
	}
	meter := cfg.MeterProvider.Meter(scope)
	m.decisions, err = meter.Int64Counter("ratelimit.decisions",
		metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions on calls, by what became of them and by the limit that denied them."))
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot count decisions: %w", err)
	}
	m.waits, err = meter.Float64Histogram("ratelimit.wait.duration",
		metric.WithUnit("s"),
		metric.WithDescription("How long calls have waited in line until they were admitted, or gave up."),
		metric.WithExplicitBucketBoundaries(waitBounds...))
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot measure waits: %w", err)
	}
	m.tokens, err = meter.Int64Histogram("gen_ai.client.token.usage",
		metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."),
		metric.WithExplicitBucketBoundaries(tokenBounds...))
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot measure tokens: %w", err)
	}
	return m, nil
}

func (m *otelMeter) decide(ctx context.Context, e *ratelimit.Event, became outcome) {
	if m.decisions.Enabled(ctx) {
		m.decisions.Add(ctx, 1, m.series.of(e).decision(verdictOf(e, became))...)
	}
	if became.waits() && m.waits.Enabled(ctx) {
		m.waits.Record(ctx, e.Waited.Seconds(), m.series.of(e).waits[became]...)
	}
}

func (m *otelMeter) settle(ctx context.Context, e *ratelimit.Event) {
	if !m.tokens.Enabled(ctx) {
		return
	}
	s := m.series.of(e)
	if e.Used.Input > 0 {
		m.tokens.Record(ctx, int64(e.Used.Input), s.input...)
	}
	if e.Used.Output > 0 {
		m.tokens.Record(ctx, int64(e.Used.Output), s.output...)
	}
}

// otelSeries is the attributes of a model's and a project's metrics, made ready.
type otelSeries struct {
	model, project string

	decisions perVerdict[lazy[[]metric.AddOption]]
	waits     [outcomes][]metric.RecordOption // nil where nothing waits

	input, output []metric.RecordOption
}

func newOtelSeries(model, project string) *otelSeries {
	s := &otelSeries{
		model:   model,
		project: project,
		input:   recordOf(model, keyTokenType.String("input")),
		output:  recordOf(model, keyTokenType.String("output")),
	}
	for o := range outcomes {
		if o.waits() {
			s.waits[o] = recordOf(model, keyOutcome.String(outcomeNames[o]))
		}
	}
	return s
}

func recordOf(model string, also attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(setOf(also, keyModel.String(model)))}
}

func (s *otelSeries) decision(v verdict) []metric.AddOption {
	return s.decisions.at(v).get(func() []metric.AddOption {
		return []metric.AddOption{metric.WithAttributeSet(setOf(
			keyOutcome.String(outcomeNames[v.outcome]),
			keyShadow.Bool(v.shadow == 1),
			keyLimit.String(limitNames[v.limit]),
			keyModel.String(s.model),
			keyProject.String(s.project),
		))}
	})
}

// setOf returns the attributes that are not empty.
func setOf(attributes ...attribute.KeyValue) attribute.Set {
	set, _ := attribute.NewSetWithFiltered(attributes, func(kv attribute.KeyValue) bool {
		return kv.Value.Type() != attribute.STRING || kv.Value.AsString() != ""
	})
	return set
}
