package main

import (
	"context"
	"fmt"
	"runtime"

	"dappco.re/go/core/go-ratelimit/project"
)

// heapSizes are numbers of projects, and of requests of one project.
var heapSizes = []int{1_000, 10_000, 100_000, 1_000_000}

// unlimited lets everything pass, and counts it in three windows.
var unlimited = &project.Limit{RequestsPerMinute: 1 << 40, RequestsPerHour: 1 << 40, RequestsPerDay: 1 << 40}

// projectHeap measures the heap that grows with the number of projects, and with the requests in the windows of one.
func projectHeap(b *bench) (result, error) {
	projects := report{name: "heap/projects", columns: []string{"bytes"},
		title: "heap of each of so many projects with three windows, two requests each; measured once"}
	requests := report{name: "heap/requests", columns: []string{"bytes"},
		title: "heap of a project with so many requests in each of three windows; measured once"}
	for _, n := range heapSizes {
		b.step(fmt.Sprintf("%d projects", n))
		projects.rows = append(projects.rows, heapRow(n, grow(newKeys(b.sized(n)), 2)))
		b.step(fmt.Sprintf("%d requests", n))
		requests.rows = append(requests.rows, heapRow(n, grow([]string{"acme"}, b.sized(n))))
	}
	return result{reports: []report{projects, requests}}, nil
}

func heapRow(n int, bytes float64) row {
	return row{growthName(n), ours, bytes, []string{fmt.Sprintf("%.0f", bytes)}}
}

// grow makes requests of each project, and returns how many bytes of heap are kept of each.
func grow(ids []string, requests int) float64 {
	in := spending(unlimited)
	defer in.stop()
	in.decide([]string{"the first"}) // so that what the limiter itself needs is there before
	before := measureHeap()
	for range requests {
		in.decide(ids)
	}
	defer runtime.KeepAlive(ids)
	return measureHeap().perKey(before, len(ids)).heap
}

// growthName returns a number as people read it: 10, 1,000 or 1,000,000.
func growthName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%d,%03d,%03d", n/1_000_000, n/1_000%1_000, n%1_000)
	}
	if n < 1_000 {
		return fmt.Sprint(n)
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
