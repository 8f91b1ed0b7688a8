package ratelimit_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// crew is workers that make calls of one project: each waits for its turn, then for an answer, and calls again.
type crew struct {
	project string
	workers int
	from    time.Duration // when the workers begin
	retry   time.Duration // the workers do not wait, and call again after this time if they are turned away
}

// scene is projects that share the requests a minute of a model.
type scene struct {
	name   string
	rpm    int
	answer time.Duration
	limits map[string]project.Limit
	crews  []crew
	want   map[string]int // percent of the calls of the last minutes, by project
}

// sceneMinutes is how long a scene lasts. Its shares are counted after half of that.
const sceneMinutes = 20

// run returns how many calls of each project passed, in the second half of the scene, and how many passed in all.
func (s *scene) run(t *testing.T) (passed map[string]int, all int) {
	t.Helper()
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: quotas{"m": {MaxRPM: s.rpm}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rl.NewProjects(project.Config{Limits: s.limits}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), sceneMinutes*time.Minute)
	defer stop()
	var (
		began = time.Now()
		mu    sync.Mutex
		group sync.WaitGroup
	)
	passed = map[string]int{}
	acquire := func(c *crew) *ratelimit.Reservation {
		call := ratelimit.Call{Model: "m", Project: c.project}
		if c.retry == 0 {
			res, _, _ := rl.AcquireCall(ctx, call)
			return res
		}
		for ctx.Err() == nil {
			if res, d, err := rl.TryAcquireCall(ctx, call); err != nil || d.Allowed {
				return res
			}
			time.Sleep(c.retry)
		}
		return nil
	}
	work := func(c *crew) {
		time.Sleep(c.from)
		for {
			res := acquire(c)
			if res == nil {
				return
			}
			mu.Lock()
			all++
			if time.Since(began) >= sceneMinutes*time.Minute/2 {
				passed[c.project]++
			}
			mu.Unlock()
			time.Sleep(s.answer)
			res.Commit(1, 1)
		}
	}
	for _, c := range s.crews {
		for range c.workers {
			group.Go(func() { work(&c) })
		}
	}
	group.Wait()
	return passed, all
}

// Each project that wants its share has it within five points, and 98% of the quota is used.
func TestSharesHoldInScenes(t *testing.T) {
	weights := map[string]project.Limit{"a": {Weight: 3}, "b": {Weight: 1}}
	threeQuarters := map[string]int{"a": 75, "b": 25}
	for _, s := range []scene{
		{"answers of 15 s", 120, 15 * time.Second, weights, []crew{{project: "a", workers: 34}, {project: "b", workers: 300}}, threeQuarters},
		{"answers of 20 s", 120, 20 * time.Second, weights, []crew{{project: "a", workers: 45}, {project: "b", workers: 300}}, threeQuarters},
		{"answers of 22 s", 120, 22 * time.Second, weights, []crew{{project: "a", workers: 50}, {project: "b", workers: 300}}, threeQuarters},
		{"answers of 35 s", 120, 35 * time.Second, weights, []crew{{project: "a", workers: 79}, {project: "b", workers: 300}}, threeQuarters},
		{"a minimum beside a higher priority", 120, time.Second, map[string]project.Limit{"high": {Priority: 10}, "late": {MinShare: 30}},
			[]crew{{project: "high", workers: 200}, {project: "late", workers: 50, from: 90 * time.Second}}, map[string]int{"high": 70, "late": 30}},
		{"no waiting beside a hog that waits", 120, time.Second, map[string]project.Limit{"hog": {}, "retries": {}},
			[]crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: time.Second}}, map[string]int{"hog": 50, "retries": 50}},
		{"no waiting beside a hog that waits, weight 9", 120, time.Second, map[string]project.Limit{"hog": {}, "retries": {Weight: 9}},
			[]crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: time.Second}}, map[string]int{"hog": 10, "retries": 90}},
		{"no waiting, and few tries", 120, time.Second, map[string]project.Limit{"hog": {}, "retries": {}},
			[]crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: 5 * time.Second}}, map[string]int{"hog": 50, "retries": 50}},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				passed, all := s.run(t)
				counted := 0
				for _, n := range passed {
					counted += n
				}
				for id, want := range s.want {
					if got := 100 * passed[id] / counted; got < want-5 || got > want+5 {
						t.Errorf("%s has %d%%: want %d%%", id, got, want)
					}
				}
				if most := s.rpm * sceneMinutes; all > most+s.rpm || all < most*98/100 {
					t.Errorf("%d of %d requests were used", all, most)
				}
			})
		})
	}
}
