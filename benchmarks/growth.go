package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// The calls of the scenarios, and a quota that none of them can use up, in the dimensions that most models have.
const (
	model        = "gpt-4o"
	callTokens   = 1200
	promptTokens = 900
	outputTokens = 100
)

var ample = ratelimit.ModelQuota{MaxRPM: 1 << 40, MaxTPM: 1 << 50, MaxRPD: 1 << 40}

// dimension is something that there can be much of.
type dimension struct {
	name  string
	sizes []int
	alone bool // it does not concern the store, so it is measured in memory alone

	// build returns a call on a limiter that has n of it. The limiter has a model, and another one named elsewhere.
	build func(l *ratelimit.RateLimiter, n int) (call func(i int) error, err error)
}

const elsewhere = "elsewhere"

// dimensionModels is the name of the dimension of models. Their quotas are set when the limiter is made.
const dimensionModels = "models"

// dimensions are all that a call's cost might grow with.
var dimensions = []dimension{
	{"projects", many, false, manyProjects},
	{"keys", many, false, manyVirtualKeys},
	{dimensionModels, many[:3], false, manyModels},
	{"levels of projects", []int{1, 2, 4, 8}, false, manyLevels},
	{"calls in the windows", many, false, manyCalls},
	{"calls under way", many[:3], false, manyUnderWay},
	{"waiting calls", []int{10, 100, 1_000}, false, manyWaiting},
	{"bytes of the body", []int{1 << 10, 10 << 10, 100 << 10, 1 << 20}, true, manyBytes},
}

var many = []int{10, 1_000, 10_000, 100_000}

// ofOneProject returns a call of the project p and the model.
func ofOneProject(l *ratelimit.RateLimiter) func(int) error {
	return func(int) error { return callOnce(l, ratelimit.Call{Model: model, Project: "p"}) }
}

func manyProjects(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	_, err := l.NewProjects(project.Config{Default: sixWindows})
	return each(n, func(i int) error { return callOnce(l, ratelimit.Call{Model: model, Project: fmt.Sprint("p", i)}) }, err)
}

func manyVirtualKeys(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	projects, err := l.NewProjects(project.Config{Default: sixWindows})
	if err != nil {
		return nil, err
	}
	limits := map[string]*project.Limit{}
	for i := range n {
		limits[fmt.Sprint("k", i)] = sixWindows
	}
	err = projects.SetKeyLimits(limits)
	return each(n, func(i int) error {
		return callOnce(l, ratelimit.Call{Model: model, Project: "p", Key: fmt.Sprint("k", i)})
	}, err)
}

func manyModels(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	return each(n, func(i int) error { return callOnce(l, ratelimit.Call{Model: fmt.Sprint("m", i)}) }, nil)
}

func manyLevels(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	limits, id := map[string]project.Limit{}, "p"
	for range n {
		limits[id] = *sixWindows
		id += "/p"
	}
	id = strings.TrimSuffix(id, "/p")
	_, err := l.NewProjects(project.Config{Limits: limits})
	return each(1, func(int) error { return callOnce(l, ratelimit.Call{Model: model, Project: id}) }, err)
}

func manyCalls(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	_, err := l.NewProjects(project.Config{Default: sixWindows})
	if err == nil {
		_, err = each(n, ofOneProject(l), nil)
	}
	return ofOneProject(l), err
}

func manyUnderWay(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	_, err := l.NewProjects(project.Config{Default: sixWindows})
	if err == nil {
		_, err = each(n, func(int) error {
			_, d, err := l.TryAcquireCall(context.Background(), ratelimit.Call{Model: model, Project: "p", Estimated: callTokens})
			return admittedBy(d, err)
		}, nil)
	}
	return ofOneProject(l), err
}

func manyWaiting(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	_, err := l.NewProjects(project.Config{Default: sixWindows, MaxWaiting: n})
	l.SetQuota(elsewhere, ratelimit.ModelQuota{MaxRPM: 1})
	if err == nil {
		err = callOnce(l, ratelimit.Call{Model: elsewhere, Project: "p"})
	}
	for range n {
		go l.AcquireCall(context.Background(), ratelimit.Call{Model: elsewhere, Project: "p"}) // until the limiter is closed
	}
	for err == nil && l.Waiting(elsewhere) < n {
		time.Sleep(time.Millisecond)
	}
	return ofOneProject(l), err
}

func manyBytes(l *ratelimit.RateLimiter, n int) (func(int) error, error) {
	l.SetQuota(bodyModel, ample)
	client, text := http.Client{Transport: llmhttp.New(echo{}, l)}, chatBody(n, 2+n>>12)
	return func(int) error {
		response, err := client.Post("http://provider.test"+callPath, "application/json", bytes.NewReader(text))
		if err != nil {
			return err
		}
		return response.Body.Close()
	}, nil
}

// echo answers every call at once.
type echo struct{}

func (echo) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(callAnswer)), ContentLength: int64(len(callAnswer)), Request: r}, nil
}

