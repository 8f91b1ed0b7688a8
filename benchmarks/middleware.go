package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

const (
	maxOverBare    = 1500 // nanoseconds
	maxAllocsAdded = 2
	fasterThanChi  = 2
)

// busy is more than a run can use up, and yet has no more digits than limits have: they are written
// into every response.
var busy = quota{100_000_000, time.Minute}

// answer is a response in memory. It is used again for the next request.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }
func (a *answer) WriteHeader(status int)      { a.status = status }

// exchange is a request of a project and the answer to it.
type exchange struct {
	request *http.Request
	answer  answer
}

func newExchange(project string) *exchange {
	r := must(http.NewRequest(http.MethodGet, "/", nil))
	r.Header.Set(headerProject, project)
	return &exchange{request: r, answer: answer{header: http.Header{}}}
}

// serve reports whether the request came through to the handler.
func (x *exchange) serve(h http.Handler) bool {
	clear(x.answer.header)
	x.answer.status = 0
	h.ServeHTTP(&x.answer, x.request)
	return x.answer.status == http.StatusOK
}

// middleware measures requests of one project that all pass, with the response headers that say
// what is left.
func middleware(name, about string, run runner, goroutines int) scenario {
	keys := slices.Repeat([]string{"project-01234567"}, chunk*goroutines)
	return scenario{name, about, func(b *bench) (result, error) {
		all := middlewares()
		contestants := make([]contestant, len(all))
		for i, m := range all {
			contestants[i] = m.contestant()
		}
		r, err := turns(b, contestants, busy, run, keys)
		if err != nil {
			return result{}, err
		}
		rows := r.rows()
		us, bare := named(rows, nameMiddleware), named(rows, nameBare)
		allocs := map[string]float64{}
		for i, m := range all {
			allocs[m.name] = m.allocs(keys[0])
			rows[i].cells = []string{fmt.Sprintf("%.1f", rows[i].value-bare.value), fmt.Sprintf("%.0f", allocs[m.name])}
		}
		rep := newCostReport(name, about+"; "+b.method(), "ns/request", rows)
		rep.columns = append(rep.columns, "over bare, ns", "allocations")
		var checks []check
		if goroutines == 1 {
			checks = append(checks, fasterOverBare(name, named(rows, nameOneMinute), named(rows, nameHTTPRate), bare))
			checks = append(checks, overBareChecks(name, us.value-bare.value, allocs[nameMiddleware]-allocs[nameBare])...)
		}
		return result{reports: []report{rep}, checks: checks, notes: noise(name, r.cores(), goroutines)}, nil
	}}
}

// contestant serves as many requests as it is given keys, all of the same project.
func (m wrapping) contestant() contestant {
	return contestant{name: m.name, kind: m.kind, build: func(q quota) instance {
		h := m.wrap(q, handler)
		return instance{close: h.close, decide: func(keys []string) (n int) {
			x := newExchange(keys[0])
			for range keys {
				if x.serve(h.Handler) {
					n++
				}
			}
			return n
		}}
	}}
}

// allocs counts what a request allocates, the handler's own included.
func (m wrapping) allocs(project string) float64 {
	const runs = 1000
	h := m.wrap(busy, handler)
	defer instance{close: h.close}.stop()
	x := newExchange(project)
	return testing.AllocsPerRun(runs, func() { x.serve(h.Handler) })
}

// fasterOverBare compares whole requests, and says beside it what remains of them without the handler.
func fasterOverBare(where string, us, them, bare row) check {
	c := faster(where, us, them, fasterThanChi)
	c.measured += fmt.Sprintf(", %.2fx without the handler's own cost", (them.value-bare.value)/(us.value-bare.value))
	return c
}

// overBareChecks are about what our middleware adds to a request, in nanoseconds and in allocations.
func overBareChecks(where string, cost, allocs float64) []check {
	return []check{{
		figure:   where + ": " + nameMiddleware + ", over the bare handler",
		required: fmt.Sprintf("less than %d ns", maxOverBare),
		measured: fmt.Sprintf("%.0f", cost),
		pass:     cost < maxOverBare,
	}, {
		figure:   where + ": " + nameMiddleware + ", allocations over the bare handler's",
		required: fmt.Sprintf("at most %d", maxAllocsAdded),
		measured: fmt.Sprintf("%.0f", allocs),
		pass:     allocs <= maxAllocsAdded,
	}}
}
