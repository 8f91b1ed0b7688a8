package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// A fleet of gateways on one Redis, with many projects, at which an operator looks.
const (
	viewedGateways = 4
	viewedProjects = 1_000
	viewedCallers  = 8      // of each gateway
	viewedRate     = 20_000 // calls a second of a gateway, of whose CPU a viewer may cost maxViewer
	maxViewer      = 1      // percent

	childState = "BENCHMARKS_CHILD_STATE"
	nameViewed = "gateway, Redis"
)

// viewers are the streams that operators open at one of the gateways, by their paths at its admin API.
var viewers = []struct{ name, path string }{
	{"nobody", ""},
	{"the dashboard", "/v1/overview/live?projects=200"},
	{"ratelimit tail", "/v1/events"},
}

// viewedGateway is a gateway of the fleet. Limits are large, so that all calls pass.
func viewedGateway(upstream string) (door, error) {
	var text strings.Builder
	text.WriteString(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
state: %s
providers: {mock: {kind: openai, base_url: "http://%s", models: {` + bodyModel + `: {max_rpm: 100_000_000}}}}
log: {level: "off"}
server: {hosts: [gateway.test]}
projects:
`)
	for i := range viewedProjects {
		fmt.Fprintf(&text, "  team%04d: {requests_per_minute: 100_000_000, tokens_per_day: 10_000_000_000}\n", i)
	}
	r, err := runGateway(text.String(), os.Getenv(childState), upstream)
	if err != nil {
		return door{}, err
	}
	return door{Address: r.Clients.String(), Path: "/mock", Secret: "sk-0123456789abcdef", Admin: r.Admin.String()}, nil
}

// viewedFleet is the gateways, and their callers.
type viewedFleet struct {
	gateways []*running
	callers  guests
}

func newViewedFleet(upstream string) (f *viewedFleet, err error) {
	f = &viewedFleet{}
	for i := range viewedGateways {
		g, err := proxy{name: nameViewed}.run(upstream)
		if err != nil {
			return f, err
		}
		f.gateways = append(f.gateways, g)
		callers, err := newGuests(viewedCallers, g.door, wholeCall())
		if err != nil {
			return f, err
		}
		for k, v := range callers {
			v.turns = nil
			for p := i*viewedCallers + k; p < viewedProjects; p += viewedGateways * viewedCallers {
				project := fmt.Sprintf("X-Project-Id: team%04d\r\nContent-Length:", p)
				v.turns = append(v.turns, bytes.Replace(v.say, []byte("Content-Length:"), []byte(project), 1))
			}
		}
		f.callers = append(f.callers, callers...)
	}
	return f, nil
}

func (f *viewedFleet) stop() {
	f.callers.leave()
	for _, g := range f.gateways {
		g.stop()
	}
}

// viewed is the CPU that gateways needed in one turn, in seconds a second: the one that the viewer asked, and the others
// on average.
type viewed struct{ asked, others, calls float64 }

// turn has somebody look for a while, during which calls are made or not.
func (f *viewedFleet) turn(path string, calls bool, d time.Duration) (v viewed, err error) {
	leave, err := f.look(path)
	if err != nil {
		return v, err
	}
	defer leave()
	before, start := f.cpu(&err), time.Now()
	if calls {
		visits, _, fault := f.callers.visit(d)
		v.calls, err = float64(len(visits)), fault
	} else {
		time.Sleep(d)
	}
	after, took := f.cpu(&err), time.Since(start).Seconds()
	for i := range after {
		each := (after[i] - before[i]).Seconds() / took
		if i == 0 {
			v.asked = each
		} else {
			v.others += each / (viewedGateways - 1)
		}
	}
	v.calls /= took * viewedGateways
	return v, err
}

// cpu returns what each gateway has used of the CPU.
func (f *viewedFleet) cpu(err *error) []time.Duration {
	all := make([]time.Duration, len(f.gateways))
	for i, g := range f.gateways {
		told, fault := g.tell(order{})
		if fault != nil && *err == nil {
			*err = fault
		}
		all[i] = told.CPU
	}
	return all
}

// look opens the stream of a viewer at the first gateway, and reads what comes. It returns when the stream has begun: its
// beginning costs more than what follows.
func (f *viewedFleet) look(path string) (leave func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	ctx, end := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.gateways[0].Admin+path, nil)
	if err != nil {
		end()
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		end()
		return nil, err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() && lines.Text() != "event: snapshot" && lines.Text() != ": following" {
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, resp.Body)
	}()
	return func() {
		end()
		<-read
		resp.Body.Close()
	}, nil
}

// viewing measures what viewers cost each gateway of a fleet, with the calls stopped and with as many as the machine can
// make.
func viewing(b *bench, server *redistest.Server) (result, error) {
	const name = "gateway/viewers"
	os.Setenv(childState, "redis://"+server.Addr+"/0?timeout=5s") // the machine is busy
	u, err := newUpstream()
	if err != nil {
		return result{}, err
	}
	defer u.Close()
	f, err := newViewedFleet(u.Addr().String())
	defer f.stop()
	if err != nil {
		return result{}, err
	}
	slice := max(80*b.slice, 20*time.Millisecond)
	if _, _, err := f.callers.visit(slice); err != nil { // every project is called, and has rows
		return result{}, err
	}
	rep := report{name: name, title: fmt.Sprintf("a viewer of one of %d gateways with %d projects on one Redis; median of %d interleaved rounds of %v",
		viewedGateways, viewedProjects, b.rounds, slice), columns: []string{"calls/s each", "CPU µs a call", "more CPU, ms/s", "of the others"}}
	var checks []check
	idle := 0.0                     // CPU seconds a second of a gateway without calls at which nobody looks
	stopped := map[string]float64{} // what a viewer costs then, by the viewer's name
	for _, calls := range []bool{false, true} {
		all := make([][]viewed, len(viewers))
		for round := range b.rounds {
			for i, w := range viewers {
				b.step(fmt.Sprintf("%s, calls %t, round %d of %d", w.name, calls, round+1, b.rounds))
				v, err := f.turn(w.path, calls, slice)
				if err != nil {
					return result{}, fmt.Errorf("%s: %w", w.name, err)
				}
				all[i] = append(all[i], v)
			}
		}
		for i, w := range viewers {
			if !calls {
				idle = medianOf(all[0], viewed.each)
			}
			r, perCall := viewerRow(w.name, calls, idle, all[0], all[i])
			rep.rows = append(rep.rows, r)
			if !calls {
				stopped[w.name] = r.value
			} else if w.path != "" {
				percent := 100 * max(r.value, stopped[w.name]) / (perCall * viewedRate)
				checks = append(checks, check{
					figure:   name + ": " + w.name + fmt.Sprintf(", CPU of a gateway at %d calls a second", viewedRate),
					required: fmt.Sprintf("less than %d%%", maxViewer),
					measured: fmt.Sprintf("%.2f%%", percent),
					pass:     percent < maxViewer,
				})
			}
		}
	}
	return result{reports: []report{rep}, checks: checks}, nil
}

// each is the CPU seconds a second of one gateway, on the average of all.
func (v viewed) each() float64 { return (v.asked + (viewedGateways-1)*v.others) / viewedGateways }

// viewerRow compares the turns with a viewer with those in which nobody looked. It returns the CPU seconds of a call, too.
// A gateway that makes no calls uses idle a second.
func viewerRow(name string, calls bool, idle float64, nobody, with []viewed) (row, float64) {
	more := func(of func(viewed) float64) float64 {
		var all []float64
		for i := range with {
			expected := of(nobody[i])
			if calls {
				expected = idle + (expected-idle)*with[i].calls/nobody[i].calls
			}
			all = append(all, of(with[i])-expected)
		}
		return median(all)
	}
	asked, others := more(func(v viewed) float64 { return v.asked }), more(func(v viewed) float64 { return v.others })
	cells := []string{"", "", fmt.Sprintf("%.1f", 1000*asked), fmt.Sprintf("%.1f", 1000*others)}
	if !calls {
		return row{name: name, kind: ours, value: asked, cells: cells}, 0
	}
	perCall := medianOf(nobody, func(v viewed) float64 { return (v.each() - idle) / v.calls })
	cells[0] = fmt.Sprintf("%.0f", medianOf(with, func(v viewed) float64 { return v.calls }))
	cells[1] = fmt.Sprintf("%.0f", 1e6*perCall)
	return row{name: name + ", calls", kind: ours, value: asked, cells: cells}, perCall
}
