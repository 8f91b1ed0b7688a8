package scenes

import (
	"fmt"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// largeCalls returns scenes of calls that are larger than the share of their project. Each of them leaves the others
// about a minute before and a minute after it in which they have only what it does not need, so docs/fairness.md says how
// much can be used at all. It is checked that no project is further ahead than the bound allows, and that each has its
// part of what is used: a large call is up to a tenth of that. Calls of one instant come in any order, and by a few percent
// it depends on that order how much is used, so hardly more is required than is possible if calls come evenly.
func largeCalls() (list []scene) {
	for _, v := range []struct {
		tokens, weight, workers int // of a large call; of the project with small calls; and how many make these
		answer                  time.Duration
		large, small, used      int // percent of what is used, at least, and of the quota
	}{
		{40_000, 5, 100, 2 * time.Second, 12, 75, 90},
		{60_000, 5, 100, 2 * time.Second, 12, 75, 88},
		{60_000, 5, 20, 2 * time.Second, 12, 72, 86},
		{120_000, 5, 1000, 2 * time.Second, 8, 72, 90},
		{120_000, 5, 100, 2 * time.Second, 8, 72, 88},
		{120_000, 5, 10, 2 * time.Second, 8, 72, 86}, // 7% were used by the small calls before, of 83
		{120_000, 1, 100, 2 * time.Second, 38, 38, 82},
		{110_000, 1, 100, 2 * time.Second, 38, 38, 84},
		{110_000, 1, 10, 2 * time.Second, 38, 38, 70},
		{110_000, 1, 5, 2 * time.Second, 38, 38, 64},
		{110_000, 1, 20, 10 * time.Second, 36, 38, 60},
		{90_000, 1, 10, 2 * time.Second, 38, 38, 67},
		{65_000, 1, 10, 2 * time.Second, 43, 43, 85},
	} {
		list = append(list, scene{name: fmt.Sprintf("calls of %d beside %d workers of weight %d, answers of %v", v.tokens, v.workers, v.weight, v.answer),
			quota: ratelimit.ModelQuota{MaxTPM: 120_000}, answer: v.answer, limits: map[string]project.Limit{"large": {}, "small": {Weight: v.weight}},
			crews: []crew{{project: "large", workers: 4, tokens: v.tokens}, {project: "small", workers: v.workers, tokens: 1000}},
			least: map[string]int{"large": v.large, "small": v.small}, used: v.used,
			wait: map[string]time.Duration{"small": time.Minute * 2 * time.Duration(v.tokens+v.workers*1000) / 120_000}}) // until a large call has gathered what it asks for, and has left again
	}

	// A minimum share comes before the turns of large calls.
	minimum := scene{name: "a minimum beside large calls of others", quota: ratelimit.ModelQuota{MaxTPM: 100_000}, answer: 2 * time.Second, used: 80,
		limits: map[string]project.Limit{"vip": {MinShare: 60}}, least: map[string]int{"vip": 45}, crews: []crew{{project: "vip", workers: 10, tokens: 1000}}}
	for i := range 5 {
		minimum.crews = append(minimum.crews, crew{project: fmt.Sprintf("large%d", i), workers: 4, tokens: 30_000})
	}

	// A project whose calls wait for requests does not keep another from its large calls, for which there are tokens.
	return append(list, minimum, scene{name: "large calls beside a hog of requests", quota: ratelimit.ModelQuota{MaxTPM: 120_000, MaxRPM: 20}, answer: 2 * time.Second, used: 40,
		limits: map[string]project.Limit{"large": {}, "hog": {}}, least: map[string]int{"large": 95}, crews: []crew{{project: "large", workers: 2, tokens: 80_000}, {project: "hog", workers: 50, tokens: 1}}})
}
