package scenes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Each project that wants its share has it within five points, however many users it has, and 98% of the quota is used.
func TestSharesHoldInScenes(t *testing.T) {
	for _, s := range slices.Concat(scenes(), largeCalls(), loads()) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.check(t, s.run(t)) })
		})
	}
}

func scenes() (list []scene) {
	const second = time.Second
	rpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxRPM: n} }
	tpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxTPM: n} }
	none := project.Limit{}

	// Answers take long: workers of a have just enough calls under way for its three quarters.
	weights, due := map[string]project.Limit{"a": {Weight: 3}, "b": none}, map[string]int{"a": 75, "b": 25}
	for answer, workers := range map[time.Duration]int{15 * second: 34, 20 * second: 45, 22 * second: 50, 35 * second: 79, 90 * second: 200} {
		list = append(list, scene{name: "answers of " + answer.String(), quota: rpm(120), answer: answer, limits: weights, want: due,
			crews: []crew{{project: "a", workers: workers}, {project: "b", workers: 300}}})
	}
	for name, answer := range map[string]answers{"around 20 s": around(20 * second), "of a heavy tail": heavyTail(7 * second)} {
		list = append(list, scene{name: "answers " + name, quota: rpm(120), limits: weights, want: due,
			crews: []crew{{project: "a", workers: 45, answer: answer}, {project: "b", workers: 300, answer: answer}}})
	}

	// Callers do not wait, and try again.
	hog := crew{project: "hog", workers: 100}
	for _, retries := range []struct{ weight, pause, want int }{{1, 1, 50}, {9, 1, 90}, {1, 5, 50}} {
		list = append(list, scene{name: fmt.Sprintf("tries after %d s, weight %d", retries.pause, retries.weight), quota: rpm(120), answer: second,
			limits: map[string]project.Limit{"hog": none, "retries": {Weight: retries.weight}},
			crews:  []crew{hog, {project: "retries", workers: 20, retry: time.Duration(retries.pause) * second}},
			want:   map[string]int{"hog": 100 - retries.want, "retries": retries.want}})
	}

	// Crowds of users, beside one project of the same weight.
	equal, half := map[string]project.Limit{"honest": none, "crowd": none}, map[string]int{"honest": 50, "crowd": 50}
	crowd := func(n int) crew { return crew{project: "crowd", workers: n, users: n} }
	late := crowd(100)
	late.from = 90 * second
	list = append(list,
		scene{name: "a crowd of 150", quota: rpm(120), answer: second, limits: equal, want: half, crews: []crew{crowd(150), {project: "honest", workers: 20, users: 1}}},
		scene{name: "a crowd of 1,300", quota: rpm(120), answer: second, limits: equal, want: half, crews: []crew{crowd(1300), {project: "honest", workers: 20, users: 1}}},
		scene{name: "a crowd of 600, answers of 20 s", quota: rpm(600), answer: 20 * second, limits: equal, want: half, crews: []crew{crowd(600), {project: "honest", workers: 120}}},
		scene{name: "a late crowd", quota: rpm(120), answer: 5 * second, limits: equal, want: half, crews: []crew{{project: "honest", workers: 20}, late}},
		scene{name: "three teams of 40", quota: rpm(120), answer: 5 * second, limits: map[string]project.Limit{"honest": {Weight: 3}, "t1": none, "t2": none, "t3": none},
			crews: []crew{{project: "t1", workers: 40, users: 40}, {project: "t2", workers: 40, users: 40}, {project: "t3", workers: 40, users: 40}, {project: "honest", workers: 15}},
			want:  map[string]int{"honest": 50, "t1": 17, "t2": 17, "t3": 17}})
	many := scene{name: "a hundred projects", quota: rpm(600), answer: 2 * second, limits: map[string]project.Limit{"p0": {Weight: 25}}, want: map[string]int{"p0": 20}}
	for i := range 100 {
		many.crews = append(many.crews, crew{project: fmt.Sprintf("p%d", i), workers: 5 + 15*max(1-i, 0)})
	}
	list = append(list, many)

	// Keys of one project: one of them invents users.
	one := map[string]project.Limit{"p": none}
	keys := []crew{{project: "p", key: "inventive", workers: 20, users: 20}, {project: "p", key: "honest", workers: 5, users: 1}}
	due = map[string]int{"inventive": 50, "honest": 50}
	list = append(list,
		scene{name: "a key that invents users", quota: rpm(60), answer: second, limits: one, want: due, crews: keys},
		scene{name: "a key that invents users, by the limit of its project", quota: rpm(6000), minute: 60, answer: second, want: due, crews: keys,
			limits: map[string]project.Limit{"p": {RequestsPerMinute: 60}}},
		scene{name: "a key with many workers, by the limit of its project", quota: rpm(6000), minute: 60, answer: second, want: due,
			limits: map[string]project.Limit{"p": {RequestsPerMinute: 60}},
			crews:  []crew{{project: "p", key: "inventive", workers: 60}, {project: "p", key: "honest", workers: 5}}})

	// Calls that use ten times what they ask for.
	for answer, workers := range map[time.Duration]int{2 * second: 100, 20 * second: 600} {
		list = append(list, scene{name: "asks for a tenth, answers of " + answer.String(), quota: tpm(120_000), answer: answer,
			limits: map[string]project.Limit{"liar": none, "honest": none}, want: map[string]int{"liar": 50, "honest": 50},
			crews: []crew{{project: "liar", workers: workers, tokens: 1000, asks: 100}, {project: "honest", workers: 100, tokens: 1000}}})
	}

	// Slots: how many each project has decides, so by weight two are a call and a third apart at any time.
	users := crowd(150)
	users.answer = around(10 * second)
	list = append(list,
		scene{name: "8 slots", quota: ratelimit.ModelQuota{MaxConcurrent: 8}, minute: 48, answer: 10 * second, limits: weights, least: map[string]int{"a": 72, "b": 23},
			crews: []crew{{project: "a", workers: 40}, {project: "b", workers: 100}}},
		scene{name: "12 slots, beside a crowd of 150", quota: ratelimit.ModelQuota{MaxConcurrent: 12}, minute: 72, limits: equal, least: map[string]int{"honest": 43, "crowd": 43}, used: 95,
			crews: []crew{users, {project: "honest", workers: 12, answer: around(10 * second)}}})

	// Few people, who use less than their share, beside a project that makes as many calls as it can. A call of a part of
	// the quota may have to wait for that part of a minute until it fits, and those behind it until it has left again.
	people := crew{project: "people", workers: 5, pause: 15 * second, tokens: 100}
	for tokens, most := range map[int]time.Duration{10: 10 * second, 3000: 65 * second, 6000: 125 * second} {
		list = append(list, scene{name: fmt.Sprintf("people beside calls of %d", tokens), quota: tpm(6000), answer: second, limits: map[string]project.Limit{"noisy": none, "people": none},
			crews: []crew{{project: "noisy", workers: 200, tokens: tokens}, people}, used: 1, wait: map[string]time.Duration{"people": most}})
	}

	return append(list,
		scene{name: "levels of projects", quota: rpm(120), answer: second, least: map[string]int{"acme/search": 33, "acme/chat": 8, "beta": 45},
			limits: map[string]project.Limit{"acme": none, "acme/search": {Weight: 3}, "acme/chat": {Weight: 1}, "beta": {Weight: 1}},
			crews:  []crew{{project: "acme/search", workers: 8}, {project: "acme/chat", workers: 20}, {project: "beta", workers: 12}}},
		scene{name: "people beside one that waits for its own limit", quota: rpm(120), answer: 2 * second, limits: map[string]project.Limit{"hog": none, "chat": none, "stuck": {RequestsPerHour: 1}},
			crews: []crew{hog, {project: "stuck", workers: 50}, {project: "chat", workers: 10, pause: 15 * second}}, wait: map[string]time.Duration{"chat": 3 * second}},
		scene{name: "a minimum beside a higher priority", quota: rpm(120), answer: second, limits: map[string]project.Limit{"high": {Priority: 10}, "late": {MinShare: 30}},
			crews: []crew{{project: "high", workers: 200}, {project: "late", workers: 50, from: 90 * second}}, want: map[string]int{"high": 70, "late": 30}},
		scene{name: "people beside a hog", quota: rpm(120), answer: 2 * second, limits: map[string]project.Limit{"hog": none, "chat": none},
			crews: []crew{hog, {project: "chat", workers: 10, pause: 15 * second}}, wait: map[string]time.Duration{"chat": 3 * second}}) // a share of one call a second: of three people at once the last waits for two
}

