package main

import (
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

const (
	nameUnshared = "nothing is shared"
	nameShared1  = "1 project"
	nameShared2  = "100 projects"
	nameShared3  = "10,000 projects, 100 of which call"
)

// sharedQuotas compares calls to a model that is divided among so many projects that call it with calls to
// scopes of the same limits that are not shared. Each is reserved and settled, in memory, by one
// goroutine.
func sharedQuotas(b *bench) (result, error) {
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameUnshared, kind: ours, build: func(quota) instance { return dividedAmong(100, 100, false) }},
		{name: nameShared1, kind: ours, build: func(quota) instance { return dividedAmong(1, 1, true) }},
		{name: nameShared2, kind: ours, build: func(quota) instance { return dividedAmong(100, 100, true) }},
		{name: nameShared3, kind: ours, build: func(quota) instance { return dividedAmong(max(b.sized(10_000), 100), 100, true) }},
	}
	const name = "quota/shares"
	r, err := turns(b.finer(), contestants, plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	return result{
		reports: []report{newCostReport(name, "a call reserved and settled, one goroutine; "+b.finer().method(), "ns/call", rows)},
		checks: []check{
			costsAtMost(name, named(rows, nameShared2), named(rows, nameUnshared), 1.5),
			costsAtMost(name, named(rows, nameShared3), named(rows, nameUnshared), 1.5),
		},
		notes: noise(name, r.cores(), 1),
	}, nil
}

// dividedAmong returns a loop of calls of projects in turn, each with a limit on requests, to a model
// with limits on requests and on tokens. All projects have called once, some minutes ago; the first of
// them go on.
func dividedAmong(projects, active int, shared bool) instance {
	now, later := clock.New(), int64(0)
	e := engine.New(engine.Config{Store: store.NewMemoryAt(func() int64 { return now() + later }), Owned: true})
	per := func(u engine.Unit, d time.Duration) engine.Limit {
		return engine.Limit{Name: fmt.Sprint(u, d), Unit: u, Limit: limit.New(1<<40, d).Using(algorithm(d))}
	}
	scope := func(s *engine.Scope, limits ...engine.Limit) *engine.Scope {
		if err := e.SetRules(s, &engine.Rules{Limits: limits}); err != nil {
			panic(err)
		}
		return s
	}
	model := e.NewOwn("model", "model")
	if shared {
		model = e.NewShared("model", "model", nil)
	}
	scope(model, per(engine.Requests, time.Minute), per(engine.Tokens, time.Minute), per(engine.Requests, 24*time.Hour))
	all := make([]engine.Scopes, projects)
	for i := range all {
		name := fmt.Sprint("project", i)
		all[i] = engine.Scopes{scope(e.NewOwn(name+"/", name), per(engine.Requests, time.Minute)), model}
	}
	ctx := context.Background()
	var ask engine.Ask
	if err := ask.Set(1, callTokens, llm.Tokens{}); err != nil {
		panic(err)
	}
	used := llm.Tokens{Input: promptTokens, Output: outputTokens}
	call := func(s engine.Scopes) bool {
		c := engine.Call{Ask: ask}
		var r engine.Result
		if err := e.Try(ctx, &c, s, &r); err != nil || !r.Allowed() {
			return false
		}
		return r.Reservation.Commit(used)
	}
	for _, s := range all {
		call(s)
	}
	later = int64(3 * time.Minute)
	next := 0
	return instance{decide: func(keys []string) (n int) {
		for n < len(keys) && call(all[next]) {
			next = (next + 1) % active
			n++
		}
		return n
	}, close: func() { _ = e.Close() }}
}

// algorithm returns how quotas of models are counted: a minute is any 60 seconds, and days begin at midnight.
func algorithm(period time.Duration) limit.Algorithm {
	if period < 24*time.Hour {
		return limit.SlidingLog
	}
	return limit.FixedWindow
}
