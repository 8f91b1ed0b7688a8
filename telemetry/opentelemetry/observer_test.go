package opentelemetry

import (
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

// The error of a provider that refuses a metric has the metric's name.
func TestRefused(t *testing.T) {
	for refused, name := range map[string]string{
		"ratelimit.decisions":       "ratelimit.decisions",
		"ratelimit.estimate.error":  "ratelimit.estimate.error",
		"gen_ai.client.token.usage": "gen_ai.client.token.usage",
		"ratelimit.store.losses":    "ratelimit.store.losses",
		"ratelimit.store.lost":      "ratelimit.store.lost",
		aCallback:                   "ratelimit.store.lost",
	} {
		o, err := New(Config{MeterProvider: refusing{name: refused}})
		if o != nil || !errors.Is(err, errRefused) || !strings.HasPrefix(err.Error(), "ratelimit: cannot make the metric "+name+": ") {
			t.Errorf("%s: %v, %v; want an error that names %s", refused, o, err, name)
		}
	}
}

const aCallback = "a callback"

var errRefused = errors.New("not this one")

// refusing is a provider that refuses one metric.
type refusing struct {
	metricnoop.MeterProvider
	name string
}

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{name: r.name}
}

type refusingMeter struct {
	metricnoop.Meter
	name string
}

func (m refusingMeter) check(name string) error {
	if name == m.name {
		return errRefused
	}
	return nil
}

func (m refusingMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return metricnoop.Int64Counter{}, m.check(name)
}

func (m refusingMeter) Int64Histogram(name string, _ ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	return metricnoop.Int64Histogram{}, m.check(name)
}

func (m refusingMeter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return metricnoop.Float64Histogram{}, m.check(name)
}

func (m refusingMeter) Int64ObservableUpDownCounter(name string, _ ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	return metricnoop.Int64ObservableUpDownCounter{}, m.check(name)
}

func (m refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return metricnoop.Registration{}, m.check(aCallback)
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"negative models": {Models: -1},
		"empty project":   {Projects: []string{""}},
	} {
		if o, err := New(cfg); o != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
			t.Errorf("%s: %v, %v; want an error", name, o, err)
		}
	}
}
