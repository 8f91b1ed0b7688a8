package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	nameExpected = "gateway, reserves what is expected"
	nameMost     = "gateway, reserves the most"

	reserveWithin = 2 // percent of a call's cost
)

// reservers are the gateways that differ in what a limit in dollars reserves.
func reservers() []proxy {
	return []proxy{
		{name: nameExpected, kind: ours, start: reserves("expected")},
		{name: nameMost, kind: ours, start: reserves("most")},
	}
}

// reserves returns how to start a gateway in memory whose project has a limit in dollars beside its others.
func reserves(what string) func(upstream string) (door, error) {
	return func(upstream string) (door, error) {
		text := strings.Replace(gatewayConfig, "  search:\n", "  search:\n    dollars_per_day: 9_000_000\n    reserve: "+what+"\n", 1)
		r, err := runGateway(text+"prices: {"+bodyModel+": {input: 2.50, cached_input: 0.25, output: 10}}\n", "memory", upstream)
		if err != nil {
			return door{}, err
		}
		secret, _, err := r.Gateway.Keys().Create(context.Background(), "search", "benchmarks", time.Hour)
		return door{Address: r.Clients.String(), Path: "/mock", Secret: secret}, err
	}
}

// reserveCost measures a call that reserves the most that it can cost beside one that reserves what is expected. The
// two take turns, which are short: what disturbs the one disturbs the other.
func reserveCost(b *bench) (result, error) {
	const name = "gateway/reserve"
	u, err := newUpstream()
	if err != nil {
		return result{}, err
	}
	defer u.Close()
	had := b.freeCores()
	all, err := contest(u, wholeCall(), callers, reservers())
	if err != nil {
		return result{}, err
	}
	defer all.stop()
	f := b.finer()
	slice := max(5*f.slice, 5*time.Millisecond)
	for round := range f.rounds + 1 { // the first is to warm up
		b.step(fmt.Sprintf("round %d of %d", round, f.rounds))
		for i := range all {
			if err := all[(i+round)%len(all)].turn(slice, round > 0); err != nil {
				return result{}, err
			}
		}
	}
	rep := report{name: name, title: fmt.Sprintf("a call of 1 KB through gateways in memory, 64 connections; median of %d interleaved rounds of %v", f.rounds, slice),
		columns: []string{"requests/s", "gateway's CPU, µs", "of " + nameExpected, "quartiles"}}
	for _, c := range all {
		of := all.ratios(c.name, nameExpected, func(r round) float64 { return r.cpu })
		rep.rows = append(rep.rows, row{name: c.name, kind: c.kind, value: medianOf(c.rounds, func(r round) float64 { return r.cpu }), cells: []string{
			fmt.Sprintf("%.0f", medianOf(c.rounds, func(r round) float64 { return r.rate })),
			fmt.Sprintf("%.1f", medianOf(c.rounds, func(r round) float64 { return r.cpu })),
			fmt.Sprintf("%.1f%%", 100*median(of)),
			fmt.Sprintf("%.1f%% to %.1f%%", 100*of[len(of)/4], 100*of[len(of)*3/4]),
		}})
	}
	more := 100*median(all.ratios(nameMost, nameExpected, func(r round) float64 { return r.cpu })) - 100
	return result{reports: []report{rep}, notes: noise(name, had, cores), checks: []check{{
		figure:   fmt.Sprintf("%s: %s, CPU of a call over %s", name, nameMost, nameExpected),
		required: fmt.Sprintf("at most %d%%", reserveWithin),
		measured: fmt.Sprintf("%+.1f%%", more),
		pass:     more <= reserveWithin,
	}}}, nil
}

// ratios returns the figure of one contender as a part of another's, of each round, in order of size.
func (all contenders) ratios(us, them string, figure func(round) float64) []float64 {
	a, b := all.named(us).rounds, all.named(them).rounds
	of := make([]float64, len(a))
	for i := range a {
		of[i] = figure(a[i]) / figure(b[i])
	}
	slices.Sort(of)
	return of
}
