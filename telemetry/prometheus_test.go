package telemetry

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/telemetrytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Each event changes these series by so much, and no other.
func TestPrometheusCounts(t *testing.T) {
	type changes map[string]float64
	for name, c := range map[string]struct {
		event event.Event
		want  changes
	}{
		"admitted at once": {
			event.Event{Kind: event.Admitted, Model: "m", Limited: true},
			changes{
				"ratelimit_decisions_total{limit=,model=m,outcome=admitted,project=,shadow=false}": 1,
				"ratelimit_wait_seconds_count{model=m,outcome=admitted}":                           1,
			},
		},
		"admitted after a wait": {
			event.Event{Kind: event.Admitted, Project: "acme", Model: "m", Limited: true, Limit: "max_tpm", Waited: 2500 * time.Millisecond},
			changes{
				"ratelimit_decisions_total{limit=max_tpm,model=m,outcome=admitted,project=acme,shadow=false}": 1,
				"ratelimit_wait_seconds_count{model=m,outcome=admitted}":                                      1,
				"ratelimit_wait_seconds_sum{model=m,outcome=admitted}":                                        2.5,
			},
		},
		"denied": {
			event.Event{Kind: event.Denied, Project: "acme", Limit: "tokens_per_day", RetryAfter: time.Hour},
			changes{"ratelimit_decisions_total{limit=tokens_per_day,model=,outcome=denied,project=acme,shadow=false}": 1},
		},
		"denied, but only in the shadow": {
			event.Event{Kind: event.Denied, Project: "initech", Limit: "requests_per_hour", Shadow: true},
			changes{"ratelimit_decisions_total{limit=requests_per_hour,model=,outcome=denied,project=other,shadow=true}": 1},
		},
		"denied for ever": {
			event.Event{Kind: event.Denied, Model: "m", Limited: true, Limit: "max_input_tpm", RetryAfter: ratelimit.Never},
			changes{"ratelimit_decisions_total{limit=max_input_tpm,model=m,outcome=denied,project=,shadow=false}": 1},
		},
		"a limit that is not known": {
			event.Event{Kind: event.Denied, Limit: "fortnight"},
			changes{"ratelimit_decisions_total{limit=other,model=,outcome=denied,project=,shadow=false}": 1},
		},
		"waited in vain": {
			event.Event{Kind: event.Denied, Model: "m", Limited: true, Limit: "max_concurrent", Waited: time.Second},
			changes{
				"ratelimit_decisions_total{limit=max_concurrent,model=m,outcome=denied,project=,shadow=false}": 1,
				"ratelimit_wait_seconds_count{model=m,outcome=denied}":                                         1,
				"ratelimit_wait_seconds_sum{model=m,outcome=denied}":                                           1,
			},
		},
		"failed, for a model that anybody can name": {
			event.Event{Kind: event.Lost, Model: "made-up", Err: telemetrytest.ErrGone},
			changes{"ratelimit_decisions_total{limit=,model=other,outcome=lost,project=,shadow=false}": 1},
		},
		"a name that is not text": {
			event.Event{Kind: event.Lost, Project: "\xff", Model: "\xff", Limited: true},
			changes{"ratelimit_decisions_total{limit=,model=other,outcome=lost,project=other,shadow=false}": 1},
		},
		"settled for less": {
			event.Event{Kind: event.Settled, Project: "acme", Model: "m", Limited: true, Estimated: 1000, Used: ratelimit.Tokens{Input: 200, Output: 50}},
			changes{
				"ratelimit_estimated_tokens_total{model=m,project=acme}":        1000,
				"ratelimit_compared_tokens_total{model=m,project=acme}":         250,
				"ratelimit_used_tokens_total{model=m,project=acme,type=input}":  200,
				"ratelimit_used_tokens_total{model=m,project=acme,type=output}": 50,
				"ratelimit_estimate_error_ratio_count{model=m}":                 1,
				"ratelimit_estimate_error_ratio_sum{model=m}":                   -0.75,
			},
		},
		"settled for more": {
			event.Event{Kind: event.Settled, Estimated: 100, Used: ratelimit.Tokens{Output: 300}},
			changes{
				"ratelimit_estimated_tokens_total{model=,project=}":        100,
				"ratelimit_compared_tokens_total{model=,project=}":         300,
				"ratelimit_used_tokens_total{model=,project=,type=output}": 300,
				"ratelimit_estimate_error_ratio_count{model=}":             1,
				"ratelimit_estimate_error_ratio_sum{model=}":               2,
			},
		},
		"settled at a price": {
			event.Event{Kind: event.Settled, Used: ratelimit.Tokens{Input: -1, Output: -1}, Dollars: 2_500_000_000},
			changes{"ratelimit_used_dollars_total{model=,project=}": 2.5},
		},
		"denied at a price": {
			event.Event{Kind: event.Denied, Project: "acme", Limit: "dollars_per_day", Dollars: 500_000_000},
			changes{
				"ratelimit_decisions_total{limit=dollars_per_day,model=,outcome=denied,project=acme,shadow=false}": 1,
				"ratelimit_denied_dollars_total{model=,project=acme}":                                              0.5,
			},
		},
		"denied in shadow": {
			event.Event{Kind: event.Denied, Project: "acme", Limit: "dollars_per_day", Shadow: true, Dollars: 500_000_000},
			changes{"ratelimit_decisions_total{limit=dollars_per_day,model=,outcome=denied,project=acme,shadow=true}": 1},
		},
		"settled without an estimate": {
			event.Event{Kind: event.Settled, Used: ratelimit.Tokens{Input: 7}},
			changes{"ratelimit_used_tokens_total{model=,project=,type=input}": 7},
		},
		"settled for nothing": {
			event.Event{Kind: event.Settled, Estimated: 1000},
			changes{
				"ratelimit_estimated_tokens_total{model=,project=}": 1000,
				"ratelimit_estimate_error_ratio_count{model=}":      1,
				"ratelimit_estimate_error_ratio_sum{model=}":        -1,
			},
		},
		"settled, and it is not known for what": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: -1}},
			changes{},
		},
		"settled, and only the prompt is known": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: 30, Output: -1}},
			changes{"ratelimit_used_tokens_total{model=,project=,type=input}": 30},
		},
		"settled, and only the output is known": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: 30}},
			changes{"ratelimit_used_tokens_total{model=,project=,type=output}": 30},
		},
		"cancelled": {
			event.Event{Kind: event.Cancelled, Model: "m", Limited: true, Estimated: 5},
			changes{"ratelimit_cancelled_total{model=m,project=}": 1},
		},
		"refused by the provider": {
			event.Event{Kind: event.Paused, Model: "m", Limited: true, RetryAfter: time.Hour, Cause: llm.DayLimited},
			changes{"ratelimit_provider_throttled_total{cause=day_limit,model=m}": 1},
		},
		"refused by the provider of a model that anybody can name, for a reason that is not known": {
			event.Event{Kind: event.Paused, Model: "made-up", RetryAfter: ratelimit.Never, Cause: "bad mood"},
			changes{"ratelimit_provider_throttled_total{cause=other,model=other}": 1},
		},
		"denied, because the provider has refused others": {
			event.Event{Kind: event.Denied, Model: "m", Limited: true, Limit: "paused", RetryAfter: time.Hour},
			changes{"ratelimit_decisions_total{limit=paused,model=m,outcome=denied,project=,shadow=false}": 1},
		},
		"lowered": {
			event.Event{Kind: event.Lowered, Model: "m", Limited: true, Limit: "max_rpm", Said: 3, RetryAfter: time.Minute},
			changes{"ratelimit_quota_lowered_total{limit=max_rpm,model=m}": 1},
		},
		"learned": {
			event.Event{Kind: event.Learned, Model: "m", Limited: true, Limit: "max_input_tpm", Said: 30_000},
			changes{"ratelimit_quota_learned_total{limit=max_input_tpm,model=m}": 1},
		},
		"a budget above the project has reached a threshold": {
			event.Event{Kind: event.Threshold, Project: "acme/a", Limit: "dollars_per_day", Budget: &event.Budget{Owner: "acme", Percent: 80}},
			changes{"ratelimit_thresholds_total{limit=dollars_per_day,owner=project,percent=80,project=acme}": 1},
		},
		"a budget of a run has reached a threshold": {
			event.Event{Kind: event.Threshold, Limit: "runs.calls", Budget: &event.Budget{Owner: "run r1", Percent: 100}},
			changes{"ratelimit_thresholds_total{limit=runs.calls,owner=run,percent=100,project=}": 1},
		},
		"a threshold is not told": {
			event.Event{Kind: event.Threshold, Limit: "requests_per_day", Budget: &event.Budget{Owner: "p", Percent: 80}, Err: errors.New("lost")},
			changes{"ratelimit_thresholds_missed_total": 1},
		},
		"settled for what the provider does not count": {
			event.Event{Kind: event.Settled, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 150, FreeInput: 800}},
			changes{
				"ratelimit_estimated_tokens_total{model=,project=}":        1000,
				"ratelimit_compared_tokens_total{model=,project=}":         250,
				"ratelimit_used_tokens_total{model=,project=,type=input}":  900,
				"ratelimit_used_tokens_total{model=,project=,type=output}": 150,
				"ratelimit_estimate_error_ratio_count{model=}":             1,
				"ratelimit_estimate_error_ratio_sum{model=}":               -0.75,
			},
		},
		"the store is lost": {
			telemetrytest.Stored(store.Event{Kind: store.Lost, Mode: redisstore.Deny}),
			changes{"ratelimit_store_lost": 1, "ratelimit_store_losses_total": 1},
		},
		"decided without the store": {
			telemetrytest.Stored(store.Event{Kind: store.Decided, Mode: redisstore.Allow, Allowed: 3, Denied: 2}),
			changes{
				"ratelimit_store_lost_decisions_total{mode=allow,outcome=admitted}": 3,
				"ratelimit_store_lost_decisions_total{mode=allow,outcome=denied}":   2,
			},
		},
		"a mode that is not known": {telemetrytest.Stored(store.Event{Kind: store.Decided, Mode: "guess", Allowed: 3}), changes{}},
		"reconciled, and events were missed before": {
			telemetrytest.Stored(store.Event{Kind: store.Reconciled, Keys: 3, Charged: 40, Missed: 2}),
			changes{"ratelimit_store_reconciled_keys_total": 3, "ratelimit_store_reconciled_units_total": 40, "ratelimit_store_missed_events_total": 2},
		},
		"an event of the store without one":     {event.Event{Kind: event.Store}, changes{}},
		"something that is new since, of kinds": {event.Event{Kind: "new", Model: "m", Limited: true}, changes{}},
	} {
		t.Run(name, func(t *testing.T) {
			p, registry := newProm(t, PrometheusConfig{Projects: []string{"acme", "acme"}})
			telemetrytest.Tell(t, p, c.event)
			got := changes(telemetrytest.Gathered(t, registry))
			maps.DeleteFunc(got, func(_ string, by float64) bool { return by == 0 })
			testkit.Equal(t, "changes", c.want, got)
		})
	}
}

