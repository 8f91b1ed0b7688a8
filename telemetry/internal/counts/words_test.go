package counts

import (
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Each kind of decision has its outcome, and other events have none.
func TestOutcomes(t *testing.T) {
	for e, want := range map[ratelimit.Event]string{
		{Kind: ratelimit.EventAdmitted}:                                 "admitted",
		{Kind: ratelimit.EventDenied, RetryAfter: 1}:                    "denied",
		{Kind: ratelimit.EventDenied, RetryAfter: ratelimit.Never}:      "denied",
		{Kind: ratelimit.EventRefused}:                                  "refused",
		{Kind: ratelimit.EventLeft}:                                     "left",
		{Kind: ratelimit.EventLost}:                                     "lost",
		{Kind: ratelimit.EventSettled}:                                  "",
		{Kind: ratelimit.EventCancelled}:                                "",
		{Kind: ratelimit.EventStore}:                                    "",
		{Kind: ratelimit.EventPaused, RetryAfter: 1}:                    "",
		{Kind: ratelimit.EventLowered, RetryAfter: 1, Limit: "max_rpm"}: "",
		{Kind: ratelimit.EventLearned, Limit: "max_rpm"}:                "",
		{Kind: "something new"}:                                         "",
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
