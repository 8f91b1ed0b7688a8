package telemetry

import (
	"iter"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

var _ Sharing = (*ratelimit.RateLimiter)(nil)

type shared map[string][]event.ProjectShare

func (s shared) AllShares() iter.Seq2[string, []event.ProjectShare] { return maps.All(s) }

// Projects that are listed have series of their own. All others are one project, whatever clients send.
func TestShareCollector(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	p, err := NewPrometheus(PrometheusConfig{Registerer: prometheus.NewRegistry(), Projects: []string{"acme"}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(id string, waiting int, limits ...event.LimitShare) event.ProjectShare {
		return event.ProjectShare{Project: id, Waiting: waiting, Limits: limits}
	}
	all := []event.ProjectShare{
		of("", 0, event.LimitShare{Name: "max_rpm", Share: 1, Used: 1}),
		of("a", 2, event.LimitShare{Name: "max_rpm", Share: 10, Used: 4, Lent: 3}),
		of("acme", 1, event.LimitShare{Name: "max_rpm", Share: 20, Used: 30, Borrowed: 8}),
		of("b", 5, event.LimitShare{Name: "max_rpm", Share: 7, Used: 2, Lent: 1, Borrowed: 2}),
	}
	registry.MustRegister(NewShareCollector(shared{"m": all, "idle": nil}, p))
	for range 2 { // to read changes nothing
		testkit.Equal(t, "the metrics", map[string]float64{
			"ratelimit_project_waiting{model=m,project=}":                               0,
			"ratelimit_project_share{dimension=max_rpm,model=m,project=}":               1,
			"ratelimit_project_share_used{dimension=max_rpm,model=m,project=}":          1,
			"ratelimit_project_share_lent{dimension=max_rpm,model=m,project=}":          0,
			"ratelimit_project_share_borrowed{dimension=max_rpm,model=m,project=}":      0,
			"ratelimit_project_waiting{model=m,project=acme}":                           1,
			"ratelimit_project_share{dimension=max_rpm,model=m,project=acme}":           20,
			"ratelimit_project_share_used{dimension=max_rpm,model=m,project=acme}":      30,
			"ratelimit_project_share_lent{dimension=max_rpm,model=m,project=acme}":      0,
			"ratelimit_project_share_borrowed{dimension=max_rpm,model=m,project=acme}":  8,
			"ratelimit_project_waiting{model=m,project=other}":                          7,
			"ratelimit_project_share{dimension=max_rpm,model=m,project=other}":          17,
			"ratelimit_project_share_used{dimension=max_rpm,model=m,project=other}":     6,
			"ratelimit_project_share_lent{dimension=max_rpm,model=m,project=other}":     4,
			"ratelimit_project_share_borrowed{dimension=max_rpm,model=m,project=other}": 2,
		}, telemetrytest.Gathered(t, registry))
	}
}
