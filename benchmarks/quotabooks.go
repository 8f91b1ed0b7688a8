package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

const (
	nameUnbooked       = "memory, without books"
	nameBooked         = "memory, with books"
	nameUnbookedSQLite = "SQLite, without books"
	nameBookedSQLite   = "SQLite, with books"
	nameUnbookedRedis  = "Redis, without books"
	nameBookedRedis    = "Redis, with books"

	bookOwners  = 500
	bookCallers = 64 // of SQLite and Redis at a time, as a gateway under load has them

	// What a call costs the gateway in all, by docs/performance.md, and the part that the books may cost.
	gatewayMemory = 62_000 // nanoseconds
	gatewaySQLite = 95_000
	gatewayRedis  = 140_000
	booksPercent  = 3
)

// booked compares calls that are booked with calls that are not, by the CPU of this process. Each is
// reserved and settled.
func booked(b *bench, server *redistest.Server) (result, error) {
	dir, err := os.MkdirTemp("", "books")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	sqlite := func(name string, booked bool) func(quota) instance {
		return func(quota) instance {
			l, err := ratelimit.NewWithSQLiteConfig(filepath.Join(dir, name), ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: 1 << 40, MaxTPM: 1 << 40}}})
			if err != nil {
				panic(err)
			}
			return booking(l, booked, bookCallers)
		}
	}
	redis := func(database string, booked bool) func(quota) instance {
		return func(quota) instance {
			s, err := redisstore.New(redisstore.Config{URL: server.URL() + "/" + database, Timeout: patience})
			if err != nil {
				panic(err)
			}
			l, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: 1 << 40, MaxTPM: 1 << 40}}})
			if err != nil {
				panic(err)
			}
			i := booking(l, booked, bookCallers)
			i.close = func() { l.Close(); s.Close() }
			return i
		}
	}
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameUnbooked, kind: ours, build: func(quota) instance { return booking(newModelLimiter(), false, 1) }},
		{name: nameBooked, kind: ours, build: func(quota) instance { return booking(newModelLimiter(), true, 1) }},
		{name: nameUnbookedSQLite, kind: ours, build: sqlite("without", false)},
		{name: nameBookedSQLite, kind: ours, build: sqlite("with", true)},
		{name: nameUnbookedRedis, kind: ours, build: redis("0", false)},
		{name: nameBookedRedis, kind: ours, build: redis("1", true)},
	}
	const name = "quota/books"
	r, err := turns(b.finer(), contestants, plenty, alone, make([]string, chunk))
	if err != nil {
		return result{}, err
	}
	cost := func(with, without int, gateway float64) check {
		a, b := meanCPU(r.samples[with]), meanCPU(r.samples[without])
		part := 100 * (a - b) / gateway
		return check{
			figure:   fmt.Sprintf("%s: CPU of a call, %s : without", name, contestants[with].name),
			required: fmt.Sprintf("at most %d%% of a gateway's CPU", booksPercent),
			measured: fmt.Sprintf("%.2fx, %.0f ns, %.1f%%", a/b, a-b, part),
			pass:     part <= booksPercent,
		}
	}
	return result{
		reports: []report{newCostReport(name, fmt.Sprintf("a call reserved and settled, of %d owners; in SQLite and Redis %d at a time; %s", bookOwners, bookCallers, b.finer().method()), "ns/call", r.rows())},
		checks:  []check{cost(2, 1, gatewayMemory), cost(4, 3, gatewaySQLite), cost(6, 5, gatewayRedis)},
	}, nil
}

// meanCPU returns what a call has cost on average. A median would leave out what is done now and then.
func meanCPU(samples []sample) float64 {
	var all sample
	for _, s := range samples {
		all.cpu += s.cpu
		all.decisions += s.decisions
	}
	return all.cpuCost()
}

// booking returns a loop of calls by a number of callers, which are booked or not.
func booking(l *ratelimit.RateLimiter, booked bool, callers int) instance {
	entries := make([]books.Entry, bookOwners)
	for i := range entries {
		entries[i].Owner = books.Owner{Project: fmt.Sprint("acme/team-", i%100), Model: fmt.Sprint("openai/gpt-6-", i/100), Key: fmt.Sprint("key", i%100)}
		entries[i].Amounts = books.Amounts{books.Requests: 1, books.Input: promptTokens, books.Output: outputTokens}
	}
	var calls atomic.Int64
	one := func() bool {
		res, d, err := l.TryAcquireCall(context.Background(), ratelimit.Call{Model: model, Estimated: callTokens})
		if err != nil || !d.Allowed {
			return false
		}
		if booked {
			(*engine.Reservation)(res).Book(entries[calls.Add(1)%bookOwners])
		}
		res.Commit(promptTokens, outputTokens)
		return true
	}
	return instance{decide: func(keys []string) int {
		var passed atomic.Int64
		var all sync.WaitGroup
		for i := range min(callers, len(keys)) {
			do := func() {
				for range (len(keys) - i + callers - 1) / callers {
					if one() {
						passed.Add(1)
					}
				}
			}
			if callers == 1 {
				do()
			} else {
				all.Go(do)
			}
		}
		all.Wait()
		return int(passed.Load())
	}, close: func() { _ = l.Close() }}
}
