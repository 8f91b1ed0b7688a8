package telemetrytest

import (
	"context"
	"testing"

	"dappco.re/go/core/go-ratelimit/event"
)

// Allocs returns the number of allocations of an observer for an event like one that it has observed
// before.
func Allocs(o event.Observer, e event.Event) float64 {
	ctx := context.Background()
	o.Observe(ctx, e)
	return testing.AllocsPerRun(100, func() { o.Observe(ctx, e) })
}

// BenchmarkObserver measures an observer with the usual events.
func BenchmarkObserver(b *testing.B, name string, o event.Observer) {
	for _, event := range []string{"admitted", "denied", "settled"} {
		b.Run(name+"/"+event, func(b *testing.B) {
			e, ctx := Usual[event], b.Context()
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(ctx, e)
			}
		})
	}
}
