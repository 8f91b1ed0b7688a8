package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// benchReport is what a benchmark has measured.
type benchReport struct {
	Model     string         `json:"model"`
	Project   string         `json:"project,omitempty"`
	Seconds   float64        `json:"seconds"`
	Callers   int            `json:"callers"`
	Passed    int            `json:"passed"`
	Denied    int            `json:"denied"`
	Failed    int            `json:"failed"`
	PerSecond float64        `json:"passed_per_second"`
	Tokens    int            `json:"tokens"`
	Statuses  map[string]int `json:"statuses"` // how many calls had which status; "none" is no answer
	Error     string         `json:"error,omitempty"`

	Latency   map[string]float64 `json:"latency_seconds"` // of the calls that passed: p50, p90, p99, max
	Histogram []bin              `json:"histogram"`
	Limits    []judged           `json:"limits"`            // the limits for a minute, and the most that has passed in one
	Unknown   string             `json:"unknown,omitempty"` // why the limits are not known

	calls []benchCall
}

// bin is the calls that took up to a time, and longer than those of the bin before.
type bin struct {
	UpTo  float64 `json:"up_to_seconds"`
	Calls int     `json:"calls"`
}

// judged is a limit for a minute, and what has passed.
type judged struct {
	Owner     string `json:"owner"`
	Limit     string `json:"limit"`
	Max       int    `json:"max"`
	Most      int    `json:"most"` // the most that has passed in a minute, for certain
	Overshoot int    `json:"overshoot"`

	tokens bool
}

func newBenchReport(model string, b *benchFlags, l *load) *benchReport {
	r := &benchReport{Model: model, Project: b.project, Seconds: time.Since(l.began).Seconds(), Callers: b.callers, Statuses: map[string]int{}, Latency: map[string]float64{}, Histogram: []bin{}, Limits: []judged{}, Error: l.firstError, calls: l.calls}
	var took []time.Duration
	for _, c := range l.calls {
		r.Tokens += c.tokens
		took = append(took, c.answered-c.sent)
	}
	for status, n := range l.statuses {
		switch status {
		case http.StatusOK:
			r.Passed = n
		case http.StatusTooManyRequests, http.StatusPaymentRequired:
			r.Denied += n
		default:
			r.Failed += n
		}
		r.Statuses[cmp.Or(strings.TrimPrefix(strconv.Itoa(status), "0"), "none")] = n
	}
	r.Denied, r.Failed = r.Denied+l.never, r.Failed-l.never // a call that can never pass has the status of a bad request
	r.PerSecond = float64(r.Passed) / max(r.Seconds, 0.001)
	slices.Sort(took)
	for name, part := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1} {
		if n := len(took); n > 0 {
			r.Latency[name] = took[min(int(part*float64(n)), n-1)].Seconds()
		}
	}
	r.Histogram = histogram(took)
	return r
}

// histogram counts durations, which are sorted, in bins that double.
func histogram(took []time.Duration) (bins []bin) {
	for up, i := time.Millisecond, 0; i < len(took); up *= 2 {
		n := i
		for n < len(took) && took[n] <= up {
			n++
		}
		if n > i || len(bins) > 0 {
			bins = append(bins, bin{up.Seconds(), n - i})
		}
		i = n
	}
	return bins
}

// limitsFor returns the limits for a minute of a model and a project, or why they are not known.
func limitsFor(ctx context.Context, client *admin.Client, model, project string) (limits []judged, unknown string) {
	state, err := client.State(ctx)
	if err != nil {
		return nil, "the admin API does not answer at " + client.Base
	}
	for _, m := range state.Models {
		if m.Name == model || strings.HasSuffix(m.Name, "/"+model) {
			limits = append(limits, judged{Owner: m.Name, Limit: "max_rpm", Max: m.Quota.MaxRPM}, judged{Owner: m.Name, Limit: "max_tpm", Max: m.Quota.MaxTPM, tokens: true})
			break
		}
	}
	if project != "" {
		if p, err := client.Project(ctx, project); err == nil {
			limits = append(limits, judged{Owner: project, Limit: "requests_per_minute", Max: p.Limit.RequestsPerMinute}, judged{Owner: project, Limit: "tokens_per_minute", Max: p.Limit.TokensPerMinute, tokens: true})
		}
	}
	return slices.DeleteFunc(limits, func(l judged) bool { return l.Max == 0 }), ""
}

