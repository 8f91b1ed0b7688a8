package main

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// allocations counts what a decision allocates, admitted and denied.
func allocations(b *bench) (result, error) {
	rep := report{name: "allocs", title: "allocations a decision, on a key that is known", columns: []string{"admitted", "denied"}}
	var checks []check
	for _, c := range append(doors(), denying(append(limiters(), peers()...))...) {
		b.step(c.name)
		admitted, denied := allocs(c, plenty), allocs(c, spent)
		cells := []string{fmt.Sprintf("%.0f", admitted), fmt.Sprintf("%.0f", denied)}
		rep.rows = append(rep.rows, row{c.name, c.kind, admitted + denied, cells})
		if c.kind == ours {
			checks = append(checks, check{
				figure:   "allocs: " + c.name + ", admitted and denied",
				required: "0 and 0",
				measured: cells[0] + " and " + cells[1],
				pass:     admitted == 0 && denied == 0,
			})
		}
	}
	return result{reports: []report{rep}, checks: checks}, nil
}

func allocs(c contestant, q quota) float64 {
	const runs = 1000
	key := newKeys(1)
	in := c.build(q)
	defer in.stop()
	in.decide(key)
	return testing.AllocsPerRun(runs, func() { in.decide(key) })
}

// doors are the ways in that answer more than yes or no.
func doors() []contestant {
	return []contestant{
		{name: "project.Limiter.Spend", kind: ours, keyed: true, build: projectSpend},
		{name: nameLimit + ".Take", kind: ours, keyed: true, build: limitTake},
		{name: nameLimit + ".Peek", kind: ours, keyed: true, build: limitPeek},
	}
}

// projectSpend spends of a project that has count requests a minute, as many an hour and as many a day.
func projectSpend(q quota) instance {
	n := int(q.count)
	return spending(&project.Limit{RequestsPerMinute: n, RequestsPerHour: n, RequestsPerDay: n})
}

func limitTake(q quota) instance {
	l := limit.NewLimiter(itself, q.limit())
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if l.Take(key, 1).Allowed {
				n++
			}
		}
		return n
	}}
}

func limitPeek(q quota) instance {
	l := limit.NewLimiter(itself, q.limit())
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if l.Peek(key).Allowed {
				n++
			}
		}
		return n
	}}
}
