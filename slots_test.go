package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Users do not outvote projects: of the slots of a model, a project with one caller or many has its part beside one
// with 150 users, and hardly any slot is idle.
func TestUsersShareTheSlotsOfTheirProject(t *testing.T) {
	const all, users, begin, lasts = 12, 150, 2 * time.Minute, 6 * time.Minute
	everyLedger(t, quotas{"m": {MaxConcurrent: all}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		start, random := time.Now(), rand.New(rand.NewPCG(1, 2))
		var group sync.WaitGroup
		var mu sync.Mutex
		honest, sum := time.Duration(0), time.Duration(0)
		work := func(project string, counts bool) {
			for {
				res, _, err := rl.AcquireCall(ctx, ratelimit.Call{Model: "m", Project: project, Estimated: 1})
				if err != nil {
					return
				}
				mu.Lock()
				d := 5*time.Second + time.Duration(random.Int64N(int64(10*time.Second)))
				if time.Since(start) >= begin {
					sum += d
					if counts {
						honest += d
					}
				}
				mu.Unlock()
				time.Sleep(d)
				res.Commit(1, 1)
			}
		}
		withProjects(t, rl, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{"crowd": {Weight: 1}, "honest": {Weight: 1}}})
		for i := range users {
			group.Go(func() { work(fmt.Sprintf("crowd/u%d", i), false) })
		}
		for range all {
			group.Go(func() { work("honest", true) })
		}
		group.Wait()
		part, used := float64(honest)/float64(sum), float64(sum)/float64(all*(lasts-begin))
		if math.Abs(part-.5) > .07 || used < .97 {
			t.Errorf("a project beside one with %d users has %.3f of the slots, and %.3f are used", users, part, used)
		}
	})
}
