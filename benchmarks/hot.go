package main

import (
	"fmt"
	"slices"
)

// hot measures one limiter, one key, under all the load that goroutines can make.
func hot(name, about string, q quota, run runner, goroutines int) scenario {
	contestants := single()
	if q == spent {
		contestants = denying(contestants)
	}
	keys := slices.Repeat([]string{"user:0123456789a"}, chunk*goroutines)
	return scenario{name, about, func(b *bench) (result, error) {
		r, err := turns(b, contestants, q, run, keys)
		if err != nil {
			return result{}, err
		}
		rows := r.rows()
		return result{
			reports: []report{newCostReport(name, about+"; "+b.method(), "ns/decision", rows)},
			checks:  hotChecks(name, rows, goroutines > 1),
			notes:   noise(name, r.cores(), goroutines),
		}, nil
	}}
}

// turns lets contestants that are all built beforehand take turns.
func turns(b *bench, contestants []contestant, q quota, run runner, keys []string) (race, error) {
	instances := make([]instance, len(contestants))
	for i, c := range contestants {
		instances[i] = c.build(q)
		defer instances[i].stop()
		instances[i].decide(keys[:1]) // uses up what is to be spent, and fills the map
	}
	r := newRace(contestants)
	for round := range b.rounds {
		b.step(fmt.Sprintf("round %d of %d", round+1, b.rounds))
		for i := range contestants {
			if err := r.add(i, q, run(instances[i].decide, keys, b.slice)); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// fits says whether a contestant did what its quota means: plenty and yearly admit, spent denies.
// One in a hundred may differ, for peers that give up under contention.
func (q quota) fits(c contestant, s sample) error {
	want := s.decisions
	if q == spent {
		want = 0
	}
	if c.kind != floor && abs(s.admitted-want) > s.decisions/100 {
		return fmt.Errorf("%s admitted %d of %d decisions where %d were expected: the comparison would be unfair", c.name, s.admitted, s.decisions, want)
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

func hotChecks(where string, rows []row, parallel bool) []check {
	best := bestPeer(rows)
	var checks []check
	for _, name := range []string{nameRate, nameLimit} {
		us := named(rows, name)
		if parallel {
			checks = append(checks, faster(where, us, best, 1.3))
			continue
		}
		checks = append(checks,
			faster(where, us, named(rows, nameXTime), 2.5),
			faster(where, us, best, 1),
			costsAtMost(where, us, named(rows, nameSince), 1.6),
		)
	}
	return checks
}
