package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"dappco.re/go/core/go-ratelimit/llm"
)

const (
	maxMetering = 15 // percent more time than reading alone
	burstEvents = 8  // what a proxy on the way gathers: about 2 KB of OpenAI's, 1 KB of Anthropic's

	nameCopy    = "io.Copy"
	nameMetered = "llm.Meter"
	nameHidden  = "llm.Meter.Hide"
)

// meter compares reading streams through a meter with reading them alone: off the network, where
// it is required to cost little, and from memory, where nothing hides what it costs.
func meter(b *bench) (result, error) {
	had, b := b.freeCores(), b.finer()
	all := streams(b.sized(streamEvents))
	var sum result
	for _, d := range []delivery{
		{"llm/meter/https", "a response over loopback by HTTP/2 and TLS, an event a flush", served(1, true)},
		{"llm/meter/events", "a response over loopback by HTTP/1.1, an event a flush", served(1, false)},
		{"llm/meter/bursts", fmt.Sprintf("a response over loopback by HTTP/1.1, %d events a flush", burstEvents), served(burstEvents, false)},
		{"llm/meter/memory", "from memory to memory", inMemory},
	} {
		r, err := d.race(b, all)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", d.name, err)
		}
		rows := r.rows()
		sum.reports = append(sum.reports, d.report(b, all, r, rows))
		if d.name != "llm/meter/memory" {
			sum.checks = append(sum.checks, meterChecks(d.name, all, rows)...)
		}
	}
	sum.checks = append(sum.checks, meterAllocs(b.sized(streamEvents))...)
	sum.notes = noise("llm/meter", had, cores)
	return sum, nil
}

// delivery is how streams come to who reads them.
type delivery struct {
	name, about string
	source      func(stream) source
}

// source is where a stream may be had, over and over.
type source struct {
	open  func() (http.Header, io.ReadCloser, error)
	close func() // may be nil
}

// served is a server that flushes after so many events.
func served(burst int, secure bool) func(stream) source {
	return func(s stream) source {
		server := serveStream(s, burst, secure)
		client := server.Client()
		return source{close: server.Close, open: func() (http.Header, io.ReadCloser, error) {
			response, err := client.Get(server.URL)
			if err != nil {
				return nil, nil, err
			}
			return response.Header, response.Body, nil
		}}
	}
}

// inMemory has all of it at once. Its reader can do nothing but read, so that it is copied by way
// of a buffer, as what comes from the network is.
func inMemory(s stream) source {
	text := s.bytes()
	return source{open: func() (http.Header, io.ReadCloser, error) {
		return streamHeader, io.NopCloser(struct{ io.Reader }{bytes.NewReader(text)}), nil
	}}
}

// race lets all ways to read all streams take turns.
func (d delivery) race(b *bench, all []stream) (race, error) {
	var contestants []contestant
	for _, s := range all {
		for _, w := range ways(s) {
			contestants = append(contestants, w.contestant(s, d))
		}
	}
	return turns(b, contestants, plenty, alone, make([]string, 1))
}

// way is a way to read a stream to its end.
type way struct {
	name string
	kind kind
	read func(stream, *llm.Meter, io.Reader) bool // whether all of it came
}

// ways are all there are; only OpenAI's streams have something to hide.
func ways(s stream) []way {
	all := []way{
		{nameCopy, floor, func(s stream, _ *llm.Meter, r io.Reader) bool { return drain(r) == s.size }},
		{nameMetered, ours, func(s stream, m *llm.Meter, r io.Reader) bool {
			return drain(io.TeeReader(r, m)) == s.size && m.Usage() == s.usage
		}},
	}
	if s.hidden > 0 {
		all = append(all, way{nameHidden, ours, func(s stream, m *llm.Meter, r io.Reader) bool {
			return drain(m.Hide(r)) == s.size-s.hidden && m.Usage() == s.usage
		}})
	}
	return all
}

// drain reads all there is and returns how much that was, or -1 if it broke off.
func drain(r io.Reader) int {
	n, err := io.Copy(io.Discard, r)
	if err != nil {
		return -1
	}
	return int(n)
}

// of is the name of a way to read a stream.
func (w way) of(s stream) string { return s.name + ", " + w.name }

// contestant reads as many streams as it is given keys.
func (w way) contestant(s stream, d delivery) contestant {
	return contestant{name: w.of(s), kind: w.kind, build: func(quota) instance {
		from := d.source(s)
		return instance{close: from.close, decide: func(keys []string) (n int) {
			for range keys {
				if w.once(s, from) {
					n++
				}
			}
			return n
		}}
	}}
}

// once reads a stream, and reports whether all of it came.
func (w way) once(s stream, from source) bool {
	header, body, err := from.open()
	if err != nil {
		return false
	}
	defer body.Close()
	var m *llm.Meter
	if w.kind == ours {
		m = llm.NewMeter(s.api, header)
	}
	return w.read(s, m, body)
}

// report says what an event costs, and how much more that is than to copy it alone.
func (d delivery) report(b *bench, all []stream, r race, rows []row) report {
	rep := report{
		name:    d.name,
		title:   d.about + ", one goroutine; " + b.method(),
		columns: []string{"ns/event", "more time", "CPU, ns/event", "more CPU", "GB/s"},
	}
	i := 0
	for _, s := range all {
		events, bare := float64(len(s.events)), i
		used := func(i int) float64 { return medianOf(r.samples[i], sample.cpuCost) }
		for range ways(s) {
			each := rows[i]
			each.cells = []string{
				fmt.Sprintf("%.1f", each.value/events), percent(each.value, rows[bare].value),
				fmt.Sprintf("%.1f", used(i)/events), percent(used(i), used(bare)),
				fmt.Sprintf("%.2f", float64(s.size)/each.value),
			}
			each.value /= events
			rep.rows = append(rep.rows, each)
			i++
		}
	}
	return rep
}

// cpuCost is in nanoseconds of CPU a decision, of the whole process: on loopback, of the server too.
func (s sample) cpuCost() float64 { return float64(s.cpu.Nanoseconds()) / float64(s.decisions) }

// percent is how much more a is than b, or how many times it where that says more.
func percent(a, b float64) string {
	if a >= 10*b {
		return fmt.Sprintf("%.0fx", a/b)
	}
	return fmt.Sprintf("%+.1f%%", 100*(a/b-1))
}

func meterChecks(where string, all []stream, rows []row) []check {
	var checks []check
	for _, s := range all {
		bare := named(rows, ways(s)[0].of(s))
		for _, w := range ways(s)[1:] {
			checks = append(checks, addsAtMost(where, named(rows, w.of(s)), bare, maxMetering))
		}
	}
	return checks
}

// addsAtMost requires a to take at most so many percent more than b.
func addsAtMost(where string, a, b row, most float64) check {
	return check{
		figure:   fmt.Sprintf("%s: %s against %s", where, a.name, b.name),
		required: fmt.Sprintf("at most %.0f%% more time", most),
		measured: percent(a.value, b.value),
		pass:     100*a.value <= (100+most)*b.value,
	}
}
