package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	watchedProjects = 1_000
	pacedCalls      = 500    // a second: few, so that the CPU of viewers stands out
	busyCalls       = 20_000 // a second, of whose CPU viewers may take a part
	maxOfBusy       = 1      // percent, for one viewer
)

// watchers are the numbers of viewers that are compared.
var watchers = []struct {
	name    string
	kind    kind
	viewers int
}{{"no viewer", floor, 0}, {"1 viewer", ours, 1}, {"100 viewers", ours, 100}}

// viewers measures what those who watch the overview cost the gateway: its CPU while 1,000 projects call
// at a steady pace, with and without viewers, against the CPU of 20,000 calls a second.
func viewers(b *bench) (result, error) {
	u, err := newUpstream()
	if err != nil {
		return result{}, err
	}
	defer u.Close()
	g, err := watched().run(u.Addr().String())
	if err != nil {
		return result{}, err
	}
	defer g.stop()
	all, err := newGuests(callers, g.door, wholeCall())
	if err != nil {
		return result{}, err
	}
	defer all.leave()
	all.take(g.door, wholeCall())
	slice := max(40*b.slice, 5*time.Millisecond) // some seconds, since there is an event a second
	var busy []float64
	turns := make([][]watch, len(watchers))
	for round := range b.rounds + 1 { // the first is to warm up
		b.step(fmt.Sprintf("round %d of %d", round, b.rounds))
		each, err := g.cpuOfACall(all, slice/2)
		if err != nil {
			return result{}, err
		}
		busy = append(busy, each)
		for i, w := range watchers {
			t, err := g.watchedBy(w.viewers, all, slice)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				turns[i] = append(turns[i], t)
			}
		}
	}
	if err := g.profileWatched(b.profiles, all, slice); err != nil {
		return result{}, err
	}
	return viewersResult(turns, median(busy[1:])*busyCalls/1e3, slice, b.rounds), nil
}

// watch is one turn: calls a second, and CPU in milliseconds a second.
type watch struct{ calls, cpu float64 }

// viewersResult compares the turns. busy is the CPU of 20,000 calls a second, in milliseconds a second.
func viewersResult(turns [][]watch, busy float64, slice time.Duration, rounds int) result {
	rep := report{
		name:    "gateway/viewers",
		title:   fmt.Sprintf("the gateway's CPU while %d projects call and some watch the overview; median of %d interleaved rounds of %v", watchedProjects, rounds, slice),
		columns: []string{"calls/s", "CPU, ms a second", "of viewers", fmt.Sprintf("of %d calls/s", busyCalls)},
	}
	var checks []check
	for i, w := range watchers {
		more := make([]float64, len(turns[i]))
		for j := range more {
			more[j] = turns[i][j].cpu - turns[0][j].cpu
		}
		cpu, part := medianOf(turns[i], func(t watch) float64 { return t.cpu }), 100*median(more)/busy
		rep.rows = append(rep.rows, row{name: w.name, kind: w.kind, value: cpu, cells: []string{
			fmt.Sprintf("%.0f", medianOf(turns[i], func(t watch) float64 { return t.calls })),
			fmt.Sprintf("%.1f", cpu), fmt.Sprintf("%+.1f", median(more)), fmt.Sprintf("%+.2f%%", part),
		}})
		if w.viewers == 1 {
			checks = append(checks, check{
				figure:   fmt.Sprintf("%s: %s, of the CPU of %d calls a second", rep.name, w.name, busyCalls),
				required: fmt.Sprintf("less than %d%%", maxOfBusy),
				measured: fmt.Sprintf("%.2f%%", part),
				pass:     part < maxOfBusy,
			})
		}
	}
	return result{reports: []report{rep}, checks: checks}
}

// cpuOfACall returns the CPU of a call in microseconds, as fast as calls can be made.
func (r *running) cpuOfACall(all guests, d time.Duration) (float64, error) {
	before, err := r.tell(order{})
	if err != nil {
		return 0, err
	}
	visits, _, err := all.visit(d)
	if err != nil {
		return 0, err
	}
	after, err := r.tell(order{})
	return micros(after.CPU-before.CPU) / float64(len(visits)), err
}

