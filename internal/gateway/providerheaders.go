package gateway

import (
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// tightest is the limit on requests, or on tokens, of which least is left. The model's limits by
// the minute, the project's shares of them and all limits of the project, of those above it, of the
// key and of the run are considered.
type tightest struct {
	max, left int64
	reset     time.Duration
}

// setProviderHeaders sets the headers with limits that the SDKs of the call's provider read.
// The call was denied.
func (x *exchange) setProviderHeaders(h http.Header) {
	requests, tokens := x.tightestLimits()
	for unit, t := range map[string]tightest{"requests": requests, "tokens": tokens} {
		if t.max > 0 {
			x.endpoint.API.SetLimit(h, unit, llm.Window{Limit: t.max, Remaining: t.left, Reset: t.reset}, time.Now())
		}
	}
}

// tightestLimits returns the tightest limits on requests and on tokens, by the decision on the
// call.
func (x *exchange) tightestLimits() (requests, tokens tightest) {
	d := &x.decision
	quota, _ := x.g.limits.Models.Quota(x.Quota)
	reset := min(d.RetryAfter, time.Minute+quota.Margin) // RetryAfter may be that of another limit, or Never
	left := func(limit string, maximum, used int) int64 {
		if limit == d.Limit {
			used += d.Elsewhere
		}
		return int64(maximum - used)
	}
	requests.consider(int64(d.Stats.MaxRPM), left(kind.MaxRPM.Name(), d.Stats.MaxRPM, d.Stats.RPM), reset)
	tokens.consider(int64(d.Stats.MaxTPM), left(kind.MaxTPM.Name(), d.Stats.MaxTPM, d.Stats.TPM), reset)
	switch d.Limit { // of the model much may be left, for other projects
	case kind.MaxRPM.Name() + kind.ShareEnd:
		requests.consider(d.Share.Max, 0, reset)
	case kind.MaxTPM.Name() + kind.ShareEnd:
		tokens.consider(d.Share.Max, 0, reset)
	}
	of := func(unit string, maximum, left int64, reset time.Duration) {
		switch unit { // no provider's SDK reads limits of other units
		case project.Requests:
			requests.consider(maximum, left, reset)
		case project.Tokens:
			tokens.consider(maximum, left, reset)
		}
	}
	if s := &d.Share; s.Window != nil {
		of(s.Window.Unit, s.Max, 0, reset)
	}
	for _, s := range d.Windows() {
		if !s.Window.AtATime() {
			of(s.Window.Unit, s.Window.Count, s.Remaining, s.ResetAfter)
		}
	}
	return requests, tokens
}

// consider replaces the limit with another if less is left of that; a maximum of 0 is no
// limit.
func (t *tightest) consider(maximum, left int64, reset time.Duration) {
	if maximum > 0 && (t.max == 0 || left < t.left) {
		*t = tightest{maximum, max(left, 0), reset}
	}
}
