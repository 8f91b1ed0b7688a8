package project_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limits in units are exact: of 300 calls at once on a limit for 10, exactly 10 pass, on every store. Calls that use
// none of a unit pass when it is used up, and what a call has not used is there for others.
func TestUnits(t *testing.T) {
	for name, shared := range stores {
		t.Run(name, func(t *testing.T) {
			open := shared(t)
			each := project.Limit{ImagesPerDay: 10, AudioSecondsPerMonth: 600}
			limiters := []*project.Limiter{newLimiter(t, project.Config{Default: &each, Store: open()}), newLimiter(t, project.Config{Default: &each, Store: open()})}
			for unit, call := range map[int]project.Call{
				llm.Images:       {Project: "p", Units: llm.Units{llm.Images: 1}},
				llm.AudioSeconds: {Project: "q", Units: llm.Units{llm.AudioSeconds: 60}},
			} {
				var passed atomic.Int64
				var all sync.WaitGroup
				var mu sync.Mutex
				held := [2][]*project.Reservation{} // by their limiters: one sees at once what it has given back itself
				for i := range 300 {
					all.Go(func() {
						res, d, err := limiters[i%2].Take(t.Context(), call)
						if err != nil {
							t.Error(err)
						}
						if d.Allowed {
							passed.Add(1)
							mu.Lock()
							held[i%2] = append(held[i%2], res)
							mu.Unlock()
						}
					})
				}
				all.Wait()
				if passed.Load() != 10 {
					t.Fatalf("unit %d: %d calls have passed, want 10", unit, passed.Load())
				}
				if _, d, err := limiters[0].Take(t.Context(), project.Call{Project: call.Project, Estimated: 100}); err != nil || !d.Allowed {
					t.Errorf("a call without units: %+v, %v", d, err)
				}
				own := 0
				if len(held[0]) < 2 {
					own = 1
				}
				for i, used := range []llm.Units{{}, llm.UnknownUnits} { // the first has used nothing, of the other nobody knows
					held[own][i].Count(used)
					held[own][i].Commit(0, 0)
					if _, d, err := limiters[own].Take(t.Context(), call); err != nil || d.Allowed != (i == 0) {
						t.Errorf("after a call that has used %v: %+v, %v", used, d, err)
					}
				}
			}
			_, _, err := limiters[0].Take(t.Context(), project.Call{Project: "r", Units: llm.UnknownUnits})
			if !errors.Is(err, project.ErrUnbounded) || !strings.Contains(err.Error(), `project "r" has a limit in images`) {
				t.Errorf("nobody knows how many images: %v", err)
			}
		})
	}
}
