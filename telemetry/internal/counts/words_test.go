package counts

import (
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Each kind of decision has its outcome, and other events have none.
func TestOutcomes(t *testing.T) {
	for e, want := range map[event.Event]string{
		{Kind: event.Admitted}:                                 "admitted",
		{Kind: event.Denied, RetryAfter: 1}:                    "denied",
		{Kind: event.Denied, RetryAfter: ratelimit.Never}:      "denied",
		{Kind: event.Refused}:                                  "refused",
		{Kind: event.Left}:                                     "left",
		{Kind: event.Lost}:                                     "lost",
		{Kind: event.Settled}:                                  "",
		{Kind: event.Cancelled}:                                "",
		{Kind: event.Store}:                                    "",
		{Kind: event.Paused, RetryAfter: 1}:                    "",
		{Kind: event.Lowered, RetryAfter: 1, Limit: "max_rpm"}: "",
		{Kind: event.Learned, Limit: "max_rpm"}:                "",
		{Kind: "something new"}:                                "",
	} {
		got := ""
		if i := outcomeOf(e.Kind); i >= 0 {
			got = string(outcomes[i])
		}
		if got != want {
			t.Errorf("%s, %v: %q; want %q", e.Kind, e.RetryAfter, got, want)
		}
	}
}

// Every cause that a provider may have has its name.
func TestCauses(t *testing.T) {
	for cause, want := range map[llm.Cause]string{
		llm.RateLimited: "rate_limit",
		llm.DayLimited:  "day_limit",
		llm.SpendCap:    "spend_cap",
		llm.Overloaded:  "overload",
		"":              other,
		"bad mood":      other,
	} {
		if got := causeLabel(cause); got != want {
			t.Errorf("%q counts as %q, want %q", cause, got, want)
		}
	}
}
