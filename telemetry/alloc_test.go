package telemetry

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
)

// An event of a known model and project allocates nothing, unless it comes once a window.
func TestPrometheusAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	p, _ := newProm(t, PrometheusConfig{Projects: []string{"acme"}})
	for i, e := range telemetrytest.Story {
		if n := telemetrytest.Allocs(p, e); n != 0 && e.Kind != event.Threshold {
			t.Errorf("event %d, %s: %v allocations, want none", i, e.Kind, n)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	p, _ := newProm(b, PrometheusConfig{Projects: []string{"acme"}})
	telemetrytest.BenchmarkObserver(b, "prometheus", p)
}

func BenchmarkObserveParallel(b *testing.B) {
	p, _ := newProm(b, PrometheusConfig{Projects: []string{"acme"}})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.Observe(b.Context(), telemetrytest.Usual["admitted"])
		}
	})
}
