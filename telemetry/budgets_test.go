package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// Budgets of the listed projects are exported, in dollars where they are of money, and neither limits of a minute nor
// budgets of other projects. What a call under way holds is shown apart. While the store is lost, only the limits are
// known.
func TestBudgetCollector(t *testing.T) {
	memory := store.NewMemory()
	defer memory.Close()
	lossy := &lossyStore{Memory: memory}
	l, err := project.NewWithConfig(project.Config{Store: lossy, Limits: map[string]project.Limit{
		"acme":    {RequestsPerMinute: 60, RequestsPerDay: 1000, DollarsPerMonth: 5 * price.Dollar},
		"free":    {RequestsPerMinute: 60},
		"initech": {Dollars: price.Dollar},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, _ := newProm(t, PrometheusConfig{Projects: []string{"acme", "free", "acme/*"}})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewBudgetCollector(l, p))
	call := project.Call{Project: "acme", Dollars: price.Dollar / 4, MostDollars: 2 * price.Dollar}
	for range 2 {
		res, _, err := l.Take(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Cancel()
		if call.MostDollars > price.Dollar {
			res.CommitPriced(llm.Tokens{}, price.Dollar/2)
		}
		call.MostDollars = price.Dollar
	}
	known := map[string]float64{
		"ratelimit_budget_limit{dimension=requests_per_day,project=acme}":  1000,
		"ratelimit_budget_limit{dimension=dollars_per_month,project=acme}": 5,
	}
	all := map[string]float64{
		"ratelimit_budget_used{dimension=requests_per_day,project=acme}":      2,
		"ratelimit_budget_reserved{dimension=requests_per_day,project=acme}":  0,
		"ratelimit_budget_used{dimension=dollars_per_month,project=acme}":     1.5,
		"ratelimit_budget_reserved{dimension=dollars_per_month,project=acme}": 1,
	}
	for name, value := range known {
		all[name] = value
	}
	testkit.Equal(t, "with a call under way", all, telemetrytest.Gathered(t, registry))
	lossy.lost = true
	testkit.Equal(t, "without the store", known, telemetrytest.Gathered(t, registry))
}