// The gauge is the number of lost groups, whatever the order of events and however often they come.
func TestPrometheusStoreLost(t *testing.T) {
	p, registry := newProm(t, PrometheusConfig{})
	for i, step := range telemetrytest.Losing {
		telemetrytest.Tell(t, p, telemetrytest.Stored(store.Event{Kind: step.Kind, Group: step.Group}))
		if got := telemetrytest.Gathered(t, registry)["ratelimit_store_lost"]; got != step.Lost {
			t.Errorf("step %d, %s %d: %v are lost, want %v", i, step.Kind, step.Group, got, step.Lost)
		}
	}
	if got := telemetrytest.Gathered(t, registry)["ratelimit_store_losses_total"]; got != 5 {
		t.Errorf("%v losses, want 5", got)
	}
}

func TestPrometheusConfig(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  PrometheusConfig
		want string // of the error
	}{
		"negative models":       {PrometheusConfig{Models: -1}, "Models of -1: it must be at least 1, or 0 for 100"},
		"empty project":         {PrometheusConfig{Projects: []string{"acme", ""}}, `project "": an id in Projects must be UTF-8, and neither empty nor "other"`},
		"the project other":     {PrometheusConfig{Projects: []string{"other"}}, `project "other"`},
		"project is not text":   {PrometheusConfig{Projects: []string{"\xff"}}, `project "\xff"`},
		"a name is taken there": {PrometheusConfig{Registerer: taken(t)}, "cannot register the metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Registerer == nil {
				c.cfg.Registerer = prometheus.NewRegistry()
			}
			p, err := NewPrometheus(c.cfg)
			if p != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("NewPrometheus = %v, %v; want an error with %q", p, err, c.want)
			}
		})
	}
}

