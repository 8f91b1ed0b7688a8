package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// Scopes are what a call is charged to: at most one that is shared, and any number of its
// own, the innermost first. The call's flow is that of the innermost.
//
// They are no part of [Call], so that a caller may have them on its stack.
type Scopes []*Scope

// Call says everything about a call: what it asks for, which model it is for, and which project makes it. It is charged
// to the quota of its model, and to the limits of its project, its key and its run: to all of them or to none.
type Call struct {
	// Model is the name of the model. It is for package ratelimit: package project knows no models.
	Model string

	// Project names the project that makes the call. In package project, and after NewProjects of a
	// ratelimit.RateLimiter, it is an id that project.CheckID accepts, such as "acme/search": the call is charged to acme
	// as well. Before NewProjects it may be empty, or any name that has up to 512 bytes of UTF-8 and no control
	// characters. Projects have shares of a model's quota by their priorities and weights.
	Project string

	Requests int // how many requests the call counts as: 0 is one

	// Estimated is how many tokens the call is expected to use, prompt and output
	// together. If you know the two apart, set Tokens and leave Estimated 0. A call that is reserved
	// takes at least one token of a project whose tokens are limited, until it ends, so that a project in debt
	// waits; Spend of package project asks for no tokens if both are 0.
	Estimated int
	Tokens    llm.Tokens

	// Dollars is the price that the call is expected to have, for limits of projects, keys and runs. [price.Unknown] is
	// one that is not known: the call fails with project.ErrUnpriced if a limit in dollars governs it.
	Dollars price.Amount

	// Most and MostDollars are the most tokens that the call can use and the most that it can cost, for limits that
	// reserve these: see project.Reserve. What is less than Tokens and Dollars, such as 0, stands for those. A negative
	// number of tokens and [price.Unknown] say that nobody knows: then the call fails with project.ErrUnbounded if a
	// limit that reserves the most governs it.
	Most        llm.Tokens
	MostDollars price.Amount

	// First and FirstDollars are what a call that extends its reservation as its answer comes reserves at first, of
	// limits whose OnOverrun is project.OverrunCut: the most of its prompt, and what is expected of its output. They are
	// zero for any other call: of those limits, it reserves the most. See project.Reservation.Extend.
	First        llm.Tokens
	FirstDollars price.Amount

	// Units is the most that the call can use beside tokens, such as images: all of it is reserved, and
	// Reservation.Count corrects it. A negative number is one that nobody knows: the call fails with
	// project.ErrUnbounded if a limit in this unit governs it.
	Units llm.Units

	// Key is the id of the key with which the call was made, and Run that of the agent's run
	// that the call is a part of. Either may be empty. The call is charged to their limits as
	// well: see project.Limiter.SetKeyLimits and project.Config.Runs. Without limits of projects they have no effect.
	Key, Run string

	// RunProject is the project whose run it is, if that is one above Project: users of one
	// project may hand on a run to each other. The call is charged to its limits in any case,
	// even if it has only the default one. Empty is Project itself.
	RunProject string

	// MaxWait is how long the call may wait. Without it, Acquire and AcquireCall wait until their context ends, and
	// Spend not at all. A call that would have to wait for longer, or for longer than until the deadline of its
	// context, fails at once with a [limit.DeadlineError], although other calls may give something back earlier.
	MaxWait time.Duration

	// Batch says that the call stands for many calls that the provider makes when it likes, so
	// that it is no matter of rates: tokens of a minute count, but do not deny the call, and MaxConcurrent of a
	// project does not count it. It is for Take and Acquire of package project. If Model names a model with
	// MaxEnqueuedTokens, the batch counts there from when it is admitted until it is settled.
	Batch bool

	Priority int // among the waiting calls of the project: higher comes first

	// ShadowModel says that the quota of the model counts the call, and does not deny it: neither by its limits nor by the
	// shares of projects, nor because the provider takes no calls for a while.
	ShadowModel bool

	// ShadowOf is Project or one above it, or empty. The limits of that project, of all below it, of
	// the key and of the run count the call, and do not deny it. Those above it hold. Shadow of the decision says which
	// limit would have denied the call.
	ShadowOf string

	// Shadow marks events of the call: it goes on even if it is denied. Such a call need not wait.
	Shadow bool

	// Asked, if it is not nil, is filled in with what each limit has answered.
	Asked *Asked

	// Tag is what WaitingCalls of a ratelimit.RateLimiter reports while the call waits.
	Tag any

	// Fault makes a call of package project fail with project.ErrInvalid and this error, and observers see it
	// as refused. Middleware sets it if a request does not say what it asks for, or
	// which project it is of.
	Fault error

	ready   bool  // what follows is set: see Ready
	part    Part  // of the limits of its scopes
	ask     Ask   // what the call asks for
	invalid error // why the call cannot be decided on, or nil
	limited bool  // for observers: its model was configured
	again   bool  // it has asked before
}

