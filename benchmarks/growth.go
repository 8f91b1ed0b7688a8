package main

import (
	"context"
	"fmt"
	"runtime"

	"dappco.re/go/core/go-ratelimit/project"
)

// growths are the numbers of projects, and of requests of one project, between which costs must not grow.
var growths = []int{1_000, 10_000, 100_000, 1_000_000}

// unlimited lets everything pass, and counts it in three windows.
var unlimited = &project.Limit{RequestsPerMinute: 1 << 40, RequestsPerHour: 1 << 40, RequestsPerDay: 1 << 40}

// grown is what a limiter of so many projects, or requests, costs.
type grown struct {
	bytes float64 // of heap, for each project
	cpu   float64 // nanoseconds a decision
}

// growth measures what grows with the number of projects, and with the requests in the windows of one.
func growth(b *bench) (result, error) {
	var byProjects, byRequests []grown
	for _, n := range growths {
		b.step(fmt.Sprintf("%d projects", n))
		byProjects = append(byProjects, grow(b, newKeys(b.sized(n)), 2))
		b.step(fmt.Sprintf("%d requests", n))
		byRequests = append(byRequests, grow(b, []string{"acme"}, b.sized(n)))
	}
	bytes, cpu := func(g grown) float64 { return g.bytes }, func(g grown) float64 { return g.cpu }
	return result{reports: []report{
		growthReport("growth/projects/memory", "heap of each of so many projects with three windows, two requests each; measured once", "bytes", byProjects, bytes),
		growthReport("growth/requests/memory", "heap of a project with so many requests in each of three windows; measured once", "bytes", byRequests, bytes),
		growthReport("growth/projects/time", "CPU of a decision among so many projects with three windows; "+b.method(), "ns", byProjects, cpu),
		growthReport("growth/requests/time", "CPU of a decision with so many requests in three windows; "+b.method(), "ns", byRequests, cpu),
	}}, nil
}

// grow makes requests of each project, and measures what is kept and what further ones cost.
func grow(b *bench, ids []string, requests int) grown {
	in := spending(unlimited)
	defer in.stop()
	in.decide([]string{"the first"}) // so that what the limiter itself needs is there before
	before := measureHeap()
	for range requests {
		in.decide(ids)
	}
	g := grown{bytes: measureHeap().perKey(before, len(ids)).heap}
	runtime.KeepAlive(ids)
	var samples []sample
	for range b.rounds {
		samples = append(samples, alone(in.decide, ids, b.slice))
	}
	g.cpu = medianOf(samples, func(s sample) float64 { return float64(s.cpu.Nanoseconds()) / float64(s.decisions) })
	return g
}

func growthReport(name, title, unit string, all []grown, of func(grown) float64) report {
	r := report{name: name, title: title, columns: []string{unit}}
	for i, g := range all {
		r.rows = append(r.rows, row{growthName(growths[i]), ours, of(g), []string{fmt.Sprintf("%.0f", of(g))}})
	}
	return r
}

// growthName returns a number as people read it: 1,000 or 1,000,000.
func growthName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%d,%03d,%03d", n/1_000_000, n/1_000%1_000, n%1_000)
	}
	return fmt.Sprintf("%d,%03d", n/1_000, n%1_000)
}

// spending returns a loop of a request of each project.
func spending(each *project.Limit) instance {
	ctx := context.Background()
	l := project.New(each)
	decide := func(keys []string) (n int) {
		for _, key := range keys {
			if d, err := l.Spend(ctx, project.Call{Project: key}); d.Allowed && err == nil {
				n++
			}
		}
		return n
	}
	return instance{decide: decide, close: func() { _ = l.Close() }}
}
