package project_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/project"
)

// A call in memory allocates nothing, once its project is known.
func TestSpendAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	many := project.Limit{RequestsPerMinute: 1 << 40, RequestsPerHour: 1 << 41, RequestsPerDay: 1 << 42}
	tokens := many
	tokens.TokensPerMinute, tokens.Weight = 5, 3
	l := newLimiter(t, project.Config{Default: &many, Limits: map[string]project.Limit{
		"denied": {RequestsPerMinute: 1, RequestsPerHour: 5}, "own": many, "tokens": tokens, "unlimited": {},
	}})
	l.SetLimit("set", many)
	use(t, l, "denied", 1)
	for id, allowed := range map[string]bool{"usual": true, "own": true, "tokens": true, "unlimited": true, "set": true, "a.b_c-d~e": true, "denied": false} {
		ctx, c := t.Context(), project.Call{Project: id}
		for range 10_000 { // until its counters are as large as they become
			l.Spend(ctx, c)
		}
		n := testing.AllocsPerRun(1000, func() {
			if d, err := l.Spend(ctx, c); err != nil || d.Allowed != allowed {
				t.Fatalf("%s: %+v, %v", id, d, err)
			}
		})
		if n != 0 {
			t.Errorf("a Spend of %q allocates %v times", id, n)
		}
		n = testing.AllocsPerRun(1000, func() {
			if ok, _ := l.Allow(ctx, id); ok != allowed {
				t.Fatalf("%s: %t", id, ok)
			}
		})
		if n != 0 {
			t.Errorf("an Allow of %q allocates %v times", id, n)
		}
	}
}
