package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway"
	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/server"
)

// board shows the state of the demo.
type board struct {
	running server.Running
	witness *witness
	crowds  []*crowd
	began   time.Time

	last  uint64                     // number of the last record that was read
	waits map[string][]time.Duration // how long calls that passed have waited, by project
	spent map[string]int64           // tokens, by project
}

const (
	redrawEvery = 250 * time.Millisecond // on a terminal
	lineEvery   = time.Second            // elsewhere
)

// run has the crowds call and shows the state of the demo until ctx ends, and then a
// summary.
func (b *board) run(ctx context.Context, s *screen) error {
	b.waits, b.spent = map[string][]time.Duration{}, map[string]int64{}
	base := address(b.running.Clients, config.TLS{})
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	if err := printLines(s.w, b.intro(base)); err != nil {
		return err
	}
	calling, stop := context.WithCancel(context.WithoutCancel(ctx)) // a call that is cut off gives up its slot before the provider has noticed, which would look like overshoot
	var crowds sync.WaitGroup
	for _, c := range b.crowds {
		crowds.Go(func() { c.run(calling, &http.Client{Transport: transport}, base) })
	}
	err := b.show(ctx, s)
	b.read()
	summary := b.lines() // before the calls that wait, or are being answered, are cut off
	stop()
	crowds.Wait()
	if err != nil {
		return err
	}
	if s.terminal {
		return s.leave(summary)
	}
	return printLines(s.w, append([]string{""}, summary...))
}

func (b *board) intro(base string) []string {
	lines := []string{"A provider that is made up, a gateway in front of it at " + base + ", and five projects that call it."}
	if b.running.Admin != nil {
		lines = append(lines, "In another terminal: ratelimit status --watch --admin "+address(b.running.Admin, config.TLS{}))
	}
	return append(lines, "")
}

// show shows the state of the demo until ctx ends.
func (b *board) show(ctx context.Context, s *screen) error {
	every := lineEvery
	if s.terminal {
		every = redrawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		b.read()
		lines := []string{b.line()}
		if s.terminal {
			lines = b.lines()
		}
		if err := s.show(lines); err != nil {
			return err
		}
	}
}

// mostWaits is how many waits are kept for each project.
const mostWaits = 1000

// read takes the records of the last calls from the gateway.
func (b *board) read() {
	records := b.running.Gateway.Recent("", b.last, 1<<20)
	for i := range records {
		r := &records[i]
		b.last = r.Seq
		if r.Outcome != gateway.Passed {
			continue
		}
		waits := append(b.waits[r.Project], r.Waited)
		b.waits[r.Project] = waits[max(len(waits)-mostWaits, 0):]
		b.spent[r.Project] += int64(r.Input + r.Output)
	}
}

// line returns the state of the demo in one line.
func (b *board) line() string {
	parts := []string{fmt.Sprintf("%3.0fs", time.Since(b.began).Seconds())}
	for _, c := range b.crowds {
		parts = append(parts, fmt.Sprintf("%s %d passed, %d wait, %d denied", c.project, c.passed.Load(), b.waiting(c), c.denied.Load()))
	}
	return strings.Join(append(parts, fmt.Sprintf("overshoot %d", b.witness.overshoot())), " | ")
}

// lines returns the state of the demo as tables, with an explanation.
func (b *board) lines() []string {
	lines := b.projects()
	lines = append(append(lines, ""), b.models()...)
	lines = append(append(lines, ""), b.words()...)
	return append(lines, "", fmt.Sprintf("%.0f s. Overshoot: %d, as the provider itself has counted.", time.Since(b.began).Seconds(), b.witness.overshoot()))
}

func (b *board) projects() []string {
	t := table{head: []string{"project", "", ">sent", ">passed", ">waiting", ">denied", ">failed", ">tokens", ">share", ">p50 wait"}}
	for _, c := range b.crowds {
		share := "-"
		if c.model == large {
			share = fmt.Sprintf("%.0f%%", 100*b.share(c))
		}
		t.add(c.project, c.does, thousands(c.sent.Load()), thousands(c.passed.Load()), fmt.Sprint(b.waiting(c)), thousands(c.denied.Load()),
			thousands(c.failed.Load()), b.tokens(c), share, b.medianWait(c))
	}
	return t.lines()
}

// waiting returns how many calls of a crowd wait at the gateway: sent, and not yet at the
// provider.
func (b *board) waiting(c *crowd) int64 {
	return max(c.inFlight.Load()-int64(b.witness.answering(c.project)), 0)
}

// share returns a project's share of the answered calls of its model.
func (b *board) share(c *crowd) float64 {
	all := int64(0)
	for _, other := range b.crowds {
		if other.model == c.model {
			all += other.answered()
		}
	}
	return float64(c.answered()) / float64(max(all, 1))
}

// tokens returns how many tokens a project has used, and its limit if it has one.
func (b *board) tokens(c *crowd) string {
	d, err := b.running.Gateway.Projects().Peek(context.Background(), c.project)
	if err != nil {
		return "?"
	}
	for _, at := range d.Windows() {
		if at.Window.Tokens {
			return thousands(at.Window.Count-at.Remaining) + " / " + thousands(at.Window.Count)
		}
	}
	return thousands(b.spent[c.project])
}

// medianWait returns the median of the waits of a project's calls.
func (b *board) medianWait(c *crowd) string {
	waits := slices.Sorted(slices.Values(b.waits[c.project]))
	if len(waits) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", waits[len(waits)/2].Seconds())
}

func (b *board) models() []string {
	t := table{head: []string{"model", ">at a time", ">requests/min", ">tokens/min"}}
	for _, name := range []string{large, small} {
		s := b.running.Gateway.Models().Stats(name)
		t.add(name, used(s.Concurrent, s.MaxConcurrent), used(s.RPM, s.MaxRPM), used(s.TPM, s.MaxTPM))
	}
	return t.lines()
}

// words explains what the tables show.
func (b *board) words() []string {
	search, chat, batch, intern := b.crowds[0], b.crowds[1], b.crowds[2], b.crowds[4]
	return []string{
		fmt.Sprintf("%s takes %d calls at a time, and 60 callers want it: they wait their turn. By their weights of 3, 1 and 1", large, largeConcurrent),
		fmt.Sprintf("search, chat and batch get %.0f%%, %.0f%% and %.0f%% of it, although batch asks most.", 100*b.share(search), 100*b.share(chat), 100*b.share(batch)),
		fmt.Sprintf("intern may make %d requests a minute: %d have passed, %d were denied with 429, and told when to come back.", internRequests, intern.passed.Load(), intern.denied.Load()),
		fmt.Sprintf("reports may use %s tokens a minute: its next call waits for the first to be a minute old.", thousands(reportsTokens)),
		fmt.Sprintf("What has failed are errors of the provider, which makes one of %d calls of %s fail.", errorsEvery, large),
	}
}
