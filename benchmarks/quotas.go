package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

const (
	model = "gpt-4o"

	nameAcquire = "TryAcquire + Commit"
	nameAllow   = "limit.Limiter.Allow"
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

// acquire compares a whole reservation, over three quotas and settled, with the cheapest decision
// there is: one limit, nothing to settle.
func acquire(b *bench) (result, error) {
	l := newModelLimiter()
	contestants := []contestant{
		{name: nameSince, kind: floor, build: timeSince},
		{name: nameAllow, kind: peer, build: limitLimiter},
		{name: nameAcquire, kind: ours, build: func(quota) instance {
			return instance{decide: func(keys []string) int {
				for range keys {
					r, _ := l.TryAcquire(model, 1200)
					r.Commit(900, 100)
				}
				return len(keys)
			}}
		}},
	}
	keys := make([]string, chunk*cores)
	for i := range keys {
		keys[i] = model
	}
	r, err := turns(b, contestants, plenty, together, keys)
	if err != nil {
		return result{}, err
	}
	rows := r.rows()
	checks := []check{costsAtMost("quota/acquire", named(rows, nameAcquire), named(rows, nameAllow), 3)}
	title := "one model, RPM, TPM and RPD, 2 goroutines on 2 cores; " + b.method()
	return result{
		reports: []report{newCostReport("quota/acquire", title, "ns", rows)},
		checks:  checks,
		notes:   noise("quota/acquire", r.cores(), cores),
	}, nil
}

// window compares Decide + RecordUsage with few and with many requests in the minute, and with a
// limiter that scans and sums its minute each time.
func window(b *bench) (result, error) {
	few, many := b.sized(fewEntries), b.sized(manyEntries)
	loops := []struct {
		name   string
		kind   kind
		turn   int // decisions between two looks at the clock
		decide loop
	}{
		{"up to 100 requests in the minute", ours, chunk, decideAndRecord(0, few)},
		{"100,000 requests in the minute", ours, chunk, decideAndRecord(many, 0)},
		{"scan and sum, 100,000 requests", peer, 8, scanAndSum(many)},
	}
	samples := make([][]sample, len(loops))
	for round := range b.rounds {
		b.step(fmt.Sprintf("round %d of %d", round+1, b.rounds))
		for i, l := range loops {
			samples[i] = append(samples[i], alone(l.decide, make([]string, l.turn), b.slice))
		}
	}
	var rows []row
	for i, l := range loops {
		rows = append(rows, row{name: l.name, kind: l.kind, value: medianOf(samples[i], sample.cost)})
	}
	title := "Decide + RecordUsage, one goroutine; " + b.method()
	return result{
		reports: []report{newCostReport("quota/window", title, "ns", rows)},
		checks: []check{
			faster("quota/window", rows[1], rows[2], 5000),
			costsAtMost("quota/window", rows[1], rows[0], 1.5),
		},
	}, nil
}

// decideAndRecord returns a loop over a limiter whose minute has so many requests in it when it
// begins. If most is not 0, it forgets them whenever there are that many.
func decideAndRecord(requests, most int) loop {
	l := newModelLimiter()
	for range requests {
		l.RecordUsage(model, 900, 100)
	}
	recorded := 0
	return func(keys []string) (admitted int) {
		for range keys {
			if l.Decide(model, 1200).Allowed {
				admitted++
			}
			l.RecordUsage(model, 900, 100)
			recorded++
			if recorded == most {
				l.Reset(model)
				recorded = 0
			}
		}
		return admitted
	}
}

// scanAndSum returns a loop over what most limiters for LLM APIs do: keep the minute in slices,
// drop what is too old from them, and add up the rest, on every call.
func scanAndSum(requests int) loop {
	type entry struct {
		at    time.Time
		count int
	}
	var (
		mu     sync.Mutex
		times  []time.Time
		tokens []entry
	)
	prune := func(now time.Time) {
		window := now.Add(-time.Minute)
		times = slices.DeleteFunc(times, func(t time.Time) bool { return t.Before(window) })
		tokens = slices.DeleteFunc(tokens, func(e entry) bool { return e.at.Before(window) })
	}
	canSend := func(estimate int) bool {
		mu.Lock()
		defer mu.Unlock()
		prune(time.Now())
		sum := 0
		for _, e := range tokens {
			sum += e.count
		}
		return len(times) < ample.MaxRPM && sum+estimate <= ample.MaxTPM
	}
	record := func(used int) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		prune(now)
		times = append(times, now)
		tokens = append(tokens, entry{now, used})
	}
	for range requests {
		now := time.Now()
		times, tokens = append(times, now), append(tokens, entry{now, 1000})
	}
	return func(keys []string) (admitted int) {
		for range keys {
			if canSend(1200) {
				admitted++
			}
			record(1000)
		}
		return admitted
	}
}
