package project

import (
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Never is the RetryAfter of what can never pass: it is larger than its limit.
const Never = limit.Never

// Decision is the answer to one call.
type Decision struct {
	Allowed bool

	// Exceeded is the name of the limit that denies, or that denies longest of
	// several: a [Window]'s, "concurrent-project" of [Limit].MaxConcurrent, or a
	// model's, such as "rpm" or "tpm". It is empty where none does.
	Exceeded string

	// RetryAfter is when the same call passes if nothing else passes before it:
	// zero when it was allowed, [Never] when it cannot. While other calls wait, it
	// is when the first of them passes. When a call that is under way ends nobody
	// knows, so where that is what denies, it is a guess.
	RetryAfter time.Duration

	// Concurrent is how many calls of the project are under way, with this one, up
	// to [Limit].MaxConcurrent. Without that they are not counted.
	Concurrent int64

	// Model is what the quotas of the model say; nil if the call is for none.
	Model *ratelimit.Decision

	plan      *plan
	count     int
	standings [windows]Standing
}

// Standing is where a project stands in one of its windows.
type Standing struct {
	Window     *Window       // the same one, as long as the limit stays: do not change it
	Remaining  int64         // after the call
	RetryAfter time.Duration // when this window lets the call pass: zero if it does
	ResetAfter time.Duration // when the window is empty if nothing else passes
}

// Windows returns where the project stands in each of its windows that the call
// was charged to: of requests, then of tokens, the shortest first.
func (d *Decision) Windows() []Standing { return d.standings[:d.count] }

// hear enters what the limits of a plan say, or the first of them.
func (d *Decision) hear(p *plan, said []limit.Decision) {
	d.plan = p
	for i := range said {
		s := &said[i]
		if i == len(p.windows) {
			d.hearConcurrent(s)
			return
		}
		w := &p.windows[i]
		d.standings[d.count] = Standing{w, s.Remaining, s.RetryAfter, s.ResetAfter}
		d.count++
		if s.RetryAfter > d.RetryAfter {
			d.Allowed, d.RetryAfter, d.Exceeded = false, s.RetryAfter, w.Name
		}
	}
}

// hearConcurrent enters what the limit on calls at a time says.
func (d *Decision) hearConcurrent(s *limit.Decision) {
	d.Concurrent = s.Limit.Count() - s.Remaining
	if guess := (ratelimit.Projects{}).Guess(s.RetryAfter); guess > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded = false, guess, ratelimit.ConcurrentProject
	}
}

// remainingMinute returns how many requests are left of the minute, or -1.
func (d *Decision) remainingMinute() int64 {
	for i := range d.Windows() {
		if s := &d.standings[i]; s.Window.Name == "minute" {
			return s.Remaining
		}
	}
	return -1
}
