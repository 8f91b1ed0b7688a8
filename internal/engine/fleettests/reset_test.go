package fleettests

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// What projects have used of their shares is forgotten on all nodes when a model is reset on one.
func TestResetIsToldToOtherNodes(t *testing.T) {
	rules := func() *engine.Rules {
		log := limit.New(20, time.Minute).Using(limit.SlidingLog)
		return &engine.Rules{Limits: []engine.Limit{{Name: "requests", Unit: engine.Requests, Limit: log}}}
	}
	eachStore(t, func(t *testing.T, open func() (store.Store, error)) {
		list := newNodes(t, open, 2, rules, map[string]int{"a": 1, "b": 1})
		take := func(at *node, project string, n int) {
			t.Helper()
			ctx, cancel := testkit.WithHiddenTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := at.acquireN(ctx, project, n); err != nil {
				t.Fatal(project, err)
			}
		}
		take(list[0], "b", 1)
		take(list[1], "b", 1)
		take(list[1], "a", 10)
		if err := list[0].Reset(t.Context(), list[0].model); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the other node knows of nothing that was used", func() bool {
			used := 0
			for _, f := range list[1].Shares(list[1].model) {
				used += f.Limits[0].Used
			}
			return used == 0
		})
		take(list[1], "a", 10)
	})
}
