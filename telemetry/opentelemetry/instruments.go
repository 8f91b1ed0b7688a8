package opentelemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/telemetry/internal/counts"
)

// instruments is the exporter for OpenTelemetry. It collects errors.
type instruments struct {
	meter metric.Meter
	err   error
}

func (in *instruments) Counters(d counts.Definition) counts.Counters {
	if d.Bounds != nil {
		return in.wholeHistograms(d)
	}
	if d.IsMoney() {
		return in.money(d)
	}
	c, err := in.meter.Int64Counter(d.OpenTelemetry, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	in.check(d, err)
	return func(values ...string) counts.Counter {
		as := []metric.AddOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, n int64) {
			if n > 0 {
				c.Add(ctx, n, as...)
			}
		}
	}
}

// money makes counters of dollars.
func (in *instruments) money(d counts.Definition) counts.Counters {
	c, err := in.meter.Float64Counter(d.OpenTelemetry, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	in.check(d, err)
	return func(values ...string) counts.Counter {
		as := []metric.AddOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, n int64) {
			if n > 0 {
				c.Add(ctx, float64(n)/price.Dollar, as...)
			}
		}
	}
}

// wholeHistograms makes histograms of whole numbers. Each call adds one number to them.
func (in *instruments) wholeHistograms(d counts.Definition) counts.Counters {
	h, err := in.meter.Int64Histogram(d.OpenTelemetry, metric.WithUnit(d.Unit), metric.WithDescription(d.Help), metric.WithExplicitBucketBoundaries(d.Bounds...))
	in.check(d, err)
	return func(values ...string) counts.Counter {
		as := []metric.RecordOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, n int64) {
			if n > 0 {
				h.Record(ctx, n, as...)
			}
		}
	}
}

func (in *instruments) Histograms(d counts.Definition) counts.Histograms {
	h, err := in.meter.Float64Histogram(d.OpenTelemetry, metric.WithUnit(d.Unit), metric.WithDescription(d.Help), metric.WithExplicitBucketBoundaries(d.Bounds...))
	in.check(d, err)
	return func(values ...string) counts.Histogram {
		as := []metric.RecordOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, value float64) { h.Record(ctx, value, as...) }
	}
}

// Gauge makes an instrument that is read at each collection. The values of several observers with
// one provider add up. The callback cannot be an option of the instrument: a provider that already
// has the instrument ignores the second callback.
func (in *instruments) Gauge(d counts.Definition, read func() int) {
	g, err := in.meter.Int64ObservableUpDownCounter(d.OpenTelemetry, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	if err == nil {
		_, err = in.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
			to.ObserveInt64(g, int64(read()))
			return nil
		}, g)
	}
	in.check(d, err)
}

func (in *instruments) check(d counts.Definition, err error) {
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("ratelimit: cannot make the metric %s: %w", d.OpenTelemetry, err))
	}
}

// keys are the attributes for the labels of Prometheus.
var keys = map[string]attribute.Key{
	"outcome": keyOutcome, "limit": keyLimit, "model": keyModel, "project": keyProject,
	"type": keyTokenType, "cause": keyCause, "mode": keyMode, "owner": keyOwner, "percent": keyPercent,
}

// attributesOf returns the values of the labels as attributes. It leaves out empty ones, and the
// project of a histogram.
func attributesOf(d counts.Definition, values []string) attribute.Set {
	var set []attribute.KeyValue
	for i, label := range d.Labels {
		switch {
		case values[i] == "" || label == "project" && d.Bounds != nil:
		case label == "shadow":
			set = append(set, keyShadow.Bool(values[i] == "true"))
		default:
			set = append(set, keys[label].String(values[i]))
		}
	}
	return attribute.NewSet(set...)
}
