// Package telemetrytest has what the tests of the observers have in common, with Prometheus and with
// OpenTelemetry's SDK: events, and checks of the metrics that result from them.
package telemetrytest

import (
	"errors"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// ErrGone is the error with which the store is lost in the [Story].
var ErrGone = errors.New("the store is gone")

// Story is a list of events that give every metric a value.
var Story = []event.Event{
	{Kind: event.Admitted, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: 59, Estimated: 1000},
	{Kind: event.Admitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: 58, Waited: 1500 * time.Millisecond, Estimated: 1000},
	{Kind: event.Settled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}, Dollars: 12_500_000},
	{Kind: event.Settled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 300, Output: 100}},
	{Kind: event.Denied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "requests_per_minute", RemainingMinute: 0, RetryAfter: time.Second, Dollars: 20_000_000},
	{Kind: event.Denied, Project: "initech", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: -1, RetryAfter: ratelimit.Never},
	{Kind: event.Denied, Project: "initech", Limit: "requests_per_day", Shadow: true, RemainingMinute: 3, RetryAfter: time.Hour, Dollars: 1_000_000_000},
	{Kind: event.Denied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_rpm", RemainingMinute: -1, Waited: time.Minute},
	{Kind: event.Lost, Model: "made-up", RemainingMinute: -1, Err: ErrGone},
	{Kind: event.Cancelled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000},
	{Kind: event.Paused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 20 * time.Second, Cause: llm.RateLimited},
	{Kind: event.Denied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "paused", RemainingMinute: -1, RetryAfter: 20 * time.Second},
	{Kind: event.Paused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 10 * time.Minute, Cause: llm.SpendCap},
	{Kind: event.Paused, Model: "made-up", RemainingMinute: -1, RetryAfter: time.Second, Cause: llm.Overloaded},
	{Kind: event.Lowered, Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: -1, RetryAfter: 6 * time.Second, Said: 27_000},
	{Kind: event.Learned, Model: "gpt-4o", Limited: true, Limit: "max_rpm", RemainingMinute: -1, Said: 500},
	{Kind: event.Threshold, Project: "acme/search", Limit: "dollars_per_month", RemainingMinute: -1, Budget: &event.Budget{
		Owner: "acme", Limit: "dollars_per_month", Unit: "dollars", Percent: 80, Used: 4_100_000_000_000, Max: 5_000_000_000_000,
	}},
	{Kind: event.Threshold, Project: "acme", Limit: "requests_per_day", RemainingMinute: -1, Budget: &event.Budget{Owner: "acme", Limit: "requests_per_day", Percent: 50}, Err: ErrGone},
	Stored(store.Event{Kind: store.Lost, Mode: redisstore.Share, Group: 7, Err: ErrGone}),
	Stored(store.Event{Kind: store.Lost, Mode: redisstore.Share, Group: 63, Err: ErrGone}),
	Stored(store.Event{Kind: store.Decided, Mode: redisstore.Share, Allowed: 10, Denied: 4}),
	Stored(store.Event{Kind: store.Back, Mode: redisstore.Share, Group: 7}),
	Stored(store.Event{Kind: store.Reconciled, Mode: redisstore.Share, Keys: 2, Charged: 700, Missed: 1}),
}

// Losing is a list of events of a store, some of them repeated and some missing, with the number of
// groups that are lost after each event. Five events are losses.
var Losing = []struct {
	Kind  store.EventKind
	Group int
	Lost  float64
}{
	{store.Back, 0, 0},
	{store.Lost, 0, 1},
	{store.Lost, 63, 2},
	{store.Lost, 63, 2},
	{store.Decided, 0, 2},
	{store.Lost, 5, 3},
	{store.Lost, 31, 4},
	{store.Back, 31, 3},
	{store.Back, 63, 2},
	{store.Back, 63, 2},
	{store.Back, 0, 1},
	{store.Reconciled, 0, 1},
	{store.Back, 5, 0},
}

// Stored returns the event of a limiter for an event of its store.
func Stored(e store.Event) event.Event {
	return event.Event{Kind: event.Store, RemainingMinute: -1, Err: e.Err, Store: &e}
}

// Tell passes events to an observer.
func Tell(t testing.TB, o event.Observer, events ...event.Event) {
	for _, e := range events {
		o.Observe(t.Context(), e)
	}
}

// Usual are the events of ordinary calls, by their names.
var Usual = map[string]event.Event{
	"admitted": {Kind: event.Admitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: 58, Waited: time.Millisecond, Estimated: 1000},
	"denied":   {Kind: event.Denied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_concurrent", RetryAfter: time.Second},
	"settled":  {Kind: event.Settled, Project: "acme", Model: "gpt-4o", Limited: true, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}, Dollars: 12_500_000},
}
