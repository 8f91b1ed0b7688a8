package scenes

import (
	"fmt"
	"math/rand/v2"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// from100To50000 returns sizes of calls of which most are small: from 100 to 50,000 tokens.
func from100To50000(r *rand.Rand) int { return min(100*(1<<int(r.ExpFloat64()*1.5)), 50_000) }

// loads returns scenes of other demands: projects that come and go, of very different numbers, and with calls of many
// sizes, whose estimates are wrong.
func loads() (list []scene) {
	const second, minute = time.Second, time.Minute
	rpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxRPM: n} }
	tpm := func(n int) ratelimit.ModelQuota { return ratelimit.ModelQuota{MaxTPM: n} }
	both, half := map[string]project.Limit{"a": {}, "b": {}}, map[string]int{"a": 50, "b": 50}
	weights, due := map[string]project.Limit{"a": {Weight: 3}, "b": {}}, map[string]int{"a": 75, "b": 25}

	// Estimates are wrong by five times, either way.
	for name, asks := range map[string]int{"a fifth of": 200, "five times": 5000} {
		list = append(list, scene{name: "a asks for " + name + " what it uses", quota: tpm(120_000), answer: 2 * second, limits: both, used: 80, least: map[string]int{"b": 45},
			crews: []crew{{project: "a", workers: 100, tokens: 1000, asks: asks}, {project: "b", workers: 100, tokens: 1000}}})
	}

	// As many projects as a model has shares.
	thousand := scene{name: "a thousand projects", quota: rpm(6000), answer: 2 * second, limits: map[string]project.Limit{"p0": {Weight: testkit.Rounds(30, 100)}, "p1": {Weight: testkit.Rounds(30, 100)}}, want: map[string]int{"p0": 8, "p1": 8}}
	for i := range testkit.Rounds(300, 998) {
		thousand.crews = append(thousand.crews, crew{project: fmt.Sprintf("p%d", i), workers: 1 + 30*max(2-i, 0)})
	}
	users := testkit.Rounds(1000, 10_000)
	crowd := crew{project: "crowd", workers: users, users: users, pause: minute}
	return append(list, thousand,
		scene{name: "a hundred times as much demand", quota: rpm(120), answer: second, limits: weights, want: due, crews: []crew{{project: "a", workers: 10}, {project: "b", workers: 1000}}},
		scene{name: "calls of 100 to 50,000", quota: tpm(600_000), answer: 5 * second, limits: weights, want: due, used: 95,
			crews: []crew{{project: "a", workers: 100, tokens: 50_000, sizes: from100To50000}, {project: "b", workers: 300, tokens: 50_000, sizes: from100To50000}}},
		scene{name: "callers at random", quota: rpm(120), answer: 5 * second, limits: weights, want: due, crews: []crew{{project: "a", workers: 60, pause: 20 * second}, {project: "b", workers: 300, pause: 20 * second}}},
		scene{name: "a third project comes and leaves", quota: rpm(120), answer: 2 * second, limits: map[string]project.Limit{"a": {}, "b": {}, "c": {}}, want: half,
			crews: []crew{{project: "a", workers: 10}, {project: "b", workers: 100}, {project: "c", workers: 50, from: 2 * minute, until: 7 * minute}}},
		scene{name: "three levels", quota: rpm(240), answer: second, least: map[string]int{"x": 45, "y/p/s": 22, "y/p/t": 11, "y/q": 11},
			limits: map[string]project.Limit{"x": {}, "y": {}, "y/p": {Weight: 3}, "y/q": {}, "y/p/s": {Weight: 2}, "y/p/t": {}},
			crews:  []crew{{project: "x", workers: 20}, {project: "y/p/s", workers: 10}, {project: "y/p/t", workers: 60}, {project: "y/q", workers: 60}}},
		scene{name: "users by a template", quota: rpm(600), answer: second, limits: map[string]project.Limit{"crowd": {}, "honest": {}}, want: map[string]int{"crowd": 50, "honest": 50},
			crews: []crew{crowd, {project: "honest", workers: 30}}},
		scene{name: "the limit of a project above", quota: rpm(6000), minute: 20, answer: second, used: 90, least: map[string]int{"p/a": 70, "p/b": 20},
			limits: map[string]project.Limit{"p": {RequestsPerMinute: 20}, "p/a": {Weight: 3}, "p/b": {}},
			crews:  []crew{{project: "p/a", workers: 10}, {project: "p/b", workers: 50}}},
		scene{name: "slots and tokens", quota: ratelimit.ModelQuota{MaxTPM: 120_000, MaxConcurrent: 20}, answer: 5 * second, limits: weights, least: map[string]int{"a": 70, "b": 20},
			crews: []crew{{project: "a", workers: 40, tokens: 1000}, {project: "b", workers: 100, tokens: 1000}}})
}
