package telemetry

import (
	"context"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/telemetry/internal/counts"
)

// Budgets is a limiter of projects that have budgets. A *project.Limiter is one.
type Budgets interface {
	// BudgetUsage returns what is used of the budgets of each of these projects that has one.
	BudgetUsage(ctx context.Context, projects []string) iter.Seq[event.ProjectUsage]
}

// budgetTimeout is how long a scrape asks for budgets.
const budgetTimeout = 5 * time.Second

// NewBudgetCollector returns a collector that reports at each scrape, for each budget of the projects to which p gives
// series of their own, how much of it is used, ratelimit_budget_used, how much of that calls under way have only
// reserved, ratelimit_budget_reserved, and how much it allows, ratelimit_budget_limit: in requests, in tokens or in
// dollars. A budget is a limit of an hour or longer, or in total. While the store cannot be asked, only
// ratelimit_budget_limit is reported.
func NewBudgetCollector(projects Budgets, p *Prometheus) prometheus.Collector {
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_budget_"+name, help, []string{"project", "dimension"}, nil)
	}
	return &budgetCollector{
		projects: projects,
		listing:  p.metrics.Listing,
		used:     gauge("used", "How much of a project's budget is used, with what calls under way have reserved: requests, tokens or dollars."),
		reserved: gauge("reserved", "How much of a project's budget calls under way of this process have reserved, if it reserves the most of a call."),
		limit:    gauge("limit", "How much a project's budget allows: requests, tokens or dollars."),
	}
}

type budgetCollector struct {
	projects              Budgets
	listing               func() *counts.Listing // the projects that have series of their own
	used, reserved, limit *prometheus.Desc
}

// Describe sends the descriptions of the metrics.
func (c *budgetCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.used
	to <- c.reserved
	to <- c.limit
}

// Collect sends the metrics.
func (c *budgetCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), budgetTimeout)
	defer cancel()
	for u := range c.projects.BudgetUsage(ctx, c.listing().Projects()) {
		for _, l := range u.Limits {
			k, _ := kind.Named(l.Name)
			send := func(d *prometheus.Desc, n int) {
				to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n)/float64(k.Unit().Parts()), u.Project, l.Name)
			}
			send(c.limit, l.Max)
			if !u.Lost {
				send(c.used, l.Used)
				send(c.reserved, l.Reserved)
			}
		}
	}
}
