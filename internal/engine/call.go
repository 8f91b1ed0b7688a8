package engine

import (
	"context"
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Scopes are what a call is charged to: at most one that is shared, and any number of its
// own, the innermost first. The call's flow is that of the innermost.
//
// They are no part of [Call], so that a caller may have them on its stack.
type Scopes []*Scope

// Call is a call that asks for admission.
type Call struct {
	Part Part
	Ask  Ask

	MaxWait  time.Duration // how long the call may wait: 0 is as long as its context lets it
	Priority int           // among the calls of its flow: higher comes first

	// Invalid is why the call cannot be decided on, or nil.
	Invalid error

	// For observers: whose call it is, which model it is for, whether the model's name
	// was configured, and whether the call goes on even if it is denied.
	Project, Model  string
	Limited, Shadow bool

	Tag any // is told by [Engine.Waits]

	again bool // it waits, and has asked before
}

type tentative struct{}

// Tentatively returns a context for [Engine.Try] of a call in whose place the caller makes another
// if it is denied: observers are not told of the denial.
func Tentatively(ctx context.Context) context.Context {
	return context.WithValue(ctx, tentative{}, true)
}

// Result is what became of a call.
type Result struct {
	Reservation *Reservation // nil unless the call was admitted
	Outcome     Outcome      // what the limits said last
	Waited      time.Duration

	// Behind is set if calls that wait come first: Ahead says what for.
	Behind bool
	Ahead  line.Ahead
}

// Allowed reports whether neither a limit nor a call that waits denies the call.
func (r *Result) Allowed() bool { return !r.Behind && r.Outcome.asked && !r.Outcome.Denied }

// Limit returns the name of the limit that denies, or for which the calls wait that
// come first; empty where none does.
func (r *Result) Limit() string {
	switch {
	case r.Outcome.Denied:
		return r.Outcome.Deciding().NameOf()
	case r.Behind:
		return r.Ahead.By
	}
	return ""
}

// RetryAfter returns when to ask again: [limit.Never] where that is in vain.
func (r *Result) RetryAfter() (wait time.Duration) {
	if r.Outcome.Denied {
		wait = r.Outcome.longest(SlotGuess)
	}
	if r.Behind {
		wait = max(wait, r.again())
	}
	return wait
}

// again returns when the calls that come first ask again. For a slot it is a guess.
func (r *Result) again() time.Duration {
	if r.Ahead.Guess {
		return min(max(r.Ahead.Again, 1), SlotGuess)
	}
	return max(r.Ahead.Again, 1)
}

// Try takes what the call asks for of all its scopes, or nothing. While other calls wait
// that come first, it takes nothing, unless it delays none of them.
func (e *Engine) Try(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	err := e.try(ctx, c, scopes, r)
	if e.observer != nil && (err != nil || r.Allowed() || ctx.Value(tentative{}) == nil) {
		e.Observe(ctx, c, r, err)
	}
	return err
}

func (e *Engine) try(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	if c.Invalid != nil {
		return c.Invalid
	}
	if ahead, waiting := e.ahead(c, scopes); waiting {
		if !ahead.Own {
			if passed, err := e.overtakes(ctx, c, scopes, r); passed || err != nil {
				return err
			}
		}
		if err := e.look(ctx, c, scopes, r); err != nil || !r.Allowed() {
			return err
		}
		*r = Result{} // the calls that waited have just left
	}
	var err error
	r.Reservation, err = e.take(ctx, c, scopes, &r.Outcome)
	return err
}

// Look says what Try would, and takes nothing.
func (e *Engine) Look(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	if c.Invalid != nil {
		return c.Invalid
	}
	return e.look(ctx, c, scopes, r)
}

func (e *Engine) look(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	if err := e.peek(ctx, c, scopes, &r.Outcome); err != nil {
		return err
	}
	r.Ahead, r.Behind = e.ahead(c, scopes)
	return nil
}

// Observe tells the observer, if there is one, of a decision.
func (e *Engine) Observe(ctx context.Context, c *Call, r *Result, err error) {
	if e.observer == nil {
		return
	}
	ev := event.Event{
		Kind: event.Admitted, Project: c.Project, Model: c.Model, Limited: c.Limited, Limit: r.Limit(),
		RemainingMinute: r.Outcome.remainingMinute(), RetryAfter: r.RetryAfter(), Waited: r.Waited, Shadow: c.Shadow,
		Estimated: c.Ask.Amounts[Tokens], Err: err,
	}
	switch {
	case c.Invalid != nil && !errors.Is(err, store.ErrClosed):
		ev.Kind, ev.Limit, ev.RetryAfter, ev.Estimated = event.Refused, "", 0, 0
	case err == nil && r.Allowed():
		if over := r.Outcome.Overlooked; over != nil {
			ev.Kind, ev.Limit, ev.Shadow = event.Denied, over.Limit, true
		}
	case err == nil, errors.Is(err, limit.ErrNever), errors.Is(err, line.ErrCrowded), errors.Is(err, context.DeadlineExceeded) && ev.Limit != "":
		ev.Kind = event.Denied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		ev.Kind = event.Left
	default:
		ev.Kind = event.Lost
	}
	e.observer.Observe(ctx, ev)
}
