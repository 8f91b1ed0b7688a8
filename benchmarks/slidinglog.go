package main

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

const (
	fewEntries  = 100
	manyEntries = 100_000
	// turnover is how many entries a second enter and leave a log whose window passes while we measure.
	turnover = 2_000_000

	denied = "denied"
	moving = "moving window"
)

// slidingLog compares a decision on a long log with one on a short log: where the window stands
// still and all is denied, and where it moves, so that entries leave and others are admitted.
func slidingLog(b *bench) (result, error) {
	var (
		rows   []row
		checks []check
	)
	for _, what := range []string{denied, moving} {
		few, many := logRows(b, what)
		rows = append(rows, few, many)
		checks = append(checks, costsAtMost("slidinglog", many, few, 1.5))
	}
	title := "sliding log, full, one goroutine; " + b.method()
	return result{reports: []report{newCostReport("slidinglog", title, "ns/decision", rows)}, checks: checks}, nil
}

func logRows(b *bench, what string) (few, many row) {
	keys := make([]string, chunk)
	sizes := [2]int{fewEntries, manyEntries}
	var (
		logs    [2]loop
		samples [2][]sample
	)
	for i, entries := range sizes {
		logs[i] = newLog(what, b.sized(entries))
	}
	for round := range b.rounds {
		b.step(fmt.Sprintf("%s, round %d of %d", what, round+1, b.rounds))
		for i, decide := range logs {
			decide(make([]string, b.sized(sizes[i]))) // fills the window
			samples[i] = append(samples[i], alone(decide, keys, b.slice))
		}
	}
	of := func(i int) row {
		name := fmt.Sprintf("%s, %d entries", what, sizes[i])
		return row{name: name, kind: ours, value: medianOf(samples[i], sample.cost)}
	}
	return of(0), of(1)
}

func newLog(what string, entries int) loop {
	window := time.Hour
	if what == moving {
		window = time.Duration(entries) * time.Second / turnover
	}
	l := limit.NewLimiter(nothing, limit.New(int64(entries), window).Using(limit.SlidingLog))
	return func(keys []string) (n int) {
		for range keys {
			if l.Allow(struct{}{}) {
				n++
			}
		}
		return n
	}
}
