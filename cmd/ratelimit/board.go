package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
	"dappco.re/go/core/go-ratelimit/project"
)

// board shows the state of the demo.
type board struct {
	running  server.Running
	witness  *witness
	projects []*demoProject
	began    time.Time
	last     uint64 // the Seq of the last record that was read
}

const (
	redrawEvery = 250 * time.Millisecond // how often the tables are drawn on a terminal
	lineEvery   = time.Second            // how often a line is printed elsewhere
)

// run makes the calls of the projects and shows the state of the demo until ctx ends, and then a summary.
func (b *board) run(ctx context.Context, s *console.Screen) error {
	base := address(b.running.Clients, config.TLS{})
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	defer transport.CloseIdleConnections()
	if err := s.Print(b.intro(base)); err != nil {
		return err
	}
	calling, stop := context.WithCancel(context.WithoutCancel(ctx)) // a call that is cut off gives up its slot before the provider has noticed, which would look like overshoot
	var callers sync.WaitGroup
	for _, p := range b.projects {
		callers.Go(func() { p.run(calling, &http.Client{Transport: transport}, base) })
	}
	err := b.show(ctx, s)
	b.read()
	summary := b.lines(s.Columns()) // before the calls that wait, or are being answered, are cut off
	stop()
	callers.Wait()
	if err != nil {
		return err
	}
	if s.Terminal() {
		return s.Leave(summary)
	}
	return s.Print(append([]string{""}, summary...))
}

func (b *board) intro(base string) []string {
	lines := []string{"A simulated provider, a gateway in front of it at " + base + ", and five projects that call it."}
	if b.running.Admin != nil {
		at := address(b.running.Admin, config.TLS{})
		if dashboard.Included {
			lines = append(lines, "In a browser: "+at)
		}
		lines = append(lines, "In another terminal: ratelimit top --admin "+at)
	}
	return append(lines, "")
}

// show shows the state of the demo until ctx ends.
func (b *board) show(ctx context.Context, s *console.Screen) error {
	every := lineEvery
	if s.Terminal() {
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
		if s.Terminal() {
			lines = b.lines(s.Columns())
		}
		if err := s.Show(lines); err != nil {
			return err
		}
	}
}

// mostWaits is how many waits are kept for each project.
const mostWaits = 1000

// read takes the records of the last calls from the gateway.
func (b *board) read() {
	for _, r := range b.running.Gateway.Recent("", b.last, 1<<20) {
		b.last = r.Seq
		i := slices.IndexFunc(b.projects, func(p *demoProject) bool { return p.name == r.Project })
		if i < 0 || r.Outcome != gateway.Passed {
			continue
		}
		p := b.projects[i]
		p.waits = append(p.waits, r.Waited)
		p.waits = p.waits[max(len(p.waits)-mostWaits, 0):]
		p.used += int64(r.Input + r.Output)
	}
}

// line returns the state of the demo in one line.
func (b *board) line() string {
	parts := []string{fmt.Sprintf("%3.0fs", time.Since(b.began).Seconds())}
	for _, p := range b.projects {
		parts = append(parts, fmt.Sprintf("%s %d passed, %d wait, %d denied", p.name, p.passed.Load(), b.waiting(p), p.denied.Load()))
	}
	return strings.Join(append(parts, fmt.Sprintf("overshoot %d", b.witness.overshoot())), " | ")
}

// lines returns the state of the demo as tables, with an explanation.
func (b *board) lines(width int) []string {
	return append(slices.Concat(b.projectTable(width), []string{""}, b.modelTable(width), []string{""}, console.Sentences(width, b.explanation()...)), "", fmt.Sprintf("%.0f s. Overshoot: %d, as the provider itself has counted.", time.Since(b.began).Seconds(), b.witness.overshoot()))
}