// taken returns a registry in which another collector has one of our names.
func taken(t *testing.T) prometheus.Registerer {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ratelimit_decisions_total"}, []string{"colour"}))
	return registry
}

func TestPrometheusTwice(t *testing.T) {
	first, registry := newProm(t, PrometheusConfig{})
	second, err := NewPrometheus(PrometheusConfig{Registerer: registry})
	var already prometheus.AlreadyRegisteredError
	if second != nil || !errors.As(err, &already) || already.ExistingCollector != first || !strings.HasPrefix(err.Error(), "ratelimit: an observer for Prometheus is registered there already") {
		t.Fatalf("the second is %v, %v; want an error that has the first", second, err)
	}
	if !registry.Unregister(first) {
		t.Error("the first cannot be unregistered")
	}
	if _, err := NewPrometheus(PrometheusConfig{Registerer: registry}); err != nil {
		t.Errorf("after the first was unregistered: %v", err)
	}
}

// A label distinguishes several stores.
func TestPrometheusSeveral(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"east", "west"} {
		p, err := NewPrometheus(PrometheusConfig{Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"store": name}, registry)})
		if err != nil {
			t.Fatal(err)
		}
		if name == "east" {
			telemetrytest.Tell(t, p, telemetrytest.Stored(store.Event{Kind: store.Lost}))
		}
	}
	got := telemetrytest.Gathered(t, registry)
	if east, west := got["ratelimit_store_lost{store=east}"], got["ratelimit_store_lost{store=west}"]; east != 1 || west != 0 {
		t.Errorf("lost: east %v, west %v; want 1 and 0", east, west)
	}
}

func TestPrometheusDefaults(t *testing.T) {
	p, err := NewPrometheus(PrometheusConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer prometheus.DefaultRegisterer.Unregister(p)
	telemetrytest.Tell(t, p, telemetrytest.Story...)
	got := telemetrytest.Gathered(t, prometheus.DefaultGatherer)
	if n := got["ratelimit_decisions_total{limit=requests_per_minute,model=gpt-4o,outcome=denied,project=other,shadow=false}"]; n != 1 {
		t.Errorf("%v denials of a project that is not listed, want 1", n)
	}
}
