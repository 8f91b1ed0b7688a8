package main

import (
	"context"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// redisCalls measures calls as gateways make them: each is charged to a project with six windows and to a
// model with three quotas, reserved and settled.
func redisCalls(b *bench, server *redistest.Server) (result, error) {
	keys := newKeys(100)
	rows, err := redisTurnsBy(b, server, []redisContestant{
		{"one project, 1 caller", ours, redisCallsOf(keys[:1]), 1},
		{"one project, 64 callers", ours, redisCallsOf(keys[:1]), 64},
		{"one project, 256 callers", ours, redisCallsOf(keys[:1]), 256},
		{"100 projects, 64 callers", ours, redisCallsOf(keys), 64},
	}, keys, asked.serverCPU)
	if err != nil {
		return result{}, err
	}
	r := newCostReport("redis/calls", "a call of a project and a model, reserved and settled in Redis; "+b.redisMethod(), "server CPU, ns/call", rows)
	r.columns = append(r.columns, "a second", "client CPU, ns", "server CPU, ns")
	return result{reports: []report{r}}, nil
}

// redisCallsOf makes calls of projects, of the one with the key's name or of the only one.
func redisCallsOf(projects []string) func(addr string) (asker, error) {
	return func(addr string) (asker, error) {
		s, err := openRedis(addr, redisstore.Config{Timeout: patience})
		if err != nil {
			return asker{}, err
		}
		l, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: 1 << 40, MaxTPM: 1 << 50, MaxRPD: 1 << 40}}})
		if err != nil {
			return asker{}, err
		}
		limits := map[string]project.Limit{}
		for _, id := range projects {
			limits[id] = project.Limit{
				RequestsPerMinute: 1 << 40, RequestsPerDay: 1 << 40, TokensPerMinute: 1 << 50, TokensPerDay: 1 << 50,
				DollarsPerDay: 9e6 * price.Dollar, DollarsPerMonth: 9e6 * price.Dollar,
			}
		}
		if _, err := l.NewProjects(project.Config{Limits: limits}); err != nil {
			return asker{}, err
		}
		used := llm.Tokens{Input: promptTokens, Output: outputTokens}
		ask := func(key string) (bool, error) {
			if len(projects) == 1 {
				key = projects[0]
			}
			res, d, err := l.TryAcquireCall(context.Background(), ratelimit.Call{Model: model, Estimated: callTokens, Project: key, Dollars: 3000})
			res.CommitPriced(used, 1)
			return d.Allowed, err
		}
		return asker{ask, func() { l.Close(); s.Close() }}, nil
	}
}