// profileWatched takes one more turn with each number of viewers, of which there is a profile.
func (r *running) profileWatched(dir string, all guests, d time.Duration) error {
	if dir == "" {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, w := range watchers {
		path := filepath.Join(dir, fileName.Replace("gateway/viewers "+w.name))
		if _, err := r.tell(order{Profile: path + ".cpu"}); err != nil {
			return err
		}
		if _, err := r.watchedBy(w.viewers, all, 5*d); err != nil {
			return err
		}
		if _, err := r.tell(order{Profiled: path + ".allocs"}); err != nil {
			return err
		}
	}
	return nil
}

// watchedBy measures the gateway for a duration while n viewers watch it.
func (r *running) watchedBy(n int, all guests, d time.Duration) (watch, error) {
	leave, err := r.admit(n)
	if err != nil {
		return watch{}, err
	}
	defer leave()
	before, err := r.tell(order{})
	if err != nil {
		return watch{}, err
	}
	start := time.Now()
	calls, err := all.pace(d, time.Second/pacedCalls)
	if err != nil {
		return watch{}, err
	}
	after, err := r.tell(order{})
	seconds := time.Since(start).Seconds()
	return watch{float64(calls) / seconds, micros(after.CPU-before.CPU) / 1e3 / seconds}, err
}

// admit connects n viewers, which watch until leave is called. It returns when each has got its snapshot.
func (r *running) admit(n int) (leave func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	leave = func() {
		cancel()
		reading.Wait()
	}
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.door.Admin+"/v1/overview/live?projects=50", nil)
		if err != nil {
			leave()
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			leave()
			return nil, err
		}
		lines := bufio.NewReaderSize(resp.Body, 64<<10)
		for line := ""; err == nil && !strings.HasPrefix(line, "data: "); {
			line, err = lines.ReadString('\n')
		}
		reading.Go(func() {
			defer resp.Body.Close()
			lines.WriteTo(discarding{})
		})
		if err != nil {
			leave()
			return nil, err
		}
	}
	return leave, nil
}

// discarding reads through a buffer that is its own, and not one of 8 KB for each viewer at a time.
type discarding struct{}

func (discarding) Write(p []byte) (int, error) { return len(p), nil }

// take gives each guest the requests of some projects, which it sends in turn.
func (all guests) take(to door, d dialogue) {
	for i, secret := range to.Secrets {
		v := all[i%len(all)]
		v.turns = append(v.turns, d.request(door{to.Address, to.Path, secret, "", nil}))
	}
}

// pace has all guests ask for d: one call in every interval, all together.
func (all guests) pace(d, interval time.Duration) (calls int, err error) {
	var wg sync.WaitGroup
	faults := make([]error, len(all))
	counts := make([]int, len(all))
	start := time.Now()
	for i, v := range all {
		v.visits = v.visits[:0]
		wg.Go(func() {
			for due := time.Duration(i) * interval; due < d; due += time.Duration(len(all)) * interval {
				time.Sleep(time.Until(start.Add(due)))
				if faults[i] = v.ask(); faults[i] != nil {
					return
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	for _, n := range counts {
		calls += n
	}
	return calls, errors.Join(faults...)
}

// watched is the gateway with its admin API, and 1,000 projects with a key each.
func watched() proxy {
	return proxy{name: "gateway, watched", kind: ours, start: func(upstream string) (door, error) {
		var projects bytes.Buffer
		for i := range watchedProjects {
			fmt.Fprintf(&projects, "  p%04d: {requests_per_minute: %d, tokens_per_day: 10_000_000_000_000, dollars_per_month: 1_000_000}\n", i, 100_000+i)
		}
		text := strings.Replace(gatewayConfig, `{listen: "off"}`, "{listen: 127.0.0.1:0}", 1)
		text = strings.Replace(text, "projects:\n", "projects:\n"+projects.String(), 1)
		r, err := runGateway(text, "memory", upstream)
		if err != nil {
			return door{}, err
		}
		d := door{Address: r.Clients.String(), Path: "/mock", Admin: r.Admin.String()}
		for i := range watchedProjects {
			secret, _, err := r.Gateway.Keys().Create(context.Background(), fmt.Sprintf("p%04d", i), "benchmarks", time.Hour)
			if err != nil {
				return door{}, err
			}
			d.Secrets = append(d.Secrets, secret)
		}
		d.Secret = d.Secrets[0]
		return d, nil
	}}
}
