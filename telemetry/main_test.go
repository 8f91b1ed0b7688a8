package telemetry

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// Observers start no goroutine, and tests end those that they start.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newProm returns an observer with a registry of its own.
func newProm(t testing.TB, cfg PrometheusConfig) (*Prometheus, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	cfg.Registerer = registry
	p, err := NewPrometheus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, registry
}

// full returns a registry with everything that the package exports, and an observer that has seen
// all events of the story.
func full(t testing.TB) (*Prometheus, *prometheus.Registry) {
	t.Helper()
	p, registry := newProm(t, PrometheusConfig{Projects: []string{"acme"}})
	telemetrytest.Tell(t, p, telemetrytest.Story...)
	rl := telemetrytest.NewLimiter(t, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{
		"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000},
		"claude": {MaxRPM: 50, MaxInputTPM: 30_000, MaxOutputTPM: 8_000, MaxRPD: 1_000, MaxTPD: 1_000_000, MaxConcurrent: 4},
	}})
	rl.RecordUsage("gpt-4o", 900, 300)
	rl.RecordUsage("made-up", 1, 1)
	registry.MustRegister(NewModelCollector(rl), NewShareCollector(shared{"gpt-4o": {
		{Project: "acme", Waiting: 2, Limits: []event.LimitShare{{Name: "max_rpm", Share: 300, Used: 310, Borrowed: 60}}},
		{Project: "initech", Limits: []event.LimitShare{{Name: "max_rpm", Share: 200, Used: 40, Lent: 50}}},
	}}, p), NewBudgetCollector(budgets{
		{Project: "acme", Limits: []event.LimitUsage{{Name: "dollars_per_month", Used: 4_100_000_000_000, Reserved: 2_500_000_000, Max: 5_000_000_000_000}}},
		{Project: "initech", Lost: true, Limits: []event.LimitUsage{{Name: "tokens_per_month", Max: 1_000_000}}},
	}, p))
	return p, registry
}

// budgets is a limiter of projects with these budgets.
type budgets []event.ProjectUsage

func (b budgets) BudgetUsage(context.Context, []string) iter.Seq[event.ProjectUsage] {
	return slices.Values(b)
}
