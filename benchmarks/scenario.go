package main

import (
	"fmt"
	"time"
)

// bench is how much effort a run makes.
type bench struct {
	slice  time.Duration     // one contestant, one round
	rounds int               // contestants take turns, this many times
	shrink int               // divides the numbers of keys and entries; 1 but in tests
	step   func(what string) // says where we are

	profiles string // the directory of profiles; empty: none
	before   string // an earlier build of this program, whose gateways run beside ours; empty: none
}

// finer takes as long, in more and shorter turns: for ratios of a few percent.
func (b *bench) finer() *bench {
	const times = 6
	f := *b
	f.slice, f.rounds = max(b.slice/times, time.Millisecond), b.rounds*times
	return &f
}

// sized is n keys or entries, made smaller in tests.
func (b *bench) sized(n int) int { return max(n/b.shrink, 1) }

// method says how the figures of a scenario came about.
func (b *bench) method() string {
	return fmt.Sprintf("median of %d interleaved rounds of %v", b.rounds, b.slice)
}

// scenario is one situation in which contestants are compared.
type scenario struct {
	name  string // what -run matches
	about string
	run   func(*bench) (result, error)
}

// result is what a scenario found out.
type result struct {
	reports []report
	checks  []check
	notes   []string // what a reader should know before believing the figures
}

// noise is a note if the process had clearly fewer cores than it has goroutines.
func noise(where string, had float64, wanted int) []string {
	if had >= 0.93*float64(wanted) {
		return nil
	}
	return []string{fmt.Sprintf("%s: noisy, other programs left us %.2f of %d cores", where, had, wanted)}
}

// scenarios are all there are, in the order in which they run.
func scenarios() []scenario {
	return []scenario{
		hot("hot/admitted", "one limiter that always admits, one goroutine", plenty, alone, 1),
		hot("hot/denied", "one limiter that is used up, one goroutine", spent, alone, 1),
		hot("hot/admitted/parallel", "one limiter that always admits, 2 goroutines on 2 cores", plenty, together, cores),
		hot("hot/denied/parallel", "one limiter that is used up, 2 goroutines on 2 cores", spent, together, cores),
		manyKeys("keyed/100k", 100_000),
		manyKeys("keyed/1M", 1_000_000),
		{"memory", "heap a key with 1M string keys, and what of it the collector scans", memory},
		waiting("wait/1k", 1_000),
		waiting("wait/10k", 10_000),
		waiting("wait/100k", 100_000),
		waiting("wait/1M", 1_000_000),
		{"sqlite", "Acquire on a SQLite file by 64 goroutines, combined, one by one, and from 4 processes", sqlite},
		redisKeys("redis/hot", 1),
		redisKeys("redis/1k", 1_000),
		withRedis("redis/calls", "a call of a project with six windows and of a model, reserved and settled in Redis, by 1, 64 and 256 goroutines", redisCalls),
		{"project/heap", "heap of 1,000 to 1M projects, and of a project with 1,000 to 1M requests in its windows", projectHeap},
		{"growth", "CPU of a call by the number of projects, keys, models, levels, calls in the windows, under way and waiting, and bytes, on each store", growing},
		calls("llmhttp/call", "a call of 1 KB over loopback and its answer, limited and not, one goroutine", alone),
		calls("llmhttp/call/parallel", "a call of 1 KB over loopback and its answer, limited and not, 64 goroutines", crowded),
		proxying("gateway/json", "a call of 1 KB and its answer through proxies, 64 connections", wholeCall(), callers, asFastAndNearMemory),
		proxying("gateway/json/alone", "a call of 1 KB and its answer through proxies, one connection", wholeCall(), 1, nearMemoryAlone),
		proxying("gateway/sse", "a call of 1 KB and its answer in 20 chunks through proxies, 64 connections", streamedCall(), callers, asFastAndSoon),
		proxying("gateway/sse/alone", "a call of 1 KB and its answer in 20 chunks through proxies, one connection", streamedCall(), 1, asSoon),
		{"gateway/budget", "how much of a budget 60 workers use, whose calls reserve the most or what is expected", budgetUse},
		withRedis("gateway/viewers", "what a viewer of a fleet of four gateways with 1,000 projects costs each of them", viewing),
		{"gateway/streams", "memory of proxies for each of 5,000 open streams", manyStreams},
		{"allocs", "allocations a decision", allocations},
	}
}
