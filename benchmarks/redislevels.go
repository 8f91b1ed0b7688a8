package main

import (
	"context"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// redisLevels measures how much of the server's time a call costs that is charged to a model and to
// projects at several depths of a tree, each of which has limits in dollars. It is reserved and
// settled.
func redisLevels(b *bench, server *redistest.Server) (result, error) {
	rows, err := redisTurnsBy(b, server, []redisContestant{
		{name: nameLevel1, kind: ours, build: redisAtDepth(1)},
		{name: nameLevel3, kind: ours, build: redisAtDepth(3)},
		{name: nameLevel5, kind: ours, build: redisAtDepth(5)},
	}, newKeys(1), asked.serverCPU)
	if err != nil {
		return result{}, err
	}
	const name = "redis/levels"
	r := newCostReport(name, "a call with a price, reserved and settled in Redis, 64 goroutines; "+b.redisMethod(), "server CPU, ns/call", rows)
	r.columns = append(r.columns, "a second", "client CPU, ns", "server CPU, ns")
	return result{
		reports: []report{r},
		checks:  []check{costsAtMost(name, named(rows, nameLevel5), named(rows, nameLevel1), 1.6)},
	}, nil
}

func redisAtDepth(depth int) func(addr string) (asker, error) {
	return func(addr string) (asker, error) {
		s, err := openRedis(addr, redisstore.Config{Timeout: patience})
		if err != nil {
			return asker{}, err
		}
		l, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: 1 << 40, MaxTPM: 1 << 50}}})
		if err != nil {
			return asker{}, err
		}
		id, err := addLevels(l, depth)
		if err != nil {
			return asker{}, err
		}
		c := ratelimit.Call{Model: model, Estimated: callTokens, Project: id, Dollars: 3000}
		used := llm.Tokens{Input: promptTokens, Output: outputTokens}
		ask := func(string) (bool, error) {
			res, d, err := l.TryAcquireCall(context.Background(), c)
			res.CommitPriced(used, 1)
			return d.Allowed, err
		}
		return asker{ask, func() { l.Close(); s.Close() }}, nil
	}
}
