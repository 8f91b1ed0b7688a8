package main

import (
	"context"
	"fmt"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

const (
	nameLevel1  = "1 level and a model"
	nameLevel3  = "3 levels and a model"
	nameLevel5  = "5 levels and a model"
	maxPerLevel = 150 // nanoseconds
)

// levels compares calls of projects at several depths of a tree, each level of which has a limit in
// dollars. Each call is reserved and settled, in memory, by one goroutine. What a level costs is CPU:
// other programs make that longer too, but much less than the time that passes.
func levels(b *bench) (result, error) {
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameLevel1, kind: ours, build: func(quota) instance { return atDepth(1) }},
		{name: nameLevel3, kind: ours, build: func(quota) instance { return atDepth(3) }},
		{name: nameLevel5, kind: ours, build: func(quota) instance { return atDepth(5) }},
	}
	const name = "quota/levels"
	r, err := turns(b.finer(), contestants, plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	each := (meanCPU(r.samples[3]) - meanCPU(r.samples[1])) / 4
	return result{
		reports: []report{newCostReport(name, "a call with a price, reserved and settled, one goroutine; "+b.finer().method(), "ns/call", r.rows())},
		checks: []check{
			{
				figure:   name + ": CPU of each further level",
				required: fmt.Sprintf("at most %d ns", maxPerLevel),
				measured: fmt.Sprintf("%.0f ns", each),
				pass:     each <= maxPerLevel,
			},
			allocatesAtMost(name, contestants[2], 1),
			allocatesAtMost(name, contestants[3], 1),
		},
		notes: noise(name, r.cores(), 1),
	}, nil
}

// atDepth returns a loop of calls of a project at some depth of a tree, to a model with quotas.
func atDepth(depth int) instance {
	l := newModelLimiter()
	id, err := addLevels(l, depth)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	c := ratelimit.Call{Model: model, Estimated: callTokens, Project: id, Dollars: 3000}
	used := llm.Tokens{Input: promptTokens, Output: outputTokens}
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			res, d, err := l.TryAcquireCall(ctx, c)
			if err != nil || !d.Allowed {
				return n
			}
			res.CommitPriced(used, 1) // as good as nothing, so that the month is never used up
			n++
		}
		return n
	}, close: func() { _ = l.Close() }}
}

// addLevels gives a limiter a tree of projects, each with a limit in dollars a month. It returns the
// id of the one at a depth.
func addLevels(l *ratelimit.RateLimiter, depth int) (id string, err error) {
	limits := map[string]project.Limit{}
	names := strings.Split("acme/search/web/alice/bot", "/")[:depth]
	for i := range names {
		id = strings.Join(names[:i+1], "/")
		limits[id] = project.Limit{DollarsPerMonth: 9e6 * price.Dollar, Resets: limit.Calendar{Zone: "UTC"}}
	}
	_, err = l.NewProjects(project.Config{Limits: limits})
	return id, err
}