// Errors of calls of which a limit must know more.
var (
	ErrUnbounded = errors.New("ratelimit: the most that the call can use is unknown")
	ErrUnpriced  = errors.New("ratelimit: the price is unknown")
)

// Ready makes a call ready for a part of the limits of its scopes. It returns what is wrong with the call, or nil. A call
// that is not ready is made so, for all limits, when the engine is asked.
func Ready(c *Call, part Part, scopes Scopes) error {
	c.ready, c.part, c.ask, c.invalid = true, part, Ask{}, nil
	err := c.ask.set(c)
	if err == nil && c.MaxWait < 0 {
		err = fmt.Errorf("ratelimit: a call that may wait for %v: it must not be negative", c.MaxWait)
	}
	if err == nil {
		err = c.checkKnown(scopes)
	}
	if err != nil {
		return Refuse(c, err)
	}
	for _, s := range scopes {
		if r := s.rules.Load(); r != nil && s.OfModel() {
			c.ask.weigh(r.Count, c)
		}
	}
	return nil
}

// Refuse marks a call that cannot be decided on as failed with an error, which it returns.
func Refuse(c *Call, err error) error {
	c.ready, c.invalid = true, err
	return err
}

// check returns why the call cannot be decided on, or nil.
func (c *Call) check(scopes Scopes) error {
	if !c.ready {
		return Ready(c, c.part, scopes)
	}
	return c.invalid
}

// SetLimited notes for observers that the model of a call was configured.
func SetLimited(c *Call) { c.limited = true }

// checkKnown returns [ErrUnpriced] if the price of the call is not known and one of its scopes limits dollars, and
// [ErrUnbounded] if the most that the call can use is not known and one of them reserves that.
func (c *Call) checkKnown(scopes Scopes) error {
	unit, unknown := c.unknownUnit()
	if c.Dollars != price.Unknown && c.MostDollars != price.Unknown && !unbounded(c.Most) && !unknown {
		return nil
	}
	for _, s := range scopes {
		switch {
		case s.Kind == Shadow:
		case c.Dollars == price.Unknown && s.Limits(Dollars):
			return fmt.Errorf("%w, and %s has a limit in dollars", ErrUnpriced, decision.OwnerText(s.Name))
		case c.MostDollars == price.Unknown && s.Reserves(Dollars):
			return fmt.Errorf("%w, and the limits of %s in dollars reserve that", ErrUnbounded, decision.OwnerText(s.Name))
		case unknown && s.Limits(unit):
			return fmt.Errorf("%w, and %s has a limit in %s", ErrUnbounded, decision.OwnerText(s.Name), unit.Words())
		case !unbounded(c.Most):
		case s.Kind == Shared && (s.Reserves(Tokens) || s.Reserves(Input) || s.Reserves(Output) || s.Reserves(TokensInFlight)):
			return fmt.Errorf("%w, and the quota of model %q reserves that", ErrUnbounded, s.Name)
		case s.Reserves(AllTokens) || s.Reserves(TokensInFlight):
			return fmt.Errorf("%w, and the limits of %s in tokens reserve that", ErrUnbounded, decision.OwnerText(s.Name))
		}
	}
	return nil
}

