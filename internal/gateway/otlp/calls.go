package otlp

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Call is one call that was sent to a provider, as the conventions for generative AI describe it.
type Call struct {
	Operation string // such as chat
	Provider  string
	Model     string // as the client has named it
	Error     string // what went wrong; empty: nothing
	Took      time.Duration

	Input, Output int // tokens; 0: not known
}

// maxModels is how many models have series of their own: clients can invent names. Calls of others have no model.
const maxModels = 1000

// calls is the metrics of the conventions, which a collector gets beside those for Prometheus.
type calls struct {
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	tokens   *prometheus.HistogramVec

	mu     sync.Mutex
	models map[string]bool // that have series of their own
}

func newCalls() *calls {
	c := &calls{registry: prometheus.NewRegistry(), models: map[string]bool{}}
	c.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai.client.operation.duration", Help: "How long calls to models have taken, without what they have waited for limits.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
	}, []string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"})
	c.tokens = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai.client.token.usage", Help: "How many tokens calls to models have used.",
		Buckets: prometheus.ExponentialBuckets(1, 4, 14),
	}, []string{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"})
	c.registry.MustRegister(c.took, c.tokens)
	return c
}

// Observe counts a call, if metrics are sent.
func (e *Exporter) Observe(c Call) {
	if e.calls == nil {
		return
	}
	model := e.calls.labelOf(c.Model)
	e.calls.took.WithLabelValues(c.Operation, c.Provider, model, c.Error).Observe(c.Took.Seconds())
	if c.Input > 0 {
		e.calls.tokens.WithLabelValues(c.Operation, c.Provider, model, "input").Observe(float64(c.Input))
	}
	if c.Output > 0 {
		e.calls.tokens.WithLabelValues(c.Operation, c.Provider, model, "output").Observe(float64(c.Output))
	}
}

// labelOf returns the name of a model if it has series of its own, and "" otherwise.
func (c *calls) labelOf(model string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.models[model] && len(c.models) >= maxModels {
		return ""
	}
	c.models[model] = true
	return model
}

// units are the units of the metrics of calls.
var units = map[string]string{"gen_ai.client.operation.duration": "s", "gen_ai.client.token.usage": "{token}"}

// gather returns all metrics that a collector gets.
func (e *Exporter) gather() ([]*dto.MetricFamily, error) {
	return prometheus.Gatherers{e.cfg.Gatherer, e.calls.registry}.Gather()
}
