package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// instruments makes the instruments of a meter, and collects errors.
type instruments struct {
	meter metric.Meter
	err   error
}

func (in *instruments) counter(name, unit, about string) metric.Int64Counter {
	c, err := in.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	in.check(name, err)
	return c
}

func (in *instruments) histogram(name, unit, about string, bounds []float64) metric.Float64Histogram {
	h, err := in.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	in.check(name, err)
	return h
}

// wholeHistogram makes a histogram of whole numbers.
func (in *instruments) wholeHistogram(name, unit, about string, bounds []float64) metric.Int64Histogram {
	h, err := in.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	in.check(name, err)
	return h
}

// gauge makes an instrument that is read at each collection. The values of several observers with
// one provider add up. The callback cannot be an option of the instrument: a provider that already
// has the instrument ignores the second callback.
func (in *instruments) gauge(name, unit, about string, read func() int) {
	g, err := in.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	if err == nil {
		_, err = in.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
			to.ObserveInt64(g, int64(read()))
			return nil
		}, g)
	}
	in.check(name, err)
}

func (in *instruments) check(name string, err error) {
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("ratelimit: cannot make the metric %s: %w", name, err))
	}
}
