package project_test

import (
	"sync"
	"sync/atomic"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/project"
)

// In a cluster a project and a model are in different places. A call is charged to
// both or to neither all the same, by any number of nodes.
func TestRedisCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster takes seconds to start")
	}
	url := redistest.NewCluster(t, 3).URL()
	var nodes []*project.Limiter
	for range 2 {
		rl := modelsOn(t, openRedis(t, url), ratelimit.ModelQuota{MaxRPM: 25})
		nodes = append(nodes, newLimiter(t, project.Config{Default: &project.Limit{RequestsPerMinute: 10, RequestsPerDay: 1000}, Models: rl}))
	}
	admitted := map[string]*atomic.Int64{"a": {}, "b": {}, "c": {}, "d": {}}
	var group sync.WaitGroup
	for i := range 40 {
		for id, count := range admitted {
			group.Go(func() {
				if _, d, err := nodes[i%2].Take(t.Context(), project.Call{Project: id, Model: "m"}); err != nil {
					t.Error(err)
				} else if d.Allowed {
					count.Add(1)
				}
			})
		}
	}
	group.Wait()
	sum := int64(0)
	for id, count := range admitted {
		if n := count.Load(); n > 10 || left(t, nodes[0], id)["minute"] != 10-n {
			t.Errorf("project %s: %d were admitted of 10, and %v is left", id, n, left(t, nodes[0], id))
		}
		sum += count.Load()
	}
	if sum > 25 {
		t.Errorf("%d were admitted of the model's 25", sum)
	}
	for id := range admitted { // what others gave back while they asked may be left
		for admitted[id].Load() < 10 && sum < 25 {
			_, d, err := nodes[1].Take(t.Context(), project.Call{Project: id, Model: "m"})
			if err != nil || !d.Allowed {
				t.Fatalf("%s has %d, all have %d: %+v, %v", id, admitted[id].Load(), sum, d, err)
			}
			admitted[id].Add(1)
			sum++
		}
	}
	if _, d, err := nodes[0].Take(t.Context(), project.Call{Project: "e", Model: "m"}); err != nil || d.Allowed || d.Exceeded != "rpm" || left(t, nodes[0], "e")["minute"] != 10 {
		t.Errorf("one more: %+v, %v", d, err)
	}
}
