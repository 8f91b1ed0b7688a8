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
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// ErrGone is the error with which the store is lost in the [Story].
var ErrGone = errors.New("the store is gone")

// Story is a list of events that give every metric a value.
var Story = []ratelimit.Event{
	{Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: 59, Estimated: 1000},
	{Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: 58, Waited: 1500 * time.Millisecond, Estimated: 1000},
	{Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}, Dollars: 12_500_000},
	{Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000, Used: ratelimit.Tokens{Input: 300, Output: 100}},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "requests_per_minute", RemainingMinute: 0, RetryAfter: time.Second, Dollars: 20_000_000},
	{Kind: ratelimit.EventDenied, Project: "initech", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: -1, RetryAfter: ratelimit.Never},
	{Kind: ratelimit.EventDenied, Project: "initech", Limit: "requests_per_day", Shadow: true, RemainingMinute: 3, RetryAfter: time.Hour, Dollars: 1_000_000_000},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_rpm", RemainingMinute: -1, Waited: time.Minute},
	{Kind: ratelimit.EventLost, Model: "made-up", RemainingMinute: -1, Err: ErrGone},
	{Kind: ratelimit.EventCancelled, Project: "acme", Model: "gpt-4o", Limited: true, RemainingMinute: -1, Estimated: 1000},
	{Kind: ratelimit.EventPaused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 20 * time.Second, Cause: llm.RateLimited},
	{Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "paused", RemainingMinute: -1, RetryAfter: 20 * time.Second},
	{Kind: ratelimit.EventPaused, Model: "gpt-4o", Limited: true, RemainingMinute: -1, RetryAfter: 10 * time.Minute, Cause: llm.SpendCap},
	{Kind: ratelimit.EventPaused, Model: "made-up", RemainingMinute: -1, RetryAfter: time.Second, Cause: llm.Overloaded},
	{Kind: ratelimit.EventLowered, Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: -1, RetryAfter: 6 * time.Second, Said: 27_000},
	{Kind: ratelimit.EventLearned, Model: "gpt-4o", Limited: true, Limit: "max_rpm", RemainingMinute: -1, Said: 500},
	{Kind: ratelimit.EventThreshold, Project: "acme/search", Limit: "dollars_per_month", RemainingMinute: -1, Budget: &event.Budget{
		Owner: "acme", Limit: "dollars_per_month", Unit: "dollars", Percent: 80, Used: 4_100_000_000_000, Max: 5_000_000_000_000,
	}},
	{Kind: ratelimit.EventThreshold, Project: "acme", Limit: "requests_per_day", RemainingMinute: -1, Budget: &event.Budget{Owner: "acme", Limit: "requests_per_day", Percent: 50}, Err: ErrGone},
	Stored(redisstore.Event{Kind: redisstore.Lost, Mode: redisstore.Share, Group: 7, Err: ErrGone}),
	Stored(redisstore.Event{Kind: redisstore.Lost, Mode: redisstore.Share, Group: 63, Err: ErrGone}),
	Stored(redisstore.Event{Kind: redisstore.Decided, Mode: redisstore.Share, Allowed: 10, Denied: 4}),
	Stored(redisstore.Event{Kind: redisstore.Back, Mode: redisstore.Share, Group: 7}),
	Stored(redisstore.Event{Kind: redisstore.Reconciled, Mode: redisstore.Share, Keys: 2, Charged: 700, Missed: 1}),
}

// HalfKnown is the events of calls of which only the third can be compared with its estimate.
var HalfKnown = []ratelimit.Event{
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: -1}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: 800}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: 200, Output: 50}},
	{Kind: ratelimit.EventSettled, Estimated: 1000, Used: ratelimit.Tokens{Input: -1, Output: -1}},
	{Kind: ratelimit.EventSettled, Used: ratelimit.Tokens{Input: 500, Output: 500}}, // nothing limits it
}

// Losing is a list of events of a store, some of them repeated and some missing, with the number of
// groups that are lost after each event. Five events are losses.
var Losing = []struct {
	Kind  redisstore.EventKind
	Group int
	Lost  float64
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

// Stored returns the event of a limiter for an event of its store.
func Stored(e redisstore.Event) ratelimit.Event {
	return ratelimit.Event{Kind: ratelimit.EventStore, RemainingMinute: -1, Err: e.Err, Store: &e}
}

// Tell passes events to an observer.
func Tell(t testing.TB, o ratelimit.Observer, events ...ratelimit.Event) {
	for _, e := range events {
		o.Observe(t.Context(), e)
	}
}

// Usual are the events of ordinary calls, by their names.
var Usual = map[string]ratelimit.Event{
	"admitted": {Kind: ratelimit.EventAdmitted, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_tpm", RemainingMinute: 58, Waited: time.Millisecond, Estimated: 1000},
	"denied":   {Kind: ratelimit.EventDenied, Project: "acme", Model: "gpt-4o", Limited: true, Limit: "max_concurrent", RetryAfter: time.Second},
	"settled":  {Kind: ratelimit.EventSettled, Project: "acme", Model: "gpt-4o", Limited: true, Estimated: 1000, Used: ratelimit.Tokens{Input: 900, Output: 300}, Dollars: 12_500_000},
}
