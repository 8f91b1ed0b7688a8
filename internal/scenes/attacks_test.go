package scenes

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A project that tries to get more than its share beside one of the same weight does not, whatever it tries: the other,
// whose calls wait, has its half, within five points, or seven over two nodes, and as much of the quota as is its own.
func TestNobodyGetsMoreThanItsShare(t *testing.T) {
	list := attacks()
	for _, s := range attacks() {
		s.name, s.nodes, s.crews[0].on = s.name+", over two nodes", 2, 1
		s.least = map[string]int{"honest": 43}
		list = append(list, s)
	}
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := s.run(t)
				s.check(t, p)
				whole := max(s.quota.MaxRPM, s.quota.MaxTPM) * (100 - int(s.quota.Reserve)) / 100
				half := whole * s.minutes() / 2 / 2 // what is due to it in the second half
				if got := 100 * p.by["honest"] / half; got < 2*s.least["honest"] {
					t.Errorf("the honest project has %d%% of its share", got)
				}
				t.Logf("honest has %d of %d, greedy has %d", p.by["honest"], half, p.by["greedy"])
			})
		})
	}
}

func attacks() []scene {
	const second = time.Second
	both := map[string]project.Limit{"honest": {}, "greedy": {}}
	honest := crew{project: "honest", workers: 10}
	requests := func(name string, greedy crew) scene {
		greedy.project = "greedy"
		return scene{name: name, quota: ratelimit.ModelQuota{MaxRPM: 120}, answer: second, limits: both, crews: []crew{honest, greedy}, least: map[string]int{"honest": 45}, used: 1}
	}
	tokens := func(name string, greedy crew) scene {
		s := requests(name, greedy)
		s.quota = ratelimit.ModelQuota{MaxTPM: 120_000}
		s.crews[0].tokens = 1000
		return s
	}
	reserved := requests("a new user for each call, beside a reserve", crew{workers: 100, renames: true})
	reserved.quota.Reserve = 20
	most := tokens("calls of most of the share", crew{workers: 6, tokens: 50_000})
	most.answer = 2 * second
	list := []scene{
		requests("many workers", crew{workers: 400}),
		requests("a new user for each call", crew{workers: 100, renames: true}),
		reserved,
		most,
		requests("calls that are given up", crew{workers: 100, cancels: true}),
		requests("a storm of retries", crew{workers: 20, retry: 100 * time.Millisecond}),
		requests("a storm of retries of new users", crew{workers: 10, retry: 200 * time.Millisecond, renames: true}),
		tokens("asks for ten times what it uses", crew{workers: 100, tokens: 1000, asks: 10_000}),
		tokens("asks for a twentieth of what it uses", crew{workers: 100, tokens: 2000, asks: 100}),
		tokens("tiny calls", crew{workers: 200, tokens: 10}),
		tokens("calls of the whole share", crew{workers: 4, tokens: 60_000}),
		tokens("large calls that are given up", crew{workers: 20, tokens: 60_000, cancels: true}),
	}
	for _, b := range []struct{ burst, calm int }{{5, 55}, {5, 25}, {10, 110}, {30, 30}, {61, 61}} {
		list = append(list, requests(fmt.Sprintf("bursts of %d s after %d s", b.burst, b.calm), crew{workers: 150, burst: time.Duration(b.burst) * second, calm: time.Duration(b.calm) * second}))
	}
	return list
}
