package scenes

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// One call of a project that uses many times the quota does not end the project's other calls, although others use all of
// the quota that they get, and its calls do not wait.
func TestOneCallThatUsesFarTooMuchEndsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: map[string]ratelimit.ModelQuota{"m": {MaxTPM: 120_000}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Limits: map[string]project.Limit{"a": {}, "b": {}, "once": {}}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
		defer stop()
		call := func(c *crew, uses int) bool {
			res := c.acquire(ctx, rl, ratelimit.Call{Model: "m", Project: c.project, Tokens: llm.Tokens{Input: c.tokens}})
			if res == nil {
				return false
			}
			time.Sleep(2 * time.Second)
			res.Commit(uses, 0)
			return true
		}
		once := crew{project: "once", tokens: 100, retry: 5 * time.Second, workers: 50}
		call(&once, 500_000)
		var passed atomic.Int64
		var group sync.WaitGroup
		for _, c := range []crew{once, {project: "a", tokens: 1000, workers: 50}, {project: "b", tokens: 1000, workers: 50}} {
			for range c.workers {
				group.Go(func() {
					for call(&c, c.tokens) {
						if c.project == "once" {
							passed.Add(1)
						}
					}
				})
			}
		}
		group.Wait()
		if n := passed.Load(); n < 100 {
			t.Errorf("%d calls of the project have passed in 20 minutes", n)
		}
	})
}
