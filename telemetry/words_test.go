package telemetry

import (
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// Each kind of decision has its outcome, and other events have none.
func TestOutcomes(t *testing.T) {
	for e, want := range map[ratelimit.Event]string{
		{Kind: ratelimit.EventAdmitted}:                            "admitted",
		{Kind: ratelimit.EventDenied, RetryAfter: 1}:               "denied",
		{Kind: ratelimit.EventDenied, RetryAfter: ratelimit.Never}: "never",
		{Kind: ratelimit.EventInvalid}:                             "invalid",
		{Kind: ratelimit.EventShed}:                                "shed",
		{Kind: ratelimit.EventFailed}:                              "failed",
		{Kind: ratelimit.EventSettled}:                             "",
		{Kind: ratelimit.EventCancelled}:                           "",
		{Kind: ratelimit.EventStore}:                               "",
		{Kind: "something new"}:                                    "",
	} {
		got := ""
		if became, ok := outcomeOf(&e); ok {
			got = outcomeNames[became]
		}
		if got != want {
			t.Errorf("%s, %v: %q; want %q", e.Kind, e.RetryAfter, got, want)
		}
	}
}
