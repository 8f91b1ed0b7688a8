package telemetry

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func TestPrometheusCardinality(t *testing.T) {
	p, registry := newProm(t, PrometheusConfig{Models: telemetrytest.Models, Projects: telemetrytest.Projects})
	telemetrytest.Flood(t, p, testkit.Rounds(100_000, 1_000_000))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, values := 0, telemetrytest.Values{}
	for _, family := range families {
		series += len(family.Metric)
		for _, m := range family.Metric {
			for _, label := range m.Label {
				values.Add(label.GetName(), label.GetValue())
			}
		}
	}
	if most := telemetrytest.MostSeries(); series > most {
		t.Errorf("%d series; at most %d are allowed", series, most)
	}
	values.Check(t, map[string]int{
		"model": telemetrytest.Models + 2, "project": len(telemetrytest.Projects) + 2, "limit": len(telemetrytest.Limits) + 1,
		"outcome": telemetrytest.Outcomes, "shadow": telemetrytest.Shadows, "type": telemetrytest.Types,
		"mode": telemetrytest.Modes, "cause": telemetrytest.Causes, "owner": telemetrytest.Owners, "percent": telemetrytest.Percents,
	})
}
