package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	users   int                              // that the workers work for in turn, each a project below the project; 0: for none
	from    time.Duration                    // when the workers begin
	retry   time.Duration                    // the workers do not wait, and call again after this time if they are turned away
	pause   time.Duration                    // between an answer and the next call, on average
	answer  func(r *rand.Rand) time.Duration // how long an answer takes; nil: as long as the scene's
	tokens  int                              // of a call
}

// scene is projects that share the quotas of a model.
type scene struct {
	name   string
	quota  ratelimit.ModelQuota
	answer time.Duration
	limits map[string]project.Limit
	crews  []crew
	want   map[string]int           // percent of the last minutes, by outermost project
	wait   map[string]time.Duration // the 99th percentile of the project's waits is not longer
}

// sceneMinutes is how long a scene lasts. Its shares are counted after half of that.
const sceneMinutes = 20

// played is what has passed in a scene.
type played struct {
	mu    sync.Mutex
	by    map[string]int // of each outermost project, in the second half
	waits map[string][]time.Duration
	all   int // in all
}

func (s *scene) unit(c *crew) int { return max(c.tokens, 1) }

// run plays the scene.
func (s *scene) run(t *testing.T) *played {
	t.Helper()
	rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: quotas{"m": s.quota}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rl.NewProjects(project.Config{Limits: s.limits}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), sceneMinutes*time.Minute)
	defer stop()
	began, group := time.Now(), sync.WaitGroup{}
	p := &played{by: map[string]int{}, waits: map[string][]time.Duration{}}
	acquire := func(c *crew, call ratelimit.Call) *ratelimit.Reservation {
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
	work := func(c *crew, i int) {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		id := c.project
		if c.users > 0 {
			id = fmt.Sprintf("%s/u%d", c.project, i%c.users)
		}
		top, _, _ := strings.Cut(id, "/")
		time.Sleep(c.from)
		for {
			if c.pause > 0 {
				time.Sleep(time.Duration(r.ExpFloat64() * float64(c.pause)))
			}
			asked := time.Now()
			call := ratelimit.Call{Model: "m", Project: id}
			if c.tokens > 0 {
				call.Tokens.Input = c.tokens
			}
			res := acquire(c, call)
			if res == nil {
				return
			}
			p.mu.Lock()
			if p.all += s.unit(c); time.Since(began) >= sceneMinutes*time.Minute/2 {
				p.by[top] += s.unit(c)
				p.waits[top] = append(p.waits[top], time.Since(asked))
			}
			p.mu.Unlock()
			answer := s.answer
			if c.answer != nil {
				answer = c.answer(r)
			}
			time.Sleep(answer)
			if c.tokens > 0 {
				res.Commit(c.tokens, 0)
			} else {
				res.Commit(1, 1)
			}
		}
	}
	for _, c := range s.crews {
		for i := range c.workers {
			group.Go(func() { work(&c, i) })
		}
	}
	group.Wait()
	return p
}

func around(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return mean/2 + time.Duration(r.Int64N(int64(mean))) }
}

func heavyTail(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		d := float64(mean) / 3
		for d < float64(20*mean) && r.IntN(3) == 0 {
			d *= 3
		}
		return time.Duration(d * (0.5 + r.Float64()))
	}
}

