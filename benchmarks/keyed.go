package main

import (
	"fmt"
	"runtime"
)

// access is how requests spread over keys.
type access struct {
	name  string
	order func(n int) func() int
}

var spreads = []access{{"uniform", uniform}, {"zipf", zipf}}

// manyKeys measures decisions on n keys that are all known already, by 2 goroutines.
func manyKeys(name string, n int) scenario {
	about := fmt.Sprintf("%d string keys of %d bytes, 2 goroutines on 2 cores, uniform and zipf", n, keySize)
	return scenario{name, about, func(b *bench) (result, error) {
		races, err := keyedRaces(b, keyed(), newKeys(b.sized(n)))
		if err != nil {
			return result{}, err
		}
		var res result
		for i, spread := range spreads {
			where := name + "/" + spread.name
			title := fmt.Sprintf("%d keys, %s, 2 goroutines on 2 cores; %s", n, spread.name, b.method())
			rows := races[i].rows()
			res.reports = append(res.reports, newCostReport(where, title, "ns/decision", rows))
			res.notes = append(res.notes, noise(where, races[i].cores(), cores)...)
			if where == "keyed/1M/uniform" {
				res.checks = append(res.checks, faster(where, named(rows, nameLimit), bestPeer(rows), 3))
			}
		}
		return res, nil
	}}
}

// keyedRaces is one race for each spread. It builds every contestant anew in every round, so that
// no more than one of them is in memory: a peer that allocates would otherwise pay for collecting
// around the others' keys.
func keyedRaces(b *bench, contestants []contestant, keys []string) ([]race, error) {
	requests := make([][]string, len(spreads))
	races := make([]race, len(spreads))
	for i, spread := range spreads {
		requests[i] = accesses(keys, b.sized(1<<20), spread.order(len(keys)))
		races[i] = newRace(contestants)
	}
	for round := range b.rounds {
		for i, c := range contestants {
			b.step(fmt.Sprintf("round %d of %d: %s", round+1, b.rounds, c.name))
			in := c.build(yearly)
			in.decide(keys)
			runtime.GC()
			for j, r := range races {
				if err := r.add(i, yearly, together(in.decide, requests[j], b.slice)); err != nil {
					return nil, err
				}
			}
			in.stop()
		}
	}
	return races, nil
}