func (b *board) projectTable(width int) []string {
	t := console.NewTable(console.Text("project"), console.Text("").Leaves(2), console.Number("sent").Leaves(3), console.Number("passed"), console.Number("waiting"), console.Number("denied"),
		console.Number("failed"), console.Number("tokens").Leaves(4), console.Number("share"), console.Number("of its minute"), console.Number("p50 wait").Leaves(1))
	minutes := b.minutes()
	for _, p := range b.projects {
		share := "-"
		if p.model == large {
			share = fmt.Sprintf("%.0f%%", b.share(p))
		}
		t.Add(p.name, p.does, numeral.Grouped(p.sent.Load()), numeral.Grouped(p.passed.Load()), fmt.Sprint(b.waiting(p)), numeral.Grouped(p.denied.Load()),
			numeral.Grouped(p.failed.Load()), b.tokens(p), share, cmp.Or(minutes[p.name], "-"), p.medianWait())
	}
	return t.Lines(width)
}

// waiting returns how many calls of a project wait at the gateway: sent, and not yet at the
// provider.
func (b *board) waiting(p *demoProject) int64 {
	return max(p.inFlight.Load()-int64(b.witness.answering(p.name)), 0)
}

// share returns how many percent of the answered calls of a project's model are the project's.
func (b *board) share(p *demoProject) float64 {
	all := int64(0)
	for _, other := range b.projects {
		if other.model == p.model {
			all += other.answered()
		}
	}
	return 100 * float64(p.answered()) / float64(max(all, 1))
}

// minutes returns how much each project uses of its share of the large model's requests a minute,
// such as 60 / 120.
func (b *board) minutes() map[string]string {
	all := map[string]string{}
	for _, p := range b.running.Gateway.Models().Shares(large) {
		for _, l := range p.Limits {
			if l.Name == kind.MaxRPM.Name() {
				all[p.Project] = used(l.Used, l.Share)
			}
		}
	}
	return all
}

// tokens returns how many tokens a project has used, and its limit if it has one.
func (b *board) tokens(p *demoProject) string {
	d, err := b.running.Gateway.Projects().Peek(context.Background(), p.name)
	if err != nil {
		return "?"
	}
	for _, at := range d.Windows() {
		if at.Window.Unit == project.Tokens {
			return numeral.Grouped(at.Window.Count-at.Remaining) + " / " + numeral.Grouped(at.Window.Count)
		}
	}
	return numeral.Grouped(p.used)
}

// medianWait returns the median of the waits of a project's calls.
func (p *demoProject) medianWait() string {
	waits := slices.Sorted(slices.Values(p.waits))
	if len(waits) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", waits[len(waits)/2].Seconds())
}

func (b *board) modelTable(width int) []string {
	t := console.NewTable(console.Text("model"), console.Number("max_concurrent"), console.Number("max_rpm"), console.Number("max_tpm"))
	for _, name := range []string{large, small} {
		s := b.running.Gateway.Models().Stats(name)
		t.Add(name, used(s.Concurrent, s.MaxConcurrent), used(s.RPM, s.MaxRPM), used(s.TPM, s.MaxTPM))
	}
	return t.Lines(width)
}

// explanation says what the tables show.
func (b *board) explanation() []string {
	search, chat, batch, intern := b.projects[0], b.projects[1], b.projects[2], b.projects[4]
	return []string{
		fmt.Sprintf("%s takes %d calls at a time and %d requests a minute, and 60 callers want it: they wait their turn.", large, largeConcurrent, largeRequests),
		fmt.Sprintf("By their weights of 3, 1 and 1, search, chat and batch get %.0f%%, %.0f%% and %.0f%% of it, although batch asks most:", b.share(search), b.share(chat), b.share(batch)),
		"each has its share of every minute, of which the table shows how much is used.",
		fmt.Sprintf("intern may make %d requests a minute: %d have passed, %d were denied with 429 and a Retry-After.", internRequests, intern.passed.Load(), intern.denied.Load()),
		fmt.Sprintf("reports may use %s tokens a minute: its next call waits for the first to be a minute old.", numeral.Grouped(reportsTokens)),
		fmt.Sprintf("What has failed are errors of the provider, which makes one of %d calls of %s fail.", errorsEvery, large),
	}
}
