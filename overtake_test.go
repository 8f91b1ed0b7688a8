package ratelimit_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// A project whose calls are large and one whose calls are small compete for a model: each has its half
// of it, and a small call waits no longer than a large one needs to gather what it asks for, and to
// leave again. Callers of small calls that wait for a call of the whole quota do not use their half.
func TestLargeCallsAndSmallOnes(t *testing.T) {
	const minutes, quota, small, workers = 40, 6000, 100, 20
	for large, utilised := range map[int]float64{1000: 0.99, 2500: 0.91, 3500: 0.91, 6000: 0.5} {
		t.Run(fmt.Sprint(large), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompetition(t, ratelimit.ModelQuota{MaxTPM: quota})
				var mu sync.Mutex
				used := map[string]int{}
				var waits []time.Duration
				loop := func(name string, workers, tokens int) {
					call := weighing(name, 1)
					call.Estimated = tokens
					for range workers {
						c.group.Go(func() {
							for {
								start := time.Now()
								res, _, err := acquireCall(c.rl, c.ctx, call)
								if err != nil {
									return
								}
								mu.Lock()
								used[name] += tokens
								if name == "small" {
									waits = append(waits, time.Since(start))
								}
								mu.Unlock()
								time.Sleep(time.Second)
								res.Commit(tokens, 0)
							}
						})
					}
				}
				loop("large", 2, large)
				loop("small", workers, small)
				time.Sleep(minutes * time.Minute)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(waits)
				p99 := waits[len(waits)*99/100]
				all := used["large"] + used["small"]
				most := time.Minute*2*time.Duration(large)/quota + time.Minute*2*workers*small/quota
				if p99 > most {
					t.Errorf("99%% of the small calls wait for up to %v; want at most %v", p99, most)
				}
				if share := float64(used["large"]) / float64(all); share < 0.42 || share > 0.58 && large < quota {
					t.Errorf("the large calls have %.2f of all; want half", share)
				}
				if got := float64(all) / (minutes * quota); got < utilised {
					t.Errorf("%.3f of the quota are used; want %.2f", got, utilised)
				}
				t.Logf("%v: %.3f, %.3f of the quota; small calls wait for %v, %v, %v", used, float64(used["large"])/float64(all), float64(all)/(minutes*quota), waits[len(waits)/2], p99, waits[len(waits)-1])
			})
		})
	}
}
