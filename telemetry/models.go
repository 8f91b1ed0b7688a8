package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// NewModelCollector returns a collector that reports at each scrape, for each model with a quota,
// how much of the quota is used, ratelimit_model_used, how much it allows, ratelimit_model_limit,
// and for how much longer its provider takes no calls, ratelimit_model_paused_seconds. Dimensions
// without a limit are left out, and so is what is used while the store cannot be asked.
//
// Register it beside [Prometheus]. Limiters that share a store all report the same.
func NewModelCollector(rl *ratelimit.RateLimiter) prometheus.Collector {
	labels := []string{"model", "dimension"}
	return &modelCollector{
		limiter: rl,
		used:    prometheus.NewDesc(namespace+"_model_used", "How much is used of a model's quota now.", labels, nil),
		limit:   prometheus.NewDesc(namespace+"_model_limit", "How much a model's quota allows.", labels, nil),
		paused:  prometheus.NewDesc(namespace+"_model_paused_seconds", "How much longer the provider of a model takes no calls.", labels[:1], nil),
	}
}

type modelCollector struct {
	limiter             *ratelimit.RateLimiter
	used, limit, paused *prometheus.Desc
}

// Describe sends the descriptions of the metrics.
func (c *modelCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.used
	to <- c.limit
	to <- c.paused
}

// Collect sends the metrics. It asks only for models with a quota: there may be any number of
// others.
func (c *modelCollector) Collect(to chan<- prometheus.Metric) {
	for model, quota := range c.limiter.Quotas() {
		now := c.limiter.Decide(model, 0)
		to <- prometheus.MustNewConstMetric(c.paused, prometheus.GaugeValue, c.limiter.Paused(model).Seconds(), model)
		for _, d := range dimensionsOf(quota, now.Stats) {
			if d.limit == 0 {
				continue
			}
			to <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, float64(d.limit), model, d.name)
			if now.Code != ratelimit.DecisionStoreLost {
				to <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(d.used), model, d.name)
			}
		}
	}
}

// dimension is one of the ways in which a quota limits a model, with the name that events have for
// it.
type dimension struct {
	name        string
	used, limit int
}

func dimensionsOf(q ratelimit.ModelQuota, s ratelimit.ModelStats) []dimension {
	return []dimension{
		{"rpm", s.RPM, q.MaxRPM},
		{"tpm", s.TPM, q.MaxTPM},
		{"rpd", s.RPD, q.MaxRPD},
		{"input_tpm", s.InputTPM, q.MaxInputTPM},
		{"output_tpm", s.OutputTPM, q.MaxOutputTPM},
		{"tpd", s.TPD, q.MaxTPD},
		{"concurrent", s.Concurrent, q.MaxConcurrent},
	}
}
