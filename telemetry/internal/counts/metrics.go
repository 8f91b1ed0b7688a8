// Package counts is what the observers for Prometheus and for OpenTelemetry share: which metrics there are, what each
// event adds to them, and how many series they may have.
package counts

import (
	"context"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/store"
)

// Definition describes a metric for Prometheus and for OpenTelemetry.
type Definition struct {
	Prometheus    string // the metric's name, without the namespace
	OpenTelemetry string // the metric's name
	Unit          string // for OpenTelemetry
	Help          string
	Labels        []string // as Prometheus names them

	// Bounds are the upper bounds of the buckets of a histogram. A counter with bounds is a
	// histogram in OpenTelemetry.
	Bounds []float64
}

// dollars is the unit of counters that count billionths of a dollar, and export dollars.
const dollars = "{USD}"

// IsMoney reports whether a counter counts billionths of a dollar, and exports dollars.
func (d *Definition) IsMoney() bool { return d.Unit == dollars }

// Exporter makes metrics for Prometheus or for OpenTelemetry.
type Exporter interface {
	Counters(Definition) Counters
	Histograms(Definition) Histograms
	Gauge(d Definition, read func() int)
}

type (
	// Counters returns the counter with the given values of the labels.
	Counters func(values ...string) Counter

	// Counter adds n, unless n is negative.
	Counter func(ctx context.Context, n int64)

	// Histograms returns the histogram with the given values of the labels.
	Histograms func(values ...string) Histogram

	// Histogram records a value.
	Histogram func(ctx context.Context, value float64)
)

// Metrics counts events.
type Metrics struct {
	series *series[pair]

	decisions, tokens, estimated, compared, cancelled Counters
	dollars, deniedDollars                            Counters
	throttled, lowered, learned, thresholds           Counters
	waits, errors                                     Histograms
	thresholdsMissed                                  Counter

	lost                          lostGroups
	losses, keys, charged, missed Counter
	decidedAlone                  map[store.LossMode]decided
}

// pair has the metrics of one model and project. Each is made when it is first needed, so that
// none is exported before.
type pair struct {
	model, project string

	decisions [len(outcomes)][][2]lazy[Counter] // by outcome and limit; the last index is 1 for a shadow
	waits     [len(outcomes)]lazy[Histogram]

	input, output, estimated, compared, cancelled lazy[Counter]
	dollars, deniedDollars                        lazy[Counter]
	errors                                        lazy[Histogram]

	throttled        [len(causes)]lazy[Counter]
	lowered, learned []lazy[Counter] // by limit
}

func newPair(model, project string) *pair {
	p := &pair{model: model, project: project, lowered: make([]lazy[Counter], len(limits)), learned: make([]lazy[Counter], len(limits))}
	for i := range p.decisions {
		p.decisions[i] = make([][2]lazy[Counter], len(limits))
	}
	return p
}

// decided counts decisions that were made while the store was lost.
type decided struct{ admitted, denied Counter }

// Upper bounds of the buckets of histograms.
var (
	waitBounds  = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}
	errorBounds = []float64{-0.9, -0.75, -0.5, -0.25, -0.1, -0.05, 0, 0.05, 0.1, 0.25, 0.5, 1, 2, 5}

	// tokenBounds are those that the semantic conventions for generative AI advise.
	tokenBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// New makes the metrics. At most maxModels models, 0 for the default, and the listed
