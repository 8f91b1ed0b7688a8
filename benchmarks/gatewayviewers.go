package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"
)

const (
	watchedProjects = 1_000
	busyCalls       = 20_000 // a second, of whose CPU viewers may take a part
	maxOfBusy       = 1      // percent, for one viewer
)

// watchers are the numbers of viewers that are compared.
var watchers = []struct {
	name    string
	kind    kind
	viewers int
}{{"no viewer", floor, 0}, {"1 viewer", ours, 1}, {"100 viewers", ours, 100}}

// viewers measures what those who watch the overview cost the gateway, while 1,000 projects call as fast as
// they can: a CPU profile says how much of the gateway's CPU its admin API has. That is a few milliseconds a
// second, which a difference between turns with and without viewers would not show. Other programs that run
// on the machine make the calls fewer, and change nothing of the CPU of one.
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
	dir, err := filepath.Abs(b.profiles) // the gateway runs in a directory of its own
	if b.profiles == "" {
		dir, err = os.MkdirTemp("", "viewers")
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return result{}, err
	}
	slice := max(80*b.slice, 5*time.Millisecond) // some seconds, since there is an event a second
	turns := make([][]watch, len(watchers))
	for round := range b.rounds + 1 { // the first is to warm up
		b.step(fmt.Sprintf("round %d of %d", round, b.rounds))
		for i, w := range watchers {
			t, err := g.watchedBy(w.viewers, all, slice, filepath.Join(dir, fileName.Replace("gateway/viewers "+w.name)))
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				turns[i] = append(turns[i], t)
			}
		}
	}
	return viewersResult(turns, slice, b.rounds), nil
}

// watch is one turn, or several: calls, and CPU in seconds.
type watch struct {
	seconds float64
	calls   int
	cpu     profiled
}

// profiled is what a CPU profile has, in seconds.
type profiled struct {
	all, collector float64
	viewers        float64 // of the admin API, which nothing but viewers asks
}

// ofViewers returns the CPU of viewers, with their part of the collector's work: the same as of all other work.
func (p profiled) ofViewers() float64 { return p.viewers * p.all / max(p.all-p.collector, 1e-9) }

// sumOf adds turns up. Medians of single turns would be of a few samples each.
func sumOf(turns []watch) (sum watch) {
	for _, t := range turns {
		sum.seconds += t.seconds
		sum.calls += t.calls
		sum.cpu.all += t.cpu.all
		sum.cpu.collector += t.cpu.collector
		sum.cpu.viewers += t.cpu.viewers
	}
	return sum
}

// viewersResult compares the turns.
func viewersResult(turns [][]watch, slice time.Duration, rounds int) result {
	rep := report{
		name:    "gateway/viewers",
		title:   fmt.Sprintf("what viewers of the overview have of the gateway's CPU while %d projects call; by profile, over %d interleaved rounds of %v", watchedProjects, rounds, slice),
		columns: []string{"calls/s", "CPU of a call, µs", "of viewers, ms a second", fmt.Sprintf("of %d calls/s", busyCalls)},
	}
	var checks []check
	for i, w := range watchers {
		sum := sumOf(turns[i])
		call := (sum.cpu.all - sum.cpu.ofViewers()) / float64(max(sum.calls, 1))
		watching := sum.cpu.ofViewers() / max(sum.seconds, 1e-9)
		part := 100 * watching / max(call*busyCalls, 1e-9)
		rep.rows = append(rep.rows, row{name: w.name, kind: w.kind, value: 1e3 * watching, cells: []string{
			fmt.Sprintf("%.0f", float64(sum.calls)/max(sum.seconds, 1e-9)), fmt.Sprintf("%.1f", 1e6*call), fmt.Sprintf("%.1f", 1e3*watching), fmt.Sprintf("%.2f%%", part),
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

// watchedBy measures the gateway for a duration while n viewers watch it. The profile is written to a path.
func (r *running) watchedBy(n int, all guests, d time.Duration, path string) (watch, error) {
	leave, err := r.admit(n)
	if err != nil {
		return watch{}, err
	}
	defer leave()
	if _, err := r.tell(order{Profile: path + ".cpu"}); err != nil {
		return watch{}, err
	}
	visits, took, err := all.visit(d)
	if err != nil {
		return watch{}, err
	}
	if _, err := r.tell(order{Profiled: path + ".allocs"}); err != nil {
		return watch{}, err
	}
	cpu, err := readProfile(path + ".cpu")
	return watch{took.elapsed.Seconds(), len(visits), cpu}, err
}

// readProfile adds a CPU profile up.
func readProfile(path string) (sum profiled, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return sum, fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range p.Sample {
		seconds := float64(s.Value[1]) / 1e9 // the first value is how many samples there were
		sum.all += seconds
		switch {
		case passes(s, "internal/gateway/admin."):
			sum.viewers += seconds
		case passes(s, "runtime.gcBgMarkWorker"), passes(s, "runtime.bgsweep"), passes(s, "runtime.bgscavenge"):
			sum.collector += seconds
		}
	}
	return sum, nil
}

// passes reports whether the stack of a sample has a function with this text in its name.
func passes(s *profile.Sample, text string) bool {
	for _, at := range s.Location {
		for _, line := range at.Line {
			if line.Function != nil && strings.Contains(line.Function.Name, text) {
				return true
			}
		}
	}
	return false
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
