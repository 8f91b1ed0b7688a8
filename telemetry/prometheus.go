package telemetry

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// PrometheusConfig configures a [Prometheus]. The zero value is ready to use.
type PrometheusConfig struct {
	// Registerer is where the metrics are registered. The default is
	// prometheus.DefaultRegisterer.
	Registerer prometheus.Registerer

	// Models is how many models have series of their own: the first ones with a quota that are
	// used. The default is 100. All others count as "other".
	Models int

	// Projects has the ids of the projects that have series of their own. The default is none. All
	// others count as "other".
	Projects []string
}

// Prometheus is an observer that counts for Prometheus. The package's documentation lists its
// metrics. One is enough for everything that a program limits with one store. With several stores,
// give each its own, with prometheus.WrapRegistererWith and a label that tells them apart.
//
// It is a prometheus.Collector so that it can be unregistered; NewPrometheus has registered it.
type Prometheus struct {
	series   *series[promSeries]
	store    *promStore
	provider *promProvider
	parts    []prometheus.Collector

	decisions, used, estimated, compared, cancelled *prometheus.CounterVec
	waits, errors                                   *prometheus.HistogramVec
}

var (
	_ ratelimit.Observer   = (*Prometheus)(nil)
	_ prometheus.Collector = (*Prometheus)(nil)
)

// Upper bounds of the buckets of histograms.
var (
	waitBounds  = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}
	errorBounds = []float64{-0.9, -0.75, -0.5, -0.25, -0.1, -0.05, 0, 0.05, 0.1, 0.25, 0.5, 1, 2, 5}
)

// NewPrometheus returns an observer whose metrics are registered. If such an observer is already
// registered, the error wraps a prometheus.AlreadyRegisteredError, which holds that one.
func NewPrometheus(cfg PrometheusConfig) (*Prometheus, error) {
	p := &Prometheus{
		store:    newPromStore(),
		provider: newPromProvider(),
		decisions: counters("decisions_total", "Decisions on calls, by what became of them and by the limit that denied them.",
			"outcome", "limit", "model", "project", "shadow"),
		used:      counters("used_tokens_total", "Tokens that calls have used.", "model", "project", "type"),
		estimated: counters("estimated_tokens_total", "Tokens that were reserved for calls whose usage is known.", "model", "project"),
		compared:  counters("compared_tokens_total", "Tokens that the calls in ratelimit_estimated_tokens_total have used.", "model", "project"),
		cancelled: counters("cancelled_total", "Calls that were admitted and then cancelled, which gave everything back.", "model", "project"),
		waits:     histograms("wait_seconds", "How long calls have waited in line until they were admitted, or gave up.", waitBounds, "outcome", "model"),
		errors:    histograms("estimate_error_ratio", "Relative error of the estimates of calls: used by estimated, less one.", errorBounds, "model"),
	}
	var err error
	p.series, err = newSeries(cfg.Models, cfg.Projects, func(model, project string) *promSeries {
		return &promSeries{model: model, project: project}
	})
	if err != nil {
		return nil, err
	}
	p.parts = append(p.store.parts(), p.provider.throttled, p.provider.lowered, p.provider.learned, p.decisions, p.used, p.estimated, p.compared, p.cancelled, p.waits, p.errors)
	if err := p.register(cfg.Registerer); err != nil {
		return nil, err
	}
	return p, nil
}

// AddProjects gives more projects series of their own, like [PrometheusConfig].Projects. What they
// have used so far stays with "other".
func (p *Prometheus) AddProjects(ids ...string) error { return p.series.list(ids) }

func (p *Prometheus) register(to prometheus.Registerer) error {
	if to == nil {
		to = prometheus.DefaultRegisterer
	}
	err := to.Register(p)
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return fmt.Errorf("ratelimit: an observer for Prometheus is registered there already: use that one, or give each a label with prometheus.WrapRegistererWith: %w", err)
	}
	if err != nil {
		return fmt.Errorf("ratelimit: cannot register the metrics: %w", err)
	}
	return nil
}

// namespace is the prefix of the names of all metrics.
const namespace = "ratelimit"

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: bounds}, labels)
}

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

// Observe counts an event.
func (p *Prometheus) Observe(_ context.Context, e ratelimit.Event) {
	switch e.Kind {
	case ratelimit.EventStore:
		p.store.observe(e.Store)
	case ratelimit.EventSettled:
		p.settle(&e)
	case ratelimit.EventCancelled:
		p.cancel(&e)
	case ratelimit.EventPaused, ratelimit.EventLowered, ratelimit.EventLearned:
		p.provider.observe(p.series.of(&e), &e)
	default:
		p.decide(&e)
	}
}

func (p *Prometheus) decide(e *ratelimit.Event) {
	result, ok := outcomeOf(e)
	if !ok {
		return
	}
	s := p.series.of(e)
	v := verdictOf(e, result)
	s.decisions.at(v).get(func() prometheus.Counter {
		return p.decisions.WithLabelValues(outcomeNames[v.outcome], limitNames[v.limit], s.model, s.project, shadowNames[v.shadow])
	}).Inc()
	if waited(e, result) {
		s.waits[result].get(func() prometheus.Observer {
			return p.waits.WithLabelValues(outcomeNames[result], s.model)
		}).Observe(e.Waited.Seconds())
	}
}

// settle counts what a call has used, as far as it is known, and compares it with the estimate if
// all of it is known.
func (p *Prometheus) settle(e *ratelimit.Event) {
	input, output := int64(e.Used.Input), int64(e.Used.Output)
	if input < 0 && output < 0 {
		return
	}
	s := p.series.of(e)
	t := s.tokens.get(func() tokens {
		return tokens{
			input:  p.used.WithLabelValues(s.model, s.project, "input"),
			output: p.used.WithLabelValues(s.model, s.project, "output"),
		}
	})
	add(t.input, input)
	add(t.output, output)
	if c, ok := comparisonOf(e); ok {
		p.compare(s, c)
	}
}

func (p *Prometheus) compare(s *promSeries, c comparison) {
	t := s.estimates.get(func() estimates {
		return estimates{
			estimated: p.estimated.WithLabelValues(s.model, s.project),
			compared:  p.compared.WithLabelValues(s.model, s.project),
			errors:    p.errors.WithLabelValues(s.model),
		}
	})
	add(t.estimated, c.estimated)
	add(t.compared, c.used)
	t.errors.Observe(c.error())
}

func (p *Prometheus) cancel(e *ratelimit.Event) {
	s := p.series.of(e)
	s.cancelled.get(func() prometheus.Counter { return p.cancelled.WithLabelValues(s.model, s.project) }).Inc()
}

// promSeries has the metrics of one model and project.
type promSeries struct {
	model, project string

	decisions perVerdict[lazy[prometheus.Counter]]
	waits     [outcomes]lazy[prometheus.Observer]
	tokens    lazy[tokens]
	estimates lazy[estimates]
	cancelled lazy[prometheus.Counter]

	throttled        [causes]lazy[prometheus.Counter]
	lowered, learned [limits]lazy[prometheus.Counter]
}

// tokens counts what calls have used.
type tokens struct{ input, output prometheus.Counter }

// estimates compares what was reserved for calls with what they have used.
type estimates struct {
	estimated, compared prometheus.Counter
	errors              prometheus.Observer
}

// add adds to a counter, which cannot decrease.
func add(to prometheus.Counter, n int64) {
	if n > 0 {
		to.Add(float64(n))
	}
}
