// Package telemetry_test tests the observers with OpenTelemetry's SDK and its exporter.
package telemetry_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/telemetry"
)

// scope is by whom spans and metrics are made.
const scope = "dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"

// Observers start no goroutine, and what tests start they end.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newProm returns an observer with a registry of its own, which has it alone.
func newProm(t testing.TB, cfg telemetry.PrometheusConfig) (*telemetry.Prometheus, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	cfg.Registerer = registry
	p, err := telemetry.NewPrometheus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, registry
}
