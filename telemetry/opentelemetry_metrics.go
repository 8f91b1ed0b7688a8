package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// otelMeter has the metrics of an [OpenTelemetry].
type otelMeter struct {
	series   *series[otelSeries]
	store    *otelStore
	provider *otelProvider

	decisions, estimated, compared, cancelled metric.Int64Counter
	waits, errors                             metric.Float64Histogram
	tokens                                    metric.Int64Histogram
}

// tokenBounds are the ones that the semantic conventions for generative AI advise.
var tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}

func newOtelMeter(cfg OpenTelemetryConfig) (*otelMeter, error) {
	series, err := newSeries(cfg.Models, cfg.Projects, newOtelSeries)
	if err != nil {
		return nil, err
	}
	in := &instruments{meter: cfg.MeterProvider.Meter(scope)}
	m := &otelMeter{
		series:    series,
		store:     newOtelStore(in),
		provider:  newOtelProvider(in),
		decisions: in.counter("ratelimit.decisions", "{decision}", "Decisions on calls, by what became of them and by the limit that denied them."),
		waits:     in.histogram("ratelimit.wait.duration", "s", "How long calls have waited in line until they were admitted, or gave up.", waitBounds),
		tokens:    in.wholeHistogram("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", tokenBounds),
		estimated: in.counter("ratelimit.estimated_tokens", "{token}", "Tokens that were reserved for calls whose usage is known."),
		compared:  in.counter("ratelimit.compared_tokens", "{token}", "Tokens that the calls in ratelimit.estimated_tokens have used."),
		errors:    in.histogram("ratelimit.estimate.error", "1", "Relative error of the estimates of calls: used by estimated, less one.", errorBounds),
		cancelled: in.counter("ratelimit.cancelled", "{call}", "Calls that were admitted and then cancelled, which gave everything back."),
	}
	if in.err != nil {
		return nil, in.err
	}
	return m, nil
}

func (m *otelMeter) decide(ctx context.Context, e *ratelimit.Event, result outcome) {
	if m.decisions.Enabled(ctx) {
		m.decisions.Add(ctx, 1, m.series.of(e).decision(verdictOf(e, result))...)
	}
	if waited(e, result) && m.waits.Enabled(ctx) {
		m.waits.Record(ctx, e.Waited.Seconds(), m.series.of(e).waits[result]...)
	}
}

// settle records what a call has used, as far as it is known, and compares it with the estimate if
// all of it is known.
func (m *otelMeter) settle(ctx context.Context, e *ratelimit.Event) {
	if m.tokens.Enabled(ctx) {
		m.recordTokens(ctx, e)
	}
	c, ok := comparisonOf(e)
	if !ok {
		return
	}
	if m.estimated.Enabled(ctx) {
		m.estimated.Add(ctx, c.estimated, m.series.of(e).calls...)
	}
	if m.compared.Enabled(ctx) {
		m.compared.Add(ctx, c.used, m.series.of(e).calls...)
	}
	if m.errors.Enabled(ctx) {
		m.errors.Record(ctx, c.error(), m.series.of(e).errors...)
	}
}

func (m *otelMeter) recordTokens(ctx context.Context, e *ratelimit.Event) {
	s := m.series.of(e)
	if e.Used.Input > 0 {
		m.tokens.Record(ctx, int64(e.Used.Input), s.input...)
	}
	if e.Used.Output > 0 {
		m.tokens.Record(ctx, int64(e.Used.Output), s.output...)
	}
}

func (m *otelMeter) cancel(ctx context.Context, e *ratelimit.Event) {
	if m.cancelled.Enabled(ctx) {
		m.cancelled.Add(ctx, 1, m.series.of(e).calls...)
	}
}

// otelSeries has the prepared attributes of the metrics of one model and project.
type otelSeries struct {
	model, project string

	decisions perVerdict[lazy[[]metric.AddOption]]
	calls     []metric.AddOption
	waits     [outcomes][]metric.RecordOption // nil for outcomes without a wait

	input, output, errors []metric.RecordOption

	throttled [causes]lazy[[]metric.AddOption]
	limits    [limits]lazy[[]metric.AddOption]
}

func newOtelSeries(model, project string) *otelSeries {
	s := &otelSeries{
		model:   model,
		project: project,
		calls:   addOf(keyModel.String(model), keyProject.String(project)),
		input:   recordOf(keyModel.String(model), keyTokenType.String("input")),
		output:  recordOf(keyModel.String(model), keyTokenType.String("output")),
		errors:  recordOf(keyModel.String(model)),
	}
	for o := range outcomes {
		if o.waits() {
			s.waits[o] = recordOf(keyModel.String(model), keyOutcome.String(outcomeNames[o]))
		}
	}
	return s
}

func (s *otelSeries) decision(v verdict) []metric.AddOption {
	return s.decisions.at(v).get(func() []metric.AddOption {
		return addOf(
			keyOutcome.String(outcomeNames[v.outcome]),
			keyShadow.Bool(v.shadow == 1),
			keyLimit.String(limitNames[v.limit]),
			keyModel.String(s.model),
			keyProject.String(s.project),
		)
	})
}

func addOf(attributes ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(setOf(attributes))}
}

func recordOf(attributes ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(setOf(attributes))}
}

// setOf returns the attributes that are not empty.
func setOf(attributes []attribute.KeyValue) attribute.Set {
	set, _ := attribute.NewSetWithFiltered(attributes, func(kv attribute.KeyValue) bool {
		return kv.Value.Type() != attribute.STRING || kv.Value.AsString() != ""
	})
	return set
}