// unknownUnit returns a unit of which nobody knows how much the call can use, if there is one.
func (c *Call) unknownUnit() (u Unit, ok bool) {
	for i, n := range c.Units {
		if n < 0 {
			return beside[i], true
		}
	}
	return 0, false
}

type tentative struct{}

// Tentatively returns a context for [Engine.Try] of a call in whose place the caller makes another
// if it is denied: observers get no event of the denial.
func Tentatively(ctx context.Context) context.Context {
	return context.WithValue(ctx, tentative{}, true)
}

// Result is what became of a call.
type Result struct {
	Reservation *Reservation // nil unless the call was admitted
	Outcome     Outcome      // the last answer of the limits
	Waited      time.Duration

	// Behind is set if calls that wait come first: Ahead says what for.
	Behind bool
	Ahead  fair.Ahead
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

// again returns after how long the limit admits the first of the waiting calls. If nobody knows, it is a guess: the time
// at which that call asks again says nothing.
func (r *Result) again() time.Duration {
	if r.Ahead.Guess {
		return SlotGuess
	}
	return max(r.Ahead.Again, 1)
}

// Try takes what the call asks for of all its scopes, or nothing. While other calls wait
// that come first, it takes nothing, unless it delays none of them.
func (e *Engine) Try(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	err := e.try(ctx, c, scopes, r)
	c.Asked.keep(c, r)
	if e.observer != nil && (err != nil || r.Allowed() || ctx.Value(tentative{}) == nil) {
		e.Observe(ctx, c, r, err)
	}
	return err
}

func (e *Engine) try(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	if err := c.check(scopes); err != nil {
		return err
	}
	if ahead, waiting := e.ahead(c, scopes); waiting {
		if !ahead.Own {
			if passed, err := e.overtakes(ctx, c, scopes, r); passed || err != nil {
				return err
			}
		}
		if err := e.look(ctx, c, scopes, r); err != nil || !r.Allowed() {
			if r.Behind && err == nil {
				scopes.wantInPools(e, c, &r.Outcome, false)
			}
			return err
		}
		*r = Result{} // the calls that waited have just left
	}
	var err error
	r.Reservation, err = e.take(ctx, c, scopes, &r.Outcome)
	if r.Outcome.Denied && err == nil {
		scopes.wantInPools(e, c, &r.Outcome, true)
	}
	return err
}

// Look answers as Try would, and takes nothing.
func (e *Engine) Look(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	err := c.check(scopes)
	if err == nil {
		err = e.look(ctx, c, scopes, r)
	}
	c.Asked.keep(c, r)
	return err
}

func (e *Engine) look(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	if err := e.peek(ctx, c, scopes, &r.Outcome); err != nil {
		return err
	}
	r.Ahead, r.Behind = e.ahead(c, scopes)
	return nil
}

// Observe sends the event of a decision to the observer, if there is one.
func (e *Engine) Observe(ctx context.Context, c *Call, r *Result, err error) {
	if e.observer == nil {
		return
	}
	ev := event.Event{
		Kind: event.Admitted, Project: c.Project, Model: c.Model, Limited: c.limited, Limit: r.Limit(),
		RemainingMinute: r.Outcome.remainingMinute(), RetryAfter: r.RetryAfter(), Waited: r.Waited, Shadow: c.Shadow,
		Estimated: c.ask.Amounts[Tokens], Dollars: max(c.Dollars, 0), Err: err,
	}
	switch {
	case c.invalid != nil && !errors.Is(err, store.ErrClosed):
		ev.Kind, ev.Limit, ev.RetryAfter, ev.Estimated, ev.Dollars = event.Refused, "", 0, 0, 0
	case err == nil && r.Allowed():
		if over := r.Outcome.Shadow.Limit; over != "" {
			ev.Kind, ev.Limit, ev.Shadow = event.Denied, over, true
		}
	case err == nil, errors.Is(err, limit.ErrNever), errors.Is(err, fair.ErrCrowded), errors.Is(err, context.DeadlineExceeded) && ev.Limit != "":
		ev.Kind = event.Denied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		ev.Kind = event.Left
	default:
		ev.Kind = event.Lost
	}
	e.observer.Observe(ctx, ev)
}
