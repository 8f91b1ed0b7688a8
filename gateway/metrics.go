package gateway

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/telemetry"
)

// metrics is what the gateway counts for Prometheus: its requests, beside what
// package telemetry counts of the limiter, and what Go and the system tell of the
// process.
type metrics struct {
	registry *prometheus.Registry
	limiter  *telemetry.Prometheus

	requests, retries *prometheus.CounterVec
	took, upstream    *prometheus.HistogramVec
	reloads           *prometheus.CounterVec

	providers func() []string // who may be a label
	projects  func() []string // likewise, of whom the first that come are
	mu        sync.Mutex      // of who adds to series, or to apart
	series    atomic.Pointer[map[labels]*series]
	apart     map[string]bool // the projects that have series of their own
}

// labels are those of a request.
type labels struct {
	provider string
	outcome  Outcome
	status   string
}

// series is where requests of the same labels are counted.
type series struct {
	requests, retries prometheus.Counter
	took, upstream    prometheus.Observer
}

// noProvider is the label of requests to none, or to one that is not in the
// configuration.
const noProvider = "none"

// secondsBounds are the upper bounds of buckets: from an answer out of a cache to a
// long stream.
var secondsBounds = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// mostApart is how many projects have series of their own.
const mostApart = 1000

// named returns the projects that somebody who may change the gateway has named, and no
// client has: those of the configuration, and those that have a limit or a key.
func (g *Gateway) named() []string {
	named := slices.Sorted(maps.Keys(g.Config().Projects))
	named = append(named, slices.Sorted(maps.Keys(g.limits.Projects.Limits()))...)
	for _, k := range g.keys.List() {
		named = append(named, k.Project)
	}
	return named
}

// newMetrics returns the metrics of a gateway that has these providers, and so many
// requests under way.
func newMetrics(providers func() []string, active func() int) *metrics {
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		providers: providers,
		apart:     map[string]bool{},
		requests:  newCounters("requests_total", "Requests of clients, by what became of them and by the class of their status.", "provider", "outcome", "status"),
		retries:   newCounters("retries_total", "How often a call was sent again.", "provider"),
		took:      newSeconds("request_seconds", "How long requests have taken, from their first byte to the last of the response.", "provider"),
		upstream:  newSeconds("upstream_seconds", "How long providers have taken until their response began.", "provider"),
		reloads:   newCounters("reloads_total", "How often the configuration was read anew.", "result"),
	}
	m.series.Store(&map[labels]*series{})
	for _, result := range []string{"done", "failed"} {
		m.reloads.WithLabelValues(result)
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "active", Help: "Requests that are being served.",
	}, func() float64 { return float64(active()) })
	m.registry.MustRegister(m.requests, m.retries, m.took, m.upstream, m.reloads, running,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	limiter, err := telemetry.NewPrometheus(telemetry.PrometheusConfig{Registerer: m.registry})
	if err != nil {
		panic(err) // only what is registered already could fail, and the registry is new
	}
	m.limiter = limiter
	return m
}

// What the names of the metrics begin with.
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

// observer returns who counts what the limiter does.
func (m *metrics) observer() ratelimit.Observer { return m.limiter }

// follow counts how much is used of each model's quota, and tells projects apart. One
// limiter may be followed.
func (m *metrics) follow(rl *ratelimit.RateLimiter, projects func() []string) {
	m.projects = projects
	m.tellApart()
	m.registry.MustRegister(telemetry.NewModelCollector(rl), newcomers{m})
}

// tellApart gives projects that are new series of their own, while there is room.
func (m *metrics) tellApart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var more []string
	for _, id := range m.projects() {
		if !m.apart[id] && len(m.apart) < mostApart && id != "other" { // which stands for all others
			m.apart[id] = true
			more = append(more, id)
		}
	}
	if err := m.limiter.AddProjects(more...); err != nil {
		panic(err) // an id of a project is fit for a label
	}
}

// newcomers is a collector of nothing, which has each scrape look for new projects:
// other gateways make some, too.
type newcomers struct{ *metrics }

func (newcomers) Describe(chan<- *prometheus.Desc)   {}
func (n newcomers) Collect(chan<- prometheus.Metric) { n.tellApart() }

func (m *metrics) gatherer() prometheus.Gatherer { return m.registry }

// reloaded counts that the configuration was read anew, or could not be.
func (m *metrics) reloaded(err error) {
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// observe counts a request.
func (m *metrics) observe(rec *Record) {
	s := m.seriesOf(labels{rec.Provider, rec.Outcome, statusClass(rec.Status)})
	s.requests.Inc()
	s.took.Observe(rec.Took.Seconds())
	if rec.Upstream > 0 {
		s.upstream.Observe(rec.Upstream.Seconds())
	}
	if rec.Retries > 0 {
		s.retries.Add(float64(rec.Retries))
	}
}

// statusClass returns the label of a status: 429 has its own, since a limit said so.
func statusClass(status int) string {
	switch {
	case status == 429:
		return "429"
	case status >= 200 && status < 300:
		return "2xx"
	case status >= 300 && status < 400:
		return "3xx"
	case status >= 400 && status < 500:
		return "4xx"
	case status >= 500 && status < 600:
		return "5xx"
	default:
		return "other"
	}
}

// seriesOf returns where requests of these labels are counted.
func (m *metrics) seriesOf(of labels) *series {
	if s := (*m.series.Load())[of]; s != nil {
		return s
	}
	if !slices.Contains(m.providers(), of.provider) {
		of.provider = noProvider
	}
	return m.makeSeries(of)
}

func (m *metrics) makeSeries(of labels) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.series.Load()
	if s := known[of]; s != nil {
		return s
	}
	s := &series{
		requests: m.requests.WithLabelValues(of.provider, string(of.outcome), of.status),
		retries:  m.retries.WithLabelValues(of.provider),
		took:     m.took.WithLabelValues(of.provider),
		upstream: m.upstream.WithLabelValues(of.provider),
	}
	more := maps.Clone(known)
	more[of] = s
	m.series.Store(&more)
	return s
}
