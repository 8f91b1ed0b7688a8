package gateway

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/telemetry"
)

// metrics is the gateway's metrics for Prometheus: those of requests, those of the limiter by
// package telemetry, and those of the process.
type metrics struct {
	registry *prometheus.Registry
	limiter  *telemetry.Prometheus

	requests, retries *prometheus.CounterVec
	took, upstream    *prometheus.HistogramVec
	reloads, webhooks *prometheus.CounterVec
	shadows           *prometheus.CounterVec

	projects func() []string // the names that may be labels, of which the first maxLabelled are
	mu       sync.Mutex      // guards labelled
	labelled map[string]bool // the projects with a label of their own
}

// noProvider is the label of requests to a provider that is not in the configuration.
const noProvider = "none"

// secondsBounds are the upper bounds of histogram buckets, from a cached answer to a long
// stream.
var secondsBounds = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// maxLabelled is how many projects have a label of their own.
const maxLabelled = 1000

// namedProjects returns the projects that an operator has named, and not a client: those in
// the configuration, and those with a limit or a key.
func (g *Gateway) namedProjects() []string {
	named := slices.Sorted(maps.Keys(g.Config().Projects))
	named = append(named, slices.Sorted(maps.Keys(g.limits.Projects.Limits()))...)
	for _, k := range g.keys.List() {
		named = append(named, k.Project)
	}
	return named
}

// newMetrics returns the metrics of a gateway. active returns how many requests are in
// progress.
func newMetrics(active func() int) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		labelled: map[string]bool{},
		projects: func() []string { return nil }, // until follow
		requests: newCounters("requests_total", "Requests of clients, by what became of them and by the class of their status.", "provider", "outcome", "status"),
		shadows:  newCounters("shadow_total", "Requests that have passed, and that a limit in shadow would have denied.", "provider", "limit"),
		retries:  newCounters("retries_total", "How often a call was sent again.", "provider"),
		took:     newSeconds("request_seconds", "How long requests have taken, from their first byte to the last of the response.", "provider"),
		upstream: newSeconds("upstream_seconds", "How long providers have taken until their response began.", "provider"),
		reloads:  newCounters("reloads_total", "How often the configuration was reloaded.", "result"),
	}
	m.webhooks = newCounters("webhooks_total", "Messages about budgets, by whether the webhook has accepted them.", "result")
	for _, result := range []string{"done", "failed"} {
		m.reloads.WithLabelValues(result)
		m.webhooks.WithLabelValues(result)
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "active", Help: "Requests that are being served.",
	}, func() float64 { return float64(active()) })
	m.registry.MustRegister(m.requests, m.retries, m.shadows, m.took, m.upstream, m.reloads, m.webhooks, running,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	limiter, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{Registerer: m.registry})
	if err != nil {
		panic(err) // only a second registration fails, and the registry is new
	}
	m.limiter = limiter
	return m
}

// The beginning of the metrics' names.
const (
	namespace = "ratelimit"
	subsystem = "gateway"
)

func newCounters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
}

func newSeconds(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: secondsBounds,
	}, labels)
}

// follow adds the metrics of each model's quota and of the projects' budgets, and labels projects. It may be called once.
func (m *metrics) follow(rl *ratelimit.RateLimiter, budgets telemetry.Budgets, projects func() []string) {
	m.projects = projects
	m.labelProjects()
	m.registry.MustRegister(telemetry.NewModelCollector(rl), telemetry.NewShareCollector(rl, m.limiter), telemetry.NewBudgetCollector(budgets, m.limiter))
}

// labelProjects gives new projects labels of their own, up to maxLabelled.
func (m *metrics) labelProjects() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var more []string
	for _, id := range m.projects() {
		if !m.labelled[id] && len(m.labelled) < maxLabelled && id != "other" { // the label of all projects without one
			m.labelled[id] = true
			more = append(more, id)
		}
	}
	if err := m.limiter.AddProjects(more...); err != nil {
		panic(err) // every project's id is a valid label
	}
}

// Gather implements [prometheus.Gatherer]. It labels new projects first, because other gateways that
// share the state add projects, too.
func (m *metrics) Gather() ([]*dto.MetricFamily, error) {
	m.labelProjects()
	return m.registry.Gather()
}

// reloaded counts a reload of the configuration, or one that failed.
func (m *metrics) reloaded(err error) {
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// observe counts a request.
func (m *metrics) observe(rec *Record) {
	provider := cmp.Or(rec.Provider, noProvider)
	m.requests.WithLabelValues(provider, string(rec.Outcome), statusClass(rec.Status)).Inc()
	m.retries.WithLabelValues(provider).Add(float64(rec.Retries))
	if rec.ShadowLimit != "" {
		m.shadows.WithLabelValues(provider, rec.ShadowLimit).Inc()
	}
	m.took.WithLabelValues(provider).Observe(rec.Took.Seconds())
	if upstream := m.upstream.WithLabelValues(provider); rec.Upstream > 0 {
		upstream.Observe(rec.Upstream.Seconds())
	}
}

var statusClasses = [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

// statusClass returns the label of a status. 429 has a label of its own, because limits answer
// with it.
func statusClass(status int) string {
	switch class := status / 100; {
	case status == 429:
		return "429"
	case class >= 2 && class <= 5:
		return statusClasses[class]
	}
	return "other"
}