// judge finds out by how much limits were exceeded.
func (r *benchReport) judge(limits []judged, unknown string) {
	r.Unknown = unknown
	for _, l := range limits {
		l.Most = mostInAMinute(r.calls, l.tokens)
		l.Overshoot = max(l.Most-l.Max, 0)
		r.Limits = append(r.Limits, l)
	}
}

func (r *benchReport) overshoots() bool {
	return slices.ContainsFunc(r.Limits, func(l judged) bool { return l.Overshoot > 0 })
}

// mostInAMinute returns the most calls, or the most tokens of calls, that were sent and answered within
// one minute, whichever that is. The gateway admits a call after it was sent and before it is answered,
// so it has admitted all of these within the minute. A call is within the minutes that begin from a
// minute before its answer until it was sent; the most is where most of these spans overlap.
func mostInAMinute(calls []benchCall, tokens bool) (most int) {
	type edge struct {
		at   time.Duration
		more int // how much more is in the minute from here on; at the end of a span, that is less than 0
	}
	var edges []edge
	for _, c := range calls {
		amount := 1
		if tokens {
			amount = c.tokens
		}
		if from := c.answered - time.Minute; from <= c.sent {
			edges = append(edges, edge{from, amount}, edge{c.sent, -amount})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
	within := 0
	for _, e := range edges {
		within += e.more
		most = max(most, within)
	}
	return most
}

// barWidth is how long the bars of a histogram are.
const barWidth = 40

// lines returns the report for people.
func (r *benchReport) lines(width int) []string {
	lines := console.Sentences(width, fmt.Sprintf("%s calls passed in %.1f s: %.1f a second, with %s tokens; %s denied, %s failed; %d callers.",
		numeral.Grouped(int64(r.Passed)), r.Seconds, r.PerSecond, numeral.Grouped(int64(r.Tokens)), numeral.Grouped(int64(r.Denied)), numeral.Grouped(int64(r.Failed)), r.Callers))
	if r.Failed > 0 {
		var all []string
		for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
			all = append(all, fmt.Sprintf("%s: %d", status, r.Statuses[status]))
		}
		lines = append(lines, bad(width, strings.TrimSuffix("statuses "+strings.Join(all, ", ")+"; "+r.Error, "; "))...)
	}
	if r.Passed > 0 {
		lines = append(lines, "", fmt.Sprintf("p50 %s, p90 %s, p99 %s, longest %s", seconds(r.Latency["p50"]), seconds(r.Latency["p90"]), seconds(r.Latency["p99"]), seconds(r.Latency["max"])))
		lines = append(lines, r.bars(width)...)
	}
	return append(append(lines, ""), r.verdict(width)...)
}

// bars returns the histogram.
func (r *benchReport) bars(width int) []string {
	most := 1
	for _, b := range r.Histogram {
		most = max(most, b.Calls)
	}
	t := console.NewTable(console.Number("up to"), console.Number("calls"), console.Text(""))
	for _, b := range r.Histogram {
		t.Add(seconds(b.UpTo), numeral.Grouped(int64(b.Calls)), strings.Repeat("█", (b.Calls*barWidth+most-1)/most))
	}
	return t.Lines(width)
}

// verdict says whether more has passed than the limits allow.
func (r *benchReport) verdict(width int) []string {
	switch {
	case r.Unknown != "":
		return console.Sentences(width, "Overshoot is not known: "+r.Unknown+".")
	case len(r.Limits) == 0:
		return console.Sentences(width, "There are no limits for a minute that could be exceeded.")
	}
	t := console.NewTable(console.Text("limit of").ShortenedAtStart(16), console.Text("limit"), console.Number("max"), console.Number("most in a minute"), console.Number("overshoot"))
	for _, l := range r.Limits {
		t.AddStyled(styleOf(0, l.Overshoot > 0), l.Owner, l.Limit, numeral.Grouped(int64(l.Max)), numeral.Grouped(int64(l.Most)), numeral.Grouped(int64(l.Overshoot)))
	}
	return t.Lines(width)
}

// seconds returns a time in a unit that suits it.
func seconds(s float64) string {
	d := time.Duration(s * 1e9)
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
