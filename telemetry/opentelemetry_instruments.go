package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// instruments makes those of a meter, and keeps what went wrong.
type instruments struct {
	meter metric.Meter
	err   error
}

func (in *instruments) counter(name, unit, about string) metric.Int64Counter {
	made, err := in.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	in.check(name, err)
	return made
}

func (in *instruments) histogram(name, unit, about string, bounds []float64) metric.Float64Histogram {
	made, err := in.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	in.check(name, err)
	return made
}

// wholeHistogram makes one of whole numbers.
func (in *instruments) wholeHistogram(name, unit, about string, bounds []float64) metric.Int64Histogram {
	made, err := in.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
	in.check(name, err)
	return made
}

// level makes one that is read at each collection. Those of several observers with
// one provider add up. A callback that is an option of the instrument would not do:
// a provider that has it already drops the second one.
func (in *instruments) level(name, unit, about string, read func() int) {
	made, err := in.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
	if err == nil {
		_, err = in.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
			to.ObserveInt64(made, int64(read()))
			return nil
		}, made)
	}
	in.check(name, err)
}

func (in *instruments) check(name string, err error) {
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("ratelimit: cannot make the metric %s: %w", name, err))
	}
}