// projects have series of their own.
func New(x Exporter, maxModels int, projects []string) (*Metrics, error) {
	series, err := newSeries(maxModels, projects, newPair)
	if err != nil {
		return nil, err
	}
	m := &Metrics{
		series: series,
		decisions: x.Counters(Definition{"decisions_total", "ratelimit.decisions", "{decision}",
			"Decisions on calls, by what became of them and by the limit that denied them.", []string{"outcome", "limit", "model", "project", "shadow"}, nil}),
		tokens: x.Counters(Definition{"used_tokens_total", "gen_ai.client.token.usage", "{token}",
			"Tokens that calls have used.", []string{"model", "project", "type"}, tokenBounds}),
		estimated: x.Counters(Definition{"estimated_tokens_total", "ratelimit.estimated_tokens", "{token}",
			"Tokens that were reserved for calls whose usage is known.", []string{"model", "project"}, nil}),
		compared: x.Counters(Definition{"compared_tokens_total", "ratelimit.compared_tokens", "{token}",
			"Tokens used by the calls whose estimated tokens are counted.", []string{"model", "project"}, nil}),
		cancelled: x.Counters(Definition{"cancelled_total", "ratelimit.cancelled", "{call}",
			"Calls that were admitted and then cancelled, which gave everything back.", []string{"model", "project"}, nil}),
		dollars: x.Counters(Definition{"used_dollars_total", "ratelimit.used_dollars", dollars,
			"What calls have cost, in dollars, where their models have prices.", []string{"model", "project"}, nil}),
		deniedDollars: x.Counters(Definition{"denied_dollars_total", "ratelimit.denied_dollars", dollars,
			"What denied calls were expected to cost, in dollars.", []string{"model", "project"}, nil}),
		waits: x.Histograms(Definition{"wait_seconds", "ratelimit.wait.duration", "s",
			"How long calls have waited in line until they were admitted, or gave up.", []string{"outcome", "model"}, waitBounds}),
		errors: x.Histograms(Definition{"estimate_error_ratio", "ratelimit.estimate.error", "1",
			"Relative error of the estimates of calls: used by estimated, less one.", []string{"model"}, errorBounds}),
		throttled: x.Counters(Definition{"provider_throttled_total", "ratelimit.provider.throttled", "{call}",
			"Calls that were made, and that a provider has throttled, by its cause.", []string{"model", "cause"}, nil}),
		lowered: x.Counters(Definition{"quota_lowered_total", "ratelimit.quota.lowered", "{time}",
			"How often a provider had less left of a limit than the quota of the model.", []string{"model", "limit"}, nil}),
		learned: x.Counters(Definition{"quota_learned_total", "ratelimit.quota.learned", "{time}",
			"How often the maximum of a quota was replaced by what a provider grants.", []string{"model", "limit"}, nil}),
		thresholds: x.Counters(Definition{"thresholds_total", "ratelimit.thresholds", "{threshold}",
			"Thresholds that budgets have reached, once a window.", []string{"project", "owner", "limit", "percent"}, nil}),
		thresholdsMissed: x.Counters(Definition{"thresholds_missed_total", "ratelimit.thresholds.missed", "{threshold}",
			"Threshold notifications that were not sent: there were too many, or the store could not be asked.", nil, nil})(),
		decidedAlone: map[store.LossMode]decided{},
	}
	m.addStore(x)
	return m, nil
}

// addStore makes the metrics of a store that can be lost. They are exported from the start.
func (m *Metrics) addStore(x Exporter) {
	add := func(prometheus, openTelemetry, unit, help string) Counter {
		return x.Counters(Definition{prometheus, openTelemetry, unit, help, nil, nil})()
	}
	m.losses = add("store_losses_total", "ratelimit.store.losses", "{loss}", "How often the store, or a part of a cluster, was lost.")
	m.keys = add("store_reconciled_keys_total", "ratelimit.store.reconciled.keys", "{key}",
		"Keys that were charged, once the store was back, with what had been admitted without it.")
	m.charged = add("store_reconciled_units_total", "ratelimit.store.reconciled.units", "{unit}",
		"What these keys were charged with, in requests and tokens together.")
	m.missed = add("store_missed_events_total", "ratelimit.store.missed_events", "{event}",
		"Events of the store that were dropped because observers took too long: other metrics of the store lack them.")
	decisions := x.Counters(Definition{"store_lost_decisions_total", "ratelimit.store.decisions", "{decision}",
		"Decisions without the store, by what the limiter does while it is lost.", []string{"mode", "outcome"}, nil})
	for _, mode := range lossModes {
		m.decidedAlone[mode] = decided{decisions(string(mode), string(event.Admitted)), decisions(string(mode), string(event.Denied))}
	}
	x.Gauge(Definition{"store_lost", "ratelimit.store.lost", "{part}",
		"Whether the store is lost: 0 or 1. In a cluster, how many of its 64 parts are.", nil, nil}, m.lost.count)
}

// List gives more projects series of their own from now on.
func (m *Metrics) List(projects []string) error { return m.series.list(projects) }

// Listing returns the projects that have series of their own now.
func (m *Metrics) Listing() *Listing { return m.series.listing.Load() }

