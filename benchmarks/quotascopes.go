package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

const (
	model = "gpt-4o"

	nameModel    = "a model"
	nameBoth     = "a project and a model"
	nameTwoOf    = "the engine, 2 scopes"
	nameSixOf    = "the engine, 6 scopes"
	callTokens   = 1200
	promptTokens = 900
	outputTokens = 100
)

// ample is a quota that no loop here can use up, in the dimensions that most models have.
var ample = ratelimit.ModelQuota{MaxRPM: 1 << 40, MaxTPM: 1 << 50, MaxRPD: 1 << 40}

func newModelLimiter() *ratelimit.RateLimiter {
	l, err := ratelimit.NewWithConfig(ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: ample}})
	if err != nil {
		panic(err)
	}
	return l
}

// scopes compares calls that are charged to a model alone, to a project and a model, and to six
// scopes. Each is reserved and settled, in memory, by one goroutine.
func scopes(b *bench) (result, error) {
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameModel, kind: ours, build: func(quota) instance { return reserving(newModelLimiter(), "") }},
		{name: nameBoth, kind: ours, build: func(quota) instance { return reserving(newProjectLimiter(), "search") }},
		{name: nameTwoOf, kind: ours, build: func(quota) instance { return engineOver(0) }},
		{name: nameSixOf, kind: ours, build: func(quota) instance { return engineOver(4) }},
	}
	const name = "quota/scopes"
	r, err := turns(b.finer(), contestants, plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	checks := []check{
		costsAtMost(name, named(rows, nameBoth), named(rows, nameModel), 3),
		costsAtMost(name, named(rows, nameSixOf), named(rows, nameTwoOf), 2),
	}
	for _, c := range contestants[1:3] {
		checks = append(checks, allocatesAtMost(name, c, 6))
	}
	return result{
		reports: []report{newCostReport(name, "a call reserved and settled, one goroutine; "+b.finer().method(), "ns/call", rows)},
		checks:  checks,
		notes:   noise(name, r.cores(), 1),
	}, nil
}

func allocatesAtMost(where string, c contestant, most int) check {
	in := c.build(plenty)
	defer in.stop()
	one := make([]string, 1)
	in.decide(one)
	got := testing.AllocsPerRun(1000, func() { in.decide(one) })
	return check{
		figure:   fmt.Sprintf("%s: %s, allocations", where, c.name),
		required: fmt.Sprintf("at most %d", most),
		measured: fmt.Sprintf("%.0f", got),
		pass:     got <= float64(most),
	}
}

// newProjectLimiter returns a limiter whose projects have three windows of requests and three of
// tokens, beside the quotas of the model.
func newProjectLimiter() *ratelimit.RateLimiter {
	const n = 1 << 40
	l := newModelLimiter()
	if _, err := l.NewProjects(project.Config{Default: &project.Limit{
		RequestsPerMinute: n, RequestsPerHour: n, RequestsPerDay: n,
		TokensPerMinute: n, TokensPerHour: n, TokensPerDay: n,
	}}); err != nil {
		panic(err)
	}
	return l
}

// reserving returns a loop of calls that are reserved and settled for a project; empty is none.
func reserving(l *ratelimit.RateLimiter, project string) instance {
	ctx := context.Background()
	c := ratelimit.Call{Model: model, Estimated: callTokens, Project: project}
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			res, d, err := l.TryAcquireCall(ctx, c)
			if err != nil || !d.Allowed {
				return n
			}
			res.Commit(promptTokens, outputTokens)
			n++
		}
		return n
	}, close: func() { _ = l.Close() }}
}

// engineOver returns a loop of calls that the engine charges to a scope as a model has them, to one
// as a project has them, and to more scopes that have a limit of requests and one of tokens.
func engineOver(more int) instance {
	e := engine.New(engine.Config{Store: store.NewMemory(), Owned: true, Clock: func() int64 { return time.Now().UnixNano() }})
	scope := func(s *engine.Scope, limits ...engine.Limit) *engine.Scope {
		if err := e.SetRules(s, &engine.Rules{Limits: limits}); err != nil {
			panic(err)
		}
		return s
	}
	per := func(u engine.Unit, d time.Duration) engine.Limit {
		return engine.Limit{Name: fmt.Sprint(u, d), Unit: u, Limit: limit.New(1<<40, d).Using(limit.FixedWindow)}
	}
	const day = 24 * time.Hour
	requests, tokens := engine.Requests, engine.AllTokens
	var all engine.Scopes
	for i := range more {
		all = append(all, scope(e.NewOwn(fmt.Sprint("more", i), "more"), per(requests, time.Minute), per(tokens, time.Minute)))
	}
	all = append(all,
		scope(e.NewOwn("project", "project"), per(requests, time.Minute), per(requests, time.Hour), per(requests, day),
			per(tokens, time.Minute), per(tokens, time.Hour), per(tokens, day)),
		scope(e.NewShared("model", "model", nil), per(requests, time.Minute), per(tokens, time.Minute), per(requests, day)))
	ctx := context.Background()
	used := llm.Tokens{Input: promptTokens, Output: outputTokens}
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			c := engine.Call{Estimated: callTokens}
			var r engine.Result
			if err := e.Try(ctx, &c, all, &r); err != nil || !r.Allowed() {
				return n
			}
			r.Reservation.Commit(used)
			n++
		}
		return n
	}, close: func() { _ = e.Close() }}
}
