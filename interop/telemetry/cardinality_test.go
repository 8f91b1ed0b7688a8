package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/telemetry/opentelemetry"
)

func TestOpenTelemetryCardinality(t *testing.T) {
	o, reader := newMetered(t, opentelemetry.Config{Models: telemetrytest.Models, Projects: telemetrytest.Projects})
	telemetrytest.Flood(t, o, 100_000)
	series, values := 0, telemetrytest.Values{}
	for _, attributes := range sets(collected(t, reader)) {
		series++
		for _, kv := range attributes.ToSlice() {
			values.Add(string(kv.Key), kv.Value.String())
		}
	}
	if most := telemetrytest.MostSeries(); series > most {
		t.Errorf("%d series; at most %d are allowed", series, most)
	}
	values.Check(t, map[string]int{ // with other, but none has no attribute
		"gen_ai.request.model": telemetrytest.Models + 1, "project_id": len(telemetrytest.Projects) + 1, "ratelimit.limit": len(telemetrytest.Limits),
		"ratelimit.outcome": telemetrytest.Outcomes, "ratelimit.shadow": telemetrytest.Shadows, "gen_ai.token.type": telemetrytest.Types,
		"ratelimit.mode": telemetrytest.Modes, "ratelimit.cause": telemetrytest.Causes,
		"ratelimit.owner": telemetrytest.Owners, "ratelimit.percent": telemetrytest.Percents,
	})
}

// sets returns the attributes of all points.
func sets(metrics map[string]metricdata.Metrics) (all []attribute.Set) {
	for _, m := range metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		case metricdata.Histogram[int64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				all = append(all, point.Attributes)
			}
		}
	}
	return all
}
