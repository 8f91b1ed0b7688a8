package telemetry

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// Observers start no goroutine, and what tests start they end.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = errors.New("the store is gone")

// story is events from which every metric gets a value.
var story = []ratelimit.Event{
	{Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: 59, Estimated: 1000},
	{Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "tpm", RemainingMinute: 58, Waited: 1500 * time.Millisecond, Estimated: 1000},
	{Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}},
	{Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 300, Output: 100}},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "minute", RemainingMinute: 0, RetryAfter: time.Second},
	{Kind: ratelimit.EventDenied, Project: "initech", Model: "gpt-4o", Limited: true, Limit: "tpm", RemainingMinute: -1, RetryAfter: ratelimit.Never},
	{Kind: ratelimit.EventDenied, Project: "initech", Limit: "day", Shadow: true, RemainingMinute: 3, RetryAfter: time.Hour},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "rpm", RemainingMinute: -1, Waited: time.Minute},
	{Kind: ratelimit.EventLost, Model: "made-up", RemainingMinute: -1, Err: errGone},
	{Kind: ratelimit.EventCancelled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000},
	{Kind: ratelimit.EventPaused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 20 * time.Second, Cause: llm.RateLimited},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "paused", RemainingMinute: -1, RetryAfter: 20 * time.Second},
	{Kind: ratelimit.EventPaused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 10 * time.Minute, Cause: llm.SpendCap},
	{Kind: ratelimit.EventPaused, Model: "made-up", RemainingMinute: -1, RetryAfter: time.Second, Cause: llm.Overloaded},
	{Kind: ratelimit.EventLowered, Model: "gpt-4o", Limited: true, Limit: "tpm", RemainingMinute: -1, RetryAfter: 6 * time.Second, Said: 27_000},
	{Kind: ratelimit.EventLearned, Model: "gpt-4o", Limited: true, Limit: "rpm", RemainingMinute: -1, Said: 500},
	stored(redisstore.Event{Kind: redisstore.Lost, Mode: redisstore.Share, Group: 7, Err: errGone}),
	stored(redisstore.Event{Kind: redisstore.Lost, Mode: redisstore.Share, Group: 63, Err: errGone}),
	stored(redisstore.Event{Kind: redisstore.Decided, Mode: redisstore.Share, Allowed: 10, Denied: 4}),
	stored(redisstore.Event{Kind: redisstore.Back, Mode: redisstore.Share, Group: 7}),
	stored(redisstore.Event{Kind: redisstore.Reconciled, Mode: redisstore.Share, Keys: 2, Charged: 700, Missed: 1}),
}

// halfKnown is calls of which only the third can be compared with its estimate.
var halfKnown = []ratelimit.Event{
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: -1}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: 800}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: 200, Output: 50}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: -1}},
	{Kind: ratelimit.EventSettled, Used: ratelimit.Tokens{Input: 500, Output: 500}}, // nothing limits it
}

// losing is events of a store, some of them twice and some missing, and how many
// groups are lost after each. Five are losses.
var losing = []struct {
	kind  redisstore.EventKind
	group int
	lost  float64
}{
	{redisstore.Back, 0, 0},
	{redisstore.Lost, 0, 1},
	{redisstore.Lost, 63, 2},
	{redisstore.Lost, 63, 2},
	{redisstore.Decided, 0, 2},
	{redisstore.Lost, 5, 3},
	{redisstore.Lost, 31, 4},
	{redisstore.Back, 31, 3},
	{redisstore.Back, 63, 2},
	{redisstore.Back, 63, 2},
	{redisstore.Back, 0, 1},
	{redisstore.Reconciled, 0, 1},
	{redisstore.Back, 5, 0},
}

func stored(e redisstore.Event) ratelimit.Event {
	return ratelimit.Event{Kind: ratelimit.EventStore, RemainingMinute: -1, Err: e.Err, Store: &e}
}

func tell(t testing.TB, o ratelimit.Observer, events ...ratelimit.Event) {
	for _, e := range events {
		o.Observe(t.Context(), e)
	}
}

// newProm returns an observer with a registry of its own, which has it alone.
func newProm(t testing.TB, cfg PrometheusConfig) (*Prometheus, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	cfg.Registerer = registry
	p, err := NewPrometheus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, registry
}

// full returns a registry with all that the package exports, and who was told the
// story.
func full(t testing.TB) (*Prometheus, *prometheus.Registry) {
	t.Helper()
	p, registry := newProm(t, PrometheusConfig{Projects: []string{"acme"}})
	tell(t, p, story...)
	rl := newLimiter(t, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{
		"gpt-4o": {MaxRPM: 500, MaxTPM: 30_000},
		"claude": {MaxRPM: 50, MaxInputTPM: 30_000, MaxOutputTPM: 8_000, MaxRPD: 1_000, MaxTPD: 1_000_000, MaxConcurrent: 4},
	}})
	rl.RecordUsage("gpt-4o", 900, 300)
	rl.RecordUsage("made-up", 1, 1)
	registry.MustRegister(NewModelCollector(rl))
	return p, registry
}

func newLimiter(t testing.TB, cfg ratelimit.Config) *ratelimit.RateLimiter {
	t.Helper()
	cfg.FilePath = t.TempDir() + "/ratelimits.yaml"
	rl, err := ratelimit.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rl.Close() })
	return rl
}

// gathered returns the value of each series, as the exposition has it: name,
// labels, and of a histogram its sum and count.
func gathered(t testing.TB, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += "," + l.GetName() + "=" + l.GetValue()
			}
			if labels != "" {
				labels = "{" + labels[1:] + "}"
			}
			name := family.GetName()
			switch {
			case m.Counter != nil:
				values[name+labels] = m.Counter.GetValue()
			case m.Gauge != nil:
				values[name+labels] = m.Gauge.GetValue()
			case m.Histogram != nil:
				values[name+"_sum"+labels] = m.Histogram.GetSampleSum()
				values[name+"_count"+labels] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return values
}
