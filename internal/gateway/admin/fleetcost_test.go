package admin

import (
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
)

// BenchmarkLookAtAFleet is a look at a fleet of four with 1,000 projects, as a viewer causes every two seconds.
func BenchmarkLookAtAFleet(b *testing.B) {
	all, _ := newFleet(b, 4, usual)
	for _, r := range all {
		for i := range 1000 {
			name := figures.Name{Project: fmt.Sprintf("team%04d", i), Model: "gpt-4o", Key: fmt.Sprintf("key_%024d", i)}
			r.gateway.Figures().Count(name, &figures.Call{Input: 900, Output: 300, Estimated: 1500, Dollars: 12345678})
			r.gateway.Figures().Count(name, &figures.Call{Denied: true, Limit: "requests_per_minute"})
		}
	}
	l := all[0].lookout
	l.look(b.Context(), true)
	b.ReportAllocs()
	for b.Loop() {
		l.gathered = time.Time{}
		l.look(b.Context(), true)
		marshal(l.overview(defaultRows))
	}
}