// Observe counts an event.
func (m *Metrics) Observe(ctx context.Context, e *event.Event) {
	switch e.Kind {
	case event.Store:
		m.observeStore(ctx, e.Store)
	case event.Settled:
		m.settle(ctx, e)
	case event.Threshold:
		m.reach(ctx, e)
	case event.Cancelled:
		s := m.series.of(e)
		s.cancelled.get(func() Counter { return m.cancelled(s.model, s.project) })(ctx, 1)
	case event.Paused:
		s, cause := m.series.of(e), indexOf(causes[:], e.Cause)
		s.throttled[cause].get(func() Counter { return m.throttled(s.model, causeLabel(e.Cause)) })(ctx, 1)
	case event.Lowered:
		s, limit := m.series.of(e), limitIndex(e.Limit)
		s.lowered[limit].get(func() Counter { return m.lowered(s.model, limits[limit]) })(ctx, 1)
	case event.Learned:
		s, limit := m.series.of(e), limitIndex(e.Limit)
		s.learned[limit].get(func() Counter { return m.learned(s.model, limits[limit]) })(ctx, 1)
	default:
		m.decide(ctx, e)
	}
}

// reach counts a threshold that a budget has reached.
func (m *Metrics) reach(ctx context.Context, e *event.Event) {
	switch {
	case e.Err != nil:
		m.thresholdsMissed(ctx, 1)
		return
	case e.Budget == nil:
		return
	}
	of := *e
	owner, _, _ := strings.Cut(e.Budget.Owner, " ")
	if owner != "key" && owner != "run" {
		owner, of.Project = "project", e.Budget.Owner // which may be above the project of the call
	}
	m.thresholds(m.series.of(&of).project, owner, limits[limitIndex(e.Limit)], strconv.Itoa(e.Budget.Percent))(ctx, 1)
}

// decide counts a decision, and how long the call has waited. It ignores events that are no
// decision.
func (m *Metrics) decide(ctx context.Context, e *event.Event) {
	outcome := outcomeOf(e.Kind)
	if outcome < 0 {
		return
	}
	s, limit, shadow := m.series.of(e), limitIndex(e.Limit), 0
	if e.Shadow {
		shadow = 1
	}
	s.decisions[outcome][limit][shadow].get(func() Counter {
		return m.decisions(string(e.Kind), limits[limit], s.model, s.project, strconv.FormatBool(e.Shadow))
	})(ctx, 1)
	if e.Kind == event.Denied && !e.Shadow && e.Dollars > 0 {
		s.deniedDollars.get(func() Counter { return m.deniedDollars(s.model, s.project) })(ctx, int64(e.Dollars))
	}
	if waited(e) {
		s.waits[outcome].get(func() Histogram { return m.waits(string(e.Kind), s.model) })(ctx, e.Waited.Seconds())
	}
}

// settle counts what a call has cost and used, as far as it is known, and compares it with the estimate if
// all of it is known.
func (m *Metrics) settle(ctx context.Context, e *event.Event) {
	input, output := int64(e.Used.Input), int64(e.Used.Output)
	if input < 0 && output < 0 && e.Dollars <= 0 {
		return
	}
	s := m.series.of(e)
	if e.Dollars > 0 {
		s.dollars.get(func() Counter { return m.dollars(s.model, s.project) })(ctx, int64(e.Dollars))
	}
	if input < 0 && output < 0 {
		return
	}
	s.input.get(func() Counter { return m.tokens(s.model, s.project, "input") })(ctx, input)
	s.output.get(func() Counter { return m.tokens(s.model, s.project, "output") })(ctx, output)
	used, ok := comparedTokens(e)
	if !ok {
		return
	}
	s.estimated.get(func() Counter { return m.estimated(s.model, s.project) })(ctx, e.Estimated)
	s.compared.get(func() Counter { return m.compared(s.model, s.project) })(ctx, used)
	s.errors.get(func() Histogram { return m.errors(s.model) })(ctx, float64(used)/float64(e.Estimated)-1)
}

// comparedTokens returns how many of the tokens that a call has used count towards its quota. ok is
// false where that cannot be compared with an estimate: no tokens were reserved, or a part of the
// usage is unknown.
func comparedTokens(e *event.Event) (used int64, ok bool) {
	u := e.Used
	if e.Estimated <= 0 || u.Input < 0 || u.Output < 0 {
		return 0, false
	}
	input, output := e.Count.Count(u)
	return input + output, true
}