// Each project that wants its share has it within five points, and 98% of the quota is used.
func TestSharesHoldInScenes(t *testing.T) {
	weights := map[string]project.Limit{"a": {Weight: 3}, "b": {Weight: 1}}
	threeQuarters := map[string]int{"a": 75, "b": 25}
	half := map[string]int{"honest": 50, "crowd": 50}
	equal := map[string]project.Limit{"honest": {}, "crowd": {}}
	rpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxRPM: n} }
	tpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxTPM: n} }
	for _, s := range []scene{
		{name: "answers of 15 s", quota: rpm(120), answer: 15 * time.Second, limits: weights, crews: []crew{{project: "a", workers: 34}, {project: "b", workers: 300}}, want: threeQuarters},
		{name: "answers of 20 s", quota: rpm(120), answer: 20 * time.Second, limits: weights, crews: []crew{{project: "a", workers: 45}, {project: "b", workers: 300}}, want: threeQuarters},
		{name: "answers of 22 s", quota: rpm(120), answer: 22 * time.Second, limits: weights, crews: []crew{{project: "a", workers: 50}, {project: "b", workers: 300}}, want: threeQuarters},
		{name: "answers of 35 s", quota: rpm(120), answer: 35 * time.Second, limits: weights, crews: []crew{{project: "a", workers: 79}, {project: "b", workers: 300}}, want: threeQuarters},
		{name: "answers of 90 s", quota: rpm(120), answer: 90 * time.Second, limits: weights, crews: []crew{{project: "a", workers: 200}, {project: "b", workers: 300}}, want: threeQuarters},
		{name: "answers around 20 s", quota: rpm(120), limits: weights, crews: []crew{{project: "a", workers: 45, answer: around(20 * time.Second)}, {project: "b", workers: 300, answer: around(20 * time.Second)}}, want: threeQuarters},
		{name: "answers of a heavy tail", quota: rpm(120), limits: weights, crews: []crew{{project: "a", workers: 45, answer: heavyTail(20 * time.Second)}, {project: "b", workers: 300, answer: heavyTail(20 * time.Second)}}, want: threeQuarters},
		{name: "a minimum beside a higher priority", quota: rpm(120), answer: time.Second, limits: map[string]project.Limit{"high": {Priority: 10}, "late": {MinShare: 30}},
			crews: []crew{{project: "high", workers: 200}, {project: "late", workers: 50, from: 90 * time.Second}}, want: map[string]int{"high": 70, "late": 30}},
		{name: "no waiting beside a hog that waits", quota: rpm(120), answer: time.Second, limits: map[string]project.Limit{"hog": {}, "retries": {}},
			crews: []crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: time.Second}}, want: map[string]int{"hog": 50, "retries": 50}},
		{name: "no waiting beside a hog that waits, weight 9", quota: rpm(120), answer: time.Second, limits: map[string]project.Limit{"hog": {}, "retries": {Weight: 9}},
			crews: []crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: time.Second}}, want: map[string]int{"hog": 10, "retries": 90}},
		{name: "no waiting, and few tries", quota: rpm(120), answer: time.Second, limits: map[string]project.Limit{"hog": {}, "retries": {}},
			crews: []crew{{project: "hog", workers: 100}, {project: "retries", workers: 20, retry: 5 * time.Second}}, want: map[string]int{"hog": 50, "retries": 50}},
		{name: "a crowd of 150", quota: rpm(120), answer: time.Second, limits: equal, crews: []crew{{project: "crowd", workers: 150, users: 150}, {project: "honest", workers: 20, users: 1}}, want: half},
		{name: "a crowd of 1,300", quota: rpm(120), answer: time.Second, limits: equal, crews: []crew{{project: "crowd", workers: 1300, users: 1300}, {project: "honest", workers: 20, users: 1}}, want: half},
		{name: "a crowd of 600, answers of 20 s", quota: rpm(600), answer: 20 * time.Second, limits: equal, crews: []crew{{project: "crowd", workers: 600, users: 600}, {project: "honest", workers: 120}}, want: half},
		{name: "a crowd of 150, answers of 20 s", quota: rpm(120), answer: 20 * time.Second, limits: equal, crews: []crew{{project: "crowd", workers: 300, users: 150}, {project: "honest", workers: 30}}, want: half},
		{name: "three teams of 40", quota: rpm(120), answer: 5 * time.Second, limits: map[string]project.Limit{"honest": {Weight: 3}, "t1": {}, "t2": {}, "t3": {}},
			crews: []crew{{project: "t1", workers: 40, users: 40}, {project: "t2", workers: 40, users: 40}, {project: "t3", workers: 40, users: 40}, {project: "honest", workers: 10}}, want: map[string]int{"honest": 50, "t1": 17, "t2": 17, "t3": 17}},
		{name: "a late crowd", quota: rpm(120), answer: 5 * time.Second, limits: equal, crews: []crew{{project: "honest", workers: 20}, {project: "crowd", workers: 100, users: 100, from: 90 * time.Second}}, want: half},
		{name: "an interactive project beside a hog", quota: rpm(120), answer: 2 * time.Second, limits: map[string]project.Limit{"hog": {}, "chat": {}},
			crews: []crew{{project: "hog", workers: 100}, {project: "chat", workers: 10, pause: 15 * time.Second}}, wait: map[string]time.Duration{"chat": time.Second}},
		{name: "calls of 40,000 of 120,000", quota: tpm(120_000), answer: 2 * time.Second, limits: map[string]project.Limit{"large": {}, "small": {Weight: 5}},
			crews: []crew{{project: "large", workers: 4, tokens: 40_000}, {project: "small", workers: 100, tokens: 1_000}}, want: map[string]int{"large": 17, "small": 83}},
		{name: "calls of 60,000 of 120,000", quota: tpm(120_000), answer: 2 * time.Second, limits: map[string]project.Limit{"large": {}, "small": {Weight: 5}},
			crews: []crew{{project: "large", workers: 4, tokens: 60_000}, {project: "small", workers: 100, tokens: 1_000}}, want: map[string]int{"large": 17, "small": 83}},
		{name: "calls of 120,000 of 120,000", quota: tpm(120_000), answer: 2 * time.Second, limits: map[string]project.Limit{"large": {}, "small": {Weight: 5}},
			crews: []crew{{project: "large", workers: 4, tokens: 120_000}, {project: "small", workers: 100, tokens: 1_000}}, want: map[string]int{"large": 17, "small": 83}},
		{name: "hundred projects", quota: rpm(600), answer: 2 * time.Second, limits: map[string]project.Limit{"p0": {Weight: 25}}, crews: hundred(), want: map[string]int{"p0": 20}},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := s.run(t)
				counted := 0
				for _, n := range p.by {
					counted += n
				}
				for id, want := range s.want {
					got := 100 * p.by[id] / counted
					slices.Sort(p.waits[id])
					t.Logf("%s has %d%% of %d%%; waits %v", id, got, want, p.waits[id][len(p.waits[id])*99/100])
					if got < want-5 || got > want+5 {
						t.Errorf("%s has %d%%: want %d%%", id, got, want)
					}
				}
				for id, most := range s.wait {
					slices.Sort(p.waits[id])
					if got := p.waits[id][len(p.waits[id])*99/100]; got > most {
						t.Errorf("%s: of 100 calls one waits %v: want %v at most", id, got, most)
					}
				}
				most := max(s.quota.MaxRPM, s.quota.MaxTPM)
				t.Logf("%d%% used", p.all*100/(most*sceneMinutes))
				if all := most * sceneMinutes; p.all > all+most || p.all < all*98/100 {
					t.Errorf("%d of %d were used: %d%%", p.all, all, p.all*100/all)
				}
			})
		})
	}
}

func hundred() (list []crew) {
	for i := range 100 {
		list = append(list, crew{project: fmt.Sprintf("p%d", i), workers: 5})
	}
	list[0].workers = 20
	return list
}