var sixWindows = &project.Limit{
	RequestsPerMinute: 1 << 40, RequestsPerHour: 1 << 40, RequestsPerDay: 1 << 40,
	TokensPerMinute: 1 << 50, TokensPerHour: 1 << 50, TokensPerDay: 1 << 50,
}

func callOnce(l *ratelimit.RateLimiter, c ratelimit.Call) error {
	c.Estimated = callTokens
	r, d, err := l.TryAcquireCall(context.Background(), c)
	if err := admittedBy(d, err); err != nil {
		return err
	}
	r.Commit(promptTokens, outputTokens)
	return nil
}

func admittedBy(d ratelimit.Decision, err error) error {
	if err == nil && !d.Allowed {
		return fmt.Errorf("%w: %+v", errDenied, d)
	}
	return err
}

// each makes a call for each of n, by many goroutines, and returns one that goes round them.
func each(n int, call func(i int) error, err error) (func(i int) error, error) {
	if err != nil {
		return nil, err
	}
	var (
		wg     sync.WaitGroup
		faults = make([]error, callers)
	)
	for g := range callers {
		wg.Go(func() {
			for i := g; i < n && faults[g] == nil; i += callers {
				faults[g] = call(i)
			}
		})
	}
	wg.Wait()
	return func(i int) error { return call(i % n) }, errors.Join(faults...)
}

// medium is a store whose costs are measured. The cost of filling it bounds how much of a dimension there is.
type medium struct {
	name string
	most int
	open func(dir string) (s store.Store, cpu func() (time.Duration, error), stop func(), err error)
}

func media() []medium {
	own := func() (time.Duration, error) { return cpuTime(), nil }
	return []medium{
		{"memory", 100_000, func(string) (store.Store, func() (time.Duration, error), func(), error) {
			s := store.NewMemory()
			return s, own, func() { s.Close() }, nil
		}},
		{"SQLite", 10_000, func(dir string) (store.Store, func() (time.Duration, error), func(), error) {
			s, err := sqlitestore.Open(filepath.Join(dir, "growth.db"))
			return s, own, func() { s.Close() }, err
		}},
		{"Redis", 10_000, func(string) (store.Store, func() (time.Duration, error), func(), error) {
			server, err := redistest.Start(redistest.Options{})
			if err != nil {
				return nil, nil, nil, err
			}
			s, err := openRedis(server.Addr, redisstore.Config{Timeout: patience})
			return s, func() (time.Duration, error) {
				its, err := serverCPU(server)
				return its + cpuTime(), err
			}, func() { s.Close(); server.Close() }, err
		}},
	}
}

// growthPrefix begins the names of the reports on growth. The store and the dimension follow.
const growthPrefix = "growth/"

// growing measures what a call costs, its store's server included, with little and with much of each dimension.
func growing(b *bench) (result, error) {
	var all result
	for _, d := range dimensions {
		for _, m := range media() {
			if d.alone && m.name != "memory" {
				continue
			}
			r := report{name: growthPrefix + m.name + "/" + d.name, columns: []string{"µs"},
				title: fmt.Sprintf("CPU of a call with so many %s, %s; one goroutine, %s", d.name, m.name, b.method())}
			for _, n := range d.sizes {
				if n > m.most && !d.alone {
					continue
				}
				b.step(fmt.Sprintf("%s, %d %s", m.name, n, d.name))
				cost, err := d.cost(b, m, b.sized(n))
				if errors.Is(err, exec.ErrNotFound) {
					all.notes = append(all.notes, r.name+": skipped, redis-server is not installed: make deps installs it")
					break
				}
				if err != nil {
					return all, fmt.Errorf("%d %s, %s: %w", n, d.name, m.name, err)
				}
				r.rows = append(r.rows, row{growthName(n), ours, cost, []string{fmt.Sprintf("%.1f", cost)}})
			}
			all.reports = append(all.reports, r)
		}
	}
	return all, nil
}

// cost returns the CPU of a call in microseconds, where there are n of the dimension.
func (d dimension) cost(b *bench, m medium, n int) (float64, error) {
	dir, err := os.MkdirTemp("", "benchmarks")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	s, cpu, stop, err := m.open(dir)
	if err != nil {
		return 0, err
	}
	defer stop()
	quotas := map[string]ratelimit.ModelQuota{model: ample}
	for i := range n {
		quotas[fmt.Sprint("m", i)] = ample
		if d.name != dimensionModels {
			break
		}
	}
	l, err := ratelimit.NewWithStore(s, ratelimit.Config{Quotas: quotas})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	call, err := d.build(l, n)
	if err != nil {
		return 0, err
	}
	runtime.GC() // so that what was thrown away before is not collected in a round
	var costs []float64
	for i := range b.rounds {
		before, err := cpu()
		if err != nil {
			return 0, err
		}
		turn, err := crowd(1, func(k int) error { return call(i*chunk + k) }, b.slice)
		if err != nil {
			return 0, err
		}
		after, err := cpu()
		if err != nil {
			return 0, err
		}
		costs = append(costs, micros(after-before)/float64(turn.decisions))
	}
	return slices.Sorted(slices.Values(costs))[len(costs)/2], nil
}