// A project has no more than its maximum in any minute, wherever the minute begins.
func TestMaxShareHoldsInEveryMinute(t *testing.T) {
	const minutes = 20
	synctest.Test(t, func(t *testing.T) {
		rl, err := ratelimit.NewWithConfig(ratelimit.Config{FilePath: "none", Quotas: map[string]ratelimit.ModelQuota{"m": {MaxRPM: 120}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Limits: map[string]project.Limit{"capped": {MaxShare: 20}, "other": {}}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), minutes*time.Minute)
		defer stop()
		var mu sync.Mutex
		var passed []time.Time
		group := sync.WaitGroup{}
		for worker := range 60 {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			c := crew{project: []string{"capped", "other"}[worker%2]}
			group.Go(func() {
				for {
					time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
					res := c.acquire(ctx, rl, ratelimit.Call{Model: "m", Project: c.project})
					if res == nil {
						return
					}
					if c.project == "capped" {
						mu.Lock()
						passed = append(passed, time.Now())
						mu.Unlock()
					}
					res.Commit(1, 1)
				}
			})
		}
		group.Wait()
		for i := 24; i < len(passed); i++ {
			if within := passed[i].Sub(passed[i-24]); within < time.Minute {
				t.Fatalf("25 calls passed within %v, until %v after the beginning; want 24 at most", within, passed[i].Sub(passed[0]))
			}
		}
		if len(passed) < 24*minutes*90/100 {
			t.Errorf("%d calls passed in %d minutes", len(passed), minutes)
		}
	})
}
