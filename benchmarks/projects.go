package main

import (
	"context"
	"slices"

	"dappco.re/go/core/go-ratelimit/project"
)

const (
	nameSpend        = "project.Limiter.Spend"
	nameOneWindow    = "Spend, requests a minute"
	nameThreeWindows = "Spend, requests a minute, an hour and a day"
)

// windows are count requests a minute, as many an hour and as many a day.
func (q quota) windows() *project.Limit {
	n := int(q.count)
	return &project.Limit{RequestsPerMinute: n, RequestsPerHour: n, RequestsPerDay: n}
}

// minute is the first of the windows alone.
func (q quota) minute() *project.Limit { return &project.Limit{RequestsPerMinute: int(q.count)} }

// windows compares a request that three windows count with one that one does.
func windows(b *bench) (result, error) {
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameOneWindow, kind: ours, build: func(q quota) instance { return spending(q.minute()) }},
		{name: nameThreeWindows, kind: ours, build: projectSpend},
	}
	r, err := turns(b, contestants, plenty, alone, slices.Repeat([]string{"project-01234567"}, chunk))
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	const name = "project/windows"
	return result{
		reports: []report{newCostReport(name, "one project, one goroutine; "+b.method(), "ns/request", rows)},
		checks:  []check{costsAtMost(name, named(rows, nameThreeWindows), named(rows, nameOneWindow), 1.5)},
		notes:   noise(name, r.cores(), 1),
	}, nil
}

func projectSpend(q quota) instance { return spending(q.windows()) }

// spending is a request of each project.
func spending(each *project.Limit) instance {
	ctx := context.Background()
	l := project.New(each)
	decide := func(keys []string) (n int) {
		for _, key := range keys {
			if d, err := l.Spend(ctx, project.Call{Project: key}); d.Allowed && err == nil {
				n++
			}
		}
		return n
	}
	return instance{decide: decide, close: func() { _ = l.Close() }}
}
