package main

import (
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

const (
	nameUnshared = "nothing is shared"
	nameShared1  = "1 project"
	nameShared2  = "100 projects"
	nameShared3  = "1,000 projects"
)

// sharedQuotas compares calls to a model that is divided among so many projects that call it with calls to
// scopes of the same limits that are not shared. Each is reserved and settled, in memory, by one
// goroutine.
func sharedQuotas(b *bench) (result, error) {
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameUnshared, kind: ours, build: func(quota) instance { return dividedAmong(100, false) }},
		{name: nameShared1, kind: ours, build: func(quota) instance { return dividedAmong(1, true) }},
		{name: nameShared2, kind: ours, build: func(quota) instance { return dividedAmong(100, true) }},
		{name: nameShared3, kind: ours, build: func(quota) instance { return dividedAmong(1_000, true) }},
	}
	const name = "quota/shares"
	r, err := turns(b.finer(), contestants, plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	return result{
		reports: []report{newCostReport(name, "a call reserved and settled, one goroutine; "+b.finer().method(), "ns/call", rows)},
		checks:  []check{costsAtMost(name, named(rows, nameShared2), named(rows, nameUnshared), 1.5)},
		notes:   noise(name, r.cores(), 1),
	}, nil
}

// dividedAmong returns a loop of calls of projects in turn, each with a limit on requests, to a model
// with limits on requests and on tokens.
func dividedAmong(projects int, shared bool) instance {
	e := admission.New(admission.Config{Store: store.NewMemory(), Owned: true, Clock: func() int64 { return time.Now().UnixNano() }})
	per := func(u admission.Unit, d time.Duration) admission.Limit {
		return admission.Limit{Name: fmt.Sprint(u, d), Unit: u, Limit: limit.New(1<<40, d).Using(limit.FixedWindow)}
	}
	scope := func(s *admission.Scope, limits ...admission.Limit) *admission.Scope {
		if err := e.SetRules(s, &admission.Rules{Limits: limits}); err != nil {
			panic(err)
		}
		return s
	}
	model := e.NewOwn("model", "model")
	if shared {
		model = e.NewShared("model", "model", nil)
	}
	scope(model, per(admission.Requests, time.Minute), per(admission.Tokens, time.Minute), per(admission.Requests, 24*time.Hour))
	all := make([]admission.Scopes, projects)
	for i := range all {
		name := fmt.Sprint("project", i)
		all[i] = admission.Scopes{scope(e.NewOwn(name+"/", name), per(admission.Requests, time.Minute)), model}
	}
	ctx := context.Background()
	var ask admission.Ask
	if err := ask.Set(1, callTokens, llm.Tokens{}); err != nil {
		panic(err)
	}
	used := llm.Tokens{Input: promptTokens, Output: outputTokens}
	next := 0
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			c := admission.Call{Ask: ask}
			var r admission.Result
			if err := e.Try(ctx, &c, all[next], &r); err != nil || !r.Allowed() {
				return n
			}
			r.Reservation.Commit(used)
			next = (next + 1) % projects
			n++
		}
		return n
	}, close: func() { _ = e.Close() }}
}
