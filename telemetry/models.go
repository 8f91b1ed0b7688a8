package telemetry

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/event"
)

// Models is a limiter of models. A *ratelimit.RateLimiter is one.
type Models interface {
	// ModelUsage returns what is used of each model that has a quota.
	ModelUsage() iter.Seq[event.ModelUsage]
}

// NewModelCollector returns a collector that reports at each scrape, for each model with a quota,
// how much of the quota is used, ratelimit_model_used, how much it allows, ratelimit_model_limit,
// and for how much longer its provider takes no calls, ratelimit_model_paused_seconds. Dimensions
// without a limit are left out. While the store cannot be asked, so is ratelimit_model_used.
//
// Register it beside [Prometheus]. Limiters that share a store all report the same.
func NewModelCollector(models Models) prometheus.Collector {
	labels := []string{"model", "dimension"}
	return &modelCollector{
		models: models,
		used:   prometheus.NewDesc(namespace+"_model_used", "How much is used of a model's quota now.", labels, nil),
		limit:  prometheus.NewDesc(namespace+"_model_limit", "How much a model's quota allows.", labels, nil),
		paused: prometheus.NewDesc(namespace+"_model_paused_seconds", "How much longer the provider of a model takes no calls.", labels[:1], nil),
	}
}

type modelCollector struct {
	models              Models
	used, limit, paused *prometheus.Desc
}

// Describe sends the descriptions of the metrics.
func (c *modelCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.used
	to <- c.limit
	to <- c.paused
}

// Collect sends the metrics.
func (c *modelCollector) Collect(to chan<- prometheus.Metric) {
	for m := range c.models.ModelUsage() {
		to <- prometheus.MustNewConstMetric(c.paused, prometheus.GaugeValue, m.Paused.Seconds(), m.Model)
		for _, l := range m.Limits {
			to <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(l.Max), m.Model, l.Name)
			if !m.Lost {
				to <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(l.Used), m.Model, l.Name)
			}
		}
	}
}
