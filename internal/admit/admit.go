// Package admit is what httplimit and grpclimit share: they ask a limiter about a call, which
// may wait for its turn, and get one of six answers.
package admit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Answer says whether a call may pass, or why not.
type Answer int

const (
	Pass    Answer = iota // the call may pass
	Later                 // a limit denies the call for a while
	Never                 // the call is larger than a limit
	Invalid               // the call's project or its cost is not valid
	Lost                  // the store that counts does not answer
	Left                  // the caller has left
)

// Result is the answer to one call.
type Result struct {
	Answer   Answer
	Project  string           // the call's; empty for a plain limiter
	Decision project.Decision // set for the answers Pass, Later and Never
	plain    plainWindow      // the window of a plain limiter, in place of the decision's windows

	// Reservation is the reservation of the call's tokens. It is nil for a call without tokens, and for
	// one that does not pass.
	Reservation *project.Reservation

	// Err says what is wrong with an Invalid call.
	Err error
}

// judge returns the answer to the call. After a wait that was too long, the decision has the limit
// that the call waited for; if it has none, the store has not answered.
func (r *Result) judge(ctx context.Context) Answer {
	switch err := r.Err; {
	case err == nil && r.Decision.Allowed:
		return Pass
	case errors.Is(err, project.ErrInvalid):
		return Invalid
	case r.Decision.RetryAfter == project.Never:
		return Never
	case err == nil, errors.Is(err, project.ErrCrowded):
		return Later
	case errors.Is(ctx.Err(), context.Canceled):
		return Left
	case errors.Is(err, context.DeadlineExceeded) && r.Decision.RetryAfter > 0:
		return Later
	case ctx.Err() != nil:
		return Left
	}
	return Lost
}

// Reason says why a call does not pass, for the caller. It contains nothing about the store.
func (r *Result) Reason() string {
	switch r.Answer {
	case Later:
		if late := (*limit.DeadlineError)(nil); errors.As(r.Err, &late) {
			return (&limit.DeadlineError{Limit: r.Exceeded(), Wait: late.Wait, Left: late.Left}).Reason()
		}
		return `the limit "` + r.Exceeded() + `" is reached: try again in ` + strconv.FormatInt(r.Seconds(), 10) + "s"
	case Never:
		return `it costs more than the limit "` + r.Exceeded() + `" ever lets pass`
	case Invalid:
		return message.Plain(r.Err)
	case Lost:
		return "the limits cannot be checked at the moment"
	}
	return ""
}

// Denial returns for how long a window denies the call. A window that earlier calls wait for
// denies it until the first of them passes.
func (r *Result) Denial(s *project.Standing) time.Duration {
	if s.RetryAfter == 0 && s.Window.Name == r.Decision.Limit && (s.Owner == r.Decision.Owner || r.Decision.Owner == "") {
		return r.Decision.RetryAfter
	}
	return s.RetryAfter
}

// narrow lets a window have what is left of the project's share of it, if that denies the call: what else
// is left is for other projects.
func (r *Result) narrow(s *project.Standing) {
	d := &r.Decision
	if share := &d.Share; share.Window == s.Window && s.Owner == d.Owner {
		s.Remaining, s.RetryAfter = min(s.Remaining, max(0, share.Max-share.Used)), max(s.RetryAfter, d.RetryAfter)
	}
}

// Name returns the name of a window in headers and messages. The windows of the call's own project,
// and those of a plain limiter, have their own names. Before those of others stands the owner:
// "acme:requests_per_minute".
func (r *Result) Name(s *project.Standing) string {
	if s.Owner == r.Project {
		return s.Window.Name
	}
	return s.Owner + ":" + s.Window.Name
}

// Exceeded returns the name of the limit that denies the call.
func (r *Result) Exceeded() string {
	d := &r.Decision
	if d.Owner == "" || d.Owner == r.Project {
		return d.Limit
	}
	return d.Owner + ":" + d.Limit
}

// Seconds returns after how many whole seconds to try again, at least one.
func (r *Result) Seconds() int64 { return max(1, ceilSeconds(r.Decision.RetryAfter)) }

// ceilSeconds returns a duration in seconds, rounded up.
func ceilSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
