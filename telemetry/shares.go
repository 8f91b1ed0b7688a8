package telemetry

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/telemetry/internal/counts"
)

// Sharing is a limiter of models whose quotas projects share. A *ratelimit.RateLimiter is one.
type Sharing interface {
	// AllShares returns where the projects stand that use each model.
	AllShares() iter.Seq2[string, []event.ProjectShare]
}

// NewShareCollector returns a collector that reports at each scrape, for each model with a quota
// and each project that uses it, how many of the project's calls wait, ratelimit_project_waiting;
// and for each limit of the quota the project's share of it, ratelimit_project_share, what it has
// used, ratelimit_project_share_used, what of its part by weight is lent to others,
// ratelimit_project_share_lent, and what it has used beyond its part,
// ratelimit_project_share_borrowed. All are of the last minute, or of the day.
//
// Projects have series of their own if p gives them any. The sums of all others are the project
// "other".
func NewShareCollector(models Sharing, p *Prometheus) prometheus.Collector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_project_"+name, help, append([]string{"model", "project"}, labels...), nil)
	}
	return &shareCollector{
		models:   models,
		listing:  p.metrics.Listing,
		waiting:  gauge("waiting", "Calls of a project that wait for a model."),
		share:    gauge("share", "How much of a model's quota a project may use in a minute or in the day.", "dimension"),
		used:     gauge("share_used", "How much of a model's quota a project has used in the last minute or in the day.", "dimension"),
		lent:     gauge("share_lent", "How much of a project's part by weight others may use.", "dimension"),
		borrowed: gauge("share_borrowed", "How much a project has used beyond its part by weight.", "dimension"),
	}
}

type shareCollector struct {
	models                               Sharing
	listing                              func() *counts.Listing // the projects that have series of their own
	waiting, share, used, lent, borrowed *prometheus.Desc
}

// Describe sends the descriptions of the metrics.
func (c *shareCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.waiting, c.share, c.used, c.lent, c.borrowed} {
		to <- d
	}
}

// Collect sends the metrics.
func (c *shareCollector) Collect(to chan<- prometheus.Metric) {
	for model, projects := range c.models.AllShares() {
		for _, p := range c.listing().Sum(projects) {
			to <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(p.Waiting), model, p.Project)
			for _, l := range p.Limits {
				for d, n := range map[*prometheus.Desc]int{c.share: l.Share, c.used: l.Used, c.lent: l.Lent, c.borrowed: l.Borrowed} {
					to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), model, p.Project, l.Name)
				}
			}
		}
	}
}
