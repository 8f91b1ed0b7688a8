package telemetry

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/telemetry/internal/counts"
)

// PrometheusConfig configures a [Prometheus]. The zero value is ready to use.
type PrometheusConfig struct {
	// Registerer is where the metrics are registered. The default is
	// prometheus.DefaultRegisterer.
	Registerer prometheus.Registerer

	// Models is how many models have series of their own: the first ones with a quota that are
	// used. The default is 100. All others count as "other".
	Models int

	// Projects has the ids of the projects that have series of their own. The default is none. A
	// project below one of them counts with it, and all others as "other".
	Projects []string
}

// Prometheus is an observer that counts for Prometheus. The package's documentation lists its
// metrics. One is enough for everything that a program limits with one store. With several stores,
// give each its own, with prometheus.WrapRegistererWith and a label that distinguishes them.
//
// It is a prometheus.Collector so that it can be unregistered; NewPrometheus has registered it.
type Prometheus struct {
	metrics *counts.Metrics
	parts   promParts
}

var (
	_ event.Observer       = (*Prometheus)(nil)
	_ prometheus.Collector = (*Prometheus)(nil)
)

// NewPrometheus returns an observer whose metrics are registered. If such an observer is already
// registered, the error wraps a prometheus.AlreadyRegisteredError, which holds that one.
func NewPrometheus(cfg PrometheusConfig) (*Prometheus, error) {
	p := &Prometheus{}
	var err error
	if p.metrics, err = counts.New(&p.parts, cfg.Models, cfg.Projects); err != nil {
		return nil, err
	}
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.DefaultRegisterer
	}
	err = cfg.Registerer.Register(p)
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil, fmt.Errorf("ratelimit: an observer for Prometheus is registered there already: use that one, or give each a label with prometheus.WrapRegistererWith: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("ratelimit: cannot register the metrics: %w", err)
	}
	return p, nil
}

// AddProjects gives more projects series of their own, like [PrometheusConfig].Projects. What they
// have used so far stays with "other".
func (p *Prometheus) AddProjects(ids ...string) error { return p.metrics.List(ids) }

// Observe counts an event.
func (p *Prometheus) Observe(ctx context.Context, e event.Event) { p.metrics.Observe(ctx, &e) }

// Describe sends the descriptions of the metrics.
func (p *Prometheus) Describe(to chan<- *prometheus.Desc) {
	for _, part := range p.parts {
		part.Describe(to)
	}
}

// Collect sends the metrics.
func (p *Prometheus) Collect(to chan<- prometheus.Metric) {
	for _, part := range p.parts {
		part.Collect(to)
	}
}

// namespace is the prefix of the names of all metrics.
const namespace = "ratelimit"

// promParts is the exporter for Prometheus, and the metrics that it has made.
type promParts []prometheus.Collector

func (parts *promParts) Counters(d counts.Definition) counts.Counters {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: d.Prometheus, Help: d.Help}, d.Labels)
	*parts = append(*parts, vec)
	scale := 1.0
	if d.IsMoney() {
		scale = price.Dollar
	}
	return func(values ...string) counts.Counter {
		c := vec.WithLabelValues(values...)
		return func(_ context.Context, n int64) {
			if n > 0 { // a negative amount would panic
				c.Add(float64(n) / scale)
			}
		}
	}
}

func (parts *promParts) Histograms(d counts.Definition) counts.Histograms {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: d.Prometheus, Help: d.Help, Buckets: d.Bounds}, d.Labels)
	*parts = append(*parts, vec)
	return func(values ...string) counts.Histogram {
		h := vec.WithLabelValues(values...)
		return func(_ context.Context, value float64) { h.Observe(value) }
	}
}

func (parts *promParts) Gauge(d counts.Definition, read func() int) {
	options := prometheus.GaugeOpts{Namespace: namespace, Name: d.Prometheus, Help: d.Help}
	*parts = append(*parts, prometheus.NewGaugeFunc(options, func() float64 { return float64(read()) }))
}
