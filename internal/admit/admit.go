// Package admit is what the middlewares of servers have in common: they ask a
// limiter for a call, at once or in turn, and get one of six answers.
package admit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// Gate is how calls are admitted.
type Gate struct {
	Limiter *project.Limiter
	Wait    time.Duration // how long a call may wait in turn; zero: not at all
	Shadow  bool          // calls go on whatever the answer is, so they do not wait
}

// Answer is what becomes of a call.
type Answer int

const (
	Pass    Answer = iota // it may be made
	Later                 // a limit denies it for a while
	Never                 // it is more than a limit ever lets pass
	Invalid               // its project or its cost is none
	Lost                  // the store that counts could not be asked
	Gone                  // nobody waits for it any more
)

// Result is the answer to one call.
type Result struct {
	Answer   Answer
	Decision project.Decision // of the answers Pass, Later and Never
	plain    plainStanding    // in place of the decision's windows, where a plain limiter was asked

	// Reservation is of the call's tokens: nil where it has none, and where it
	// was not let pass.
	Reservation *project.Reservation

	// Err says what is wrong with a call that is Invalid.
	Err error
}

// Refuse makes r, which is empty, the result of a call of which it is not known
// what to ask for, or for whom, and lets the limiter's observers know.
func (g *Gate) Refuse(ctx context.Context, id string, err error, r *Result) {
	g.Limiter.Spend(ctx, project.Call{Project: id, Shadow: g.Shadow, Fault: err})
	r.Answer, r.Err = Invalid, err
}

// Ask asks for a call, and makes r, which is empty, the result. It is large, so it
// is handed on by its address.
func (g *Gate) Ask(ctx context.Context, call project.Call, r *Result) {
	call.Shadow = g.Shadow
	waits := g.Wait > 0 && !g.Shadow
	if waits {
		call.MaxWait = g.patience(ctx)
	}
	switch {
	case call.Estimated == 0:
		r.Decision, r.Err = g.Limiter.Spend(ctx, call)
	case waits:
		r.Reservation, r.Decision, r.Err = g.Limiter.Acquire(ctx, call)
	default:
		r.Reservation, r.Decision, r.Err = g.Limiter.Take(ctx, call)
	}
	r.Reservation.Keep() // whoever has asked ends it when the call has ended
	r.Answer = r.judge(ctx)
}

// patience returns for how long a call may wait: not longer than its own deadline
// lets it.
func (g *Gate) patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return g.Wait
	}
	return max(1, min(g.Wait, time.Until(deadline))) // zero would be for ever
}

// judge returns the answer. Of a wait that was too long, the decision says for what;
// if it does not, the store has not answered.
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
		return Gone
	case errors.Is(err, context.DeadlineExceeded) && r.Decision.RetryAfter > 0:
		return Later
	case ctx.Err() != nil:
		return Gone
	}
	return Lost
}

// Reason says in a few words why a call may not be made, for the caller to
// read. It tells nothing of the store.
func (r *Result) Reason() string {
	switch r.Answer {
	case Later:
		return `the limit "` + r.Decision.Exceeded + `" is reached: try again in ` + strconv.FormatInt(r.Seconds(), 10) + "s"
	case Never:
		return `it is more than the limit "` + r.Decision.Exceeded + `" ever lets pass`
	case Invalid:
		return message.Plain(r.Err)
	case Lost:
		return "the limits cannot be checked at the moment"
	}
	return ""
}

// Denial returns for how long a window denies the call. The one whose limit is
// reached by calls that wait denies it until the first of them passes.
func (r *Result) Denial(s *project.Standing) time.Duration {
	if s.RetryAfter == 0 && s.Window.Name == r.Decision.Exceeded {
		return r.Decision.RetryAfter
	}
	return s.RetryAfter
}

// Seconds is in how many whole seconds to try again, at least one.
func (r *Result) Seconds() int64 { return max(1, Ceil(r.Decision.RetryAfter)) }

// Ceil returns a duration in seconds, rounded up.
func Ceil(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
