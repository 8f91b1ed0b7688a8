package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments is the exporter for OpenTelemetry. It collects errors.
type instruments struct {
	meter metric.Meter
	err   error
}

func (in *instruments) counters(d definition) counters {
	if d.bounds != nil {
		return in.wholeHistograms(d)
	}
	c, err := in.meter.Int64Counter(d.openTelemetry, metric.WithUnit(d.unit), metric.WithDescription(d.help))
	in.check(d, err)
	return func(values ...string) counter {
		as := []metric.AddOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, n int64) {
			if n > 0 {
				c.Add(ctx, n, as...)
			}
		}
	}
}

// wholeHistograms makes histograms of whole numbers. Each call adds one number to them.
func (in *instruments) wholeHistograms(d definition) counters {
	h, err := in.meter.Int64Histogram(d.openTelemetry, metric.WithUnit(d.unit), metric.WithDescription(d.help), metric.WithExplicitBucketBoundaries(d.bounds...))
	in.check(d, err)
	return func(values ...string) counter {
		as := []metric.RecordOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, n int64) {
			if n > 0 {
				h.Record(ctx, n, as...)
			}
		}
	}
}

func (in *instruments) histograms(d definition) histograms {
	h, err := in.meter.Float64Histogram(d.openTelemetry, metric.WithUnit(d.unit), metric.WithDescription(d.help), metric.WithExplicitBucketBoundaries(d.bounds...))
	in.check(d, err)
	return func(values ...string) histogram {
		as := []metric.RecordOption{metric.WithAttributeSet(attributesOf(d, values))}
		return func(ctx context.Context, value float64) { h.Record(ctx, value, as...) }
	}
}

// gauge makes an instrument that is read at each collection. The values of several observers with
// one provider add up. The callback cannot be an option of the instrument: a provider that already
// has the instrument ignores the second callback.
func (in *instruments) gauge(d definition, read func() int) {
	g, err := in.meter.Int64ObservableUpDownCounter(d.openTelemetry, metric.WithUnit(d.unit), metric.WithDescription(d.help))
	if err == nil {
		_, err = in.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
			to.ObserveInt64(g, int64(read()))
			return nil
		}, g)
	}
	in.check(d, err)
}

func (in *instruments) check(d definition, err error) {
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("ratelimit: cannot make the metric %s: %w", d.openTelemetry, err))
	}
}

// keys are the attributes for the labels of Prometheus.
var keys = map[string]attribute.Key{
	"outcome": keyOutcome, "limit": keyLimit, "model": keyModel, "project": keyProject,
	"type": keyTokenType, "cause": keyCause, "mode": keyMode, "owner": keyOwner, "percent": keyPercent,
}

// attributesOf returns the values of the labels as attributes. It leaves out empty ones, and the
// project of a histogram.
func attributesOf(d definition, values []string) attribute.Set {
	var set []attribute.KeyValue
	for i, label := range d.labels {
		switch {
		case values[i] == "" || label == "project" && d.bounds != nil:
		case label == "shadow":
			set = append(set, keyShadow.Bool(values[i] == "true"))
		default:
			set = append(set, keys[label].String(values[i]))
		}
	}
	return attribute.NewSet(set...)
}
