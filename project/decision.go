package project

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Never is the RetryAfter of a call that can never pass, because it is larger than a limit.
const Never = limit.Never

// Decision is the answer to one call.
type Decision struct {
	Allowed bool

	// Exceeded is the name of the limit that denies, or of the one that denies longest:
	// that of a [Window], or [Concurrent]. It is empty if none does.
	Exceeded string

	// RetryAfter is how long it takes until the same call passes, if nothing else passes
	// before it: zero when it was allowed, [Never] when it cannot pass. While other calls
	// wait, it is the time until the first of them passes. Nobody knows when a call under
	// way ends, so for [Concurrent] it is a guess.
	RetryAfter time.Duration

	// Concurrent is how many calls of the project are under way, including this one, up
	// to [Limit].MaxConcurrent. If that is 0, they are not counted.
	Concurrent int64

	plan      *plan
	count     int
	standings [windows]Standing
}

// Standing is where a project stands in one of its windows.
type Standing struct {
	Window     *Window       // the same one, as long as the limit stays: do not change it
	Remaining  int64         // after the call
	RetryAfter time.Duration // until this window lets the call pass: zero if it does now
	ResetAfter time.Duration // until nothing is used in the window, if nothing else passes
}

// Windows returns where the project stands in each of its windows that the call
// was charged to: of requests, then of tokens, the shortest first.
func (d *Decision) Windows() []Standing { return d.standings[:d.count] }

// IsZero reports whether the decision is empty: no limit of a project was asked.
func (d *Decision) IsZero() bool { return d.plan == nil }

// Hear fills in d, which is zero, with what a project's limits have answered to a call that
// is charged to a model as well. It is for package ratelimit alone.
func Hear(d *Decision, o *admission.Outcome, s *admission.Standing) {
	d.Allowed = true
	d.hear(o, s)
}

// hear enters what the limits of a project's scope say.
func (d *Decision) hear(o *admission.Outcome, s *admission.Standing) {
	d.plan = s.Rules().Setup.(*plan)
	for i := range s.Len() {
		if l, said := o.At(s, i); l.Unit != admission.Slots {
			d.enter(&d.plan.windows[l.ID], said)
		}
	}
	for i := range s.Len() { // which come last, whatever their place
		if l, said := o.At(s, i); l.Unit == admission.Slots {
			d.enterSlots(said)
		}
	}
}

// enter enters what a window says.
func (d *Decision) enter(w *Window, said *limit.Verdict) {
	d.standings[d.count] = Standing{w, said.Remaining, said.RetryAfter, said.ResetAfter}
	d.count++
	if said.RetryAfter > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded = false, said.RetryAfter, w.Name
	}
}

// enterSlots enters what the limit on calls at a time says.
func (d *Decision) enterSlots(said *limit.Verdict) {
	d.Concurrent = min(said.Used, int64(d.plan.limit.MaxConcurrent))
	if guess := min(said.RetryAfter, admission.SlotGuess); guess > d.RetryAfter {
		d.Allowed, d.RetryAfter, d.Exceeded = false, guess, Concurrent
	}
}

// Reason says for people what denies the call: empty where nothing does.
func (d *Decision) Reason() string {
	if d.Exceeded == Concurrent {
		return fmt.Sprintf("all of the project's %d calls at a time are under way: try again in %v", d.plan.limit.MaxConcurrent, message.Wait(d.RetryAfter))
	}
	for i := range d.Windows() {
		if s := &d.standings[i]; s.Window.Name == d.Exceeded {
			return s.reason(d.RetryAfter)
		}
	}
	return ""
}

func (s *Standing) reason(retry time.Duration) string {
	what := "requests"
	if s.Window.Tokens {
		what = "tokens"
	}
	if retry == Never {
		return fmt.Sprintf("more than the project's limit of %d %s per %v", s.Window.Count, what, s.Window.Period)
	}
	return fmt.Sprintf("the project has %d of its %d %s per %v left, which is too little: try again in %v",
		s.Remaining, s.Window.Count, what, s.Window.Period, message.Wait(retry))
}
