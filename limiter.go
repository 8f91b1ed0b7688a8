package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// ErrNever is the error of a call that can never pass, because it is larger than a quota
// of its model or a limit of its project. Such a call does not wait.
var ErrNever = limit.ErrNever

// RateLimiter keeps the calls to each model inside its quota. Any number of goroutines
// may use it. Make one with [New], [NewWithConfig], [NewWithSQLite] or [NewWithStore].
type RateLimiter struct {
	engine   *admission.Engine
	projects atomic.Pointer[project.Limiter] // nil: calls have no projects with limits
	file     string                          // the YAML file; may be empty: see pathOr
	inFile   bool                            // quotas and usage are kept in the YAML file, when Persist is called

	pauses   feedback.Pauses // of models whose providers take no calls for a while
	maxPause time.Duration
	keeper   keeper // of quotas, where the store keeps them; nil: nothing does
	unfollow func() // stops following the keeper's quotas; nil: it does not

	// Models with a quota. The map is replaced, never changed.
	quotas atomic.Pointer[map[string]*model]

	setting    sync.Mutex // held while quotas are set, here and where they are kept
	persisting sync.Mutex // held from looking at usage to having written it

	mu      sync.Mutex        // guards others, and changes of quotas
	others  map[string]*model // the models that were used and have no quota
	unknown unknownModels     // the names without a quota that are counted
}

// TryAcquire reserves a call's estimated tokens, prompt and output together, or
// says why not; then res is nil. It charges all limits of the model's quota in one step,
// or none. While other calls wait for the model, it denies.
func (rl *RateLimiter) TryAcquire(model string, estimatedTokens int) (res *Reservation, d Decision) {
	res, _ = rl.try(context.Background(), &Call{Model: model, Estimated: estimatedTokens}, &d)
	return res, d
}

// TryAcquireTokens is TryAcquire with separate estimates of prompt and output. Use it
// for models that limit the two apart (MaxInputTPM, MaxOutputTPM): if only the sum is
// known, all of it is reserved as prompt, and all of it as output.
func (rl *RateLimiter) TryAcquireTokens(model string, estimated Tokens) (res *Reservation, d Decision) {
	res, _ = rl.try(context.Background(), &Call{Model: model, Tokens: estimated}, &d)
	return res, d
}

// TryAcquireCall is TryAcquire for a [Call], which can name a project. A denial is no
// error: res and err are both nil then, and d says why. An error says that the call is
// not valid, or that the store could not be asked.
func (rl *RateLimiter) TryAcquireCall(ctx context.Context, c Call) (res *Reservation, d Decision, err error) {
	res, err = rl.try(ctx, &c, &d)
	return res, d, err
}

func (rl *RateLimiter) try(ctx context.Context, c *Call, d *Decision) (*Reservation, error) {
	var asks asking
	var scopes [2]*admission.Scope
	n := rl.ready(c, &asks, &scopes)
	if asks.free {
		return rl.pass(ctx, &asks, d), nil
	}
	var r admission.Result
	err := rl.engine.Try(ctx, &asks.Call, scopes[:n], &r)
	if err != nil && asks.Invalid == nil {
		*d = lost(err)
		return nil, err
	}
	rl.say(&asks, &r, d)
	return rl.reservation(&asks, &r), err
}

// Acquire reserves a call's estimated tokens as soon as it may pass. Calls that
// wait for a model are served first come, first served. It fails with [ErrNever]
// at once if the call is larger than the model's quota, and with ctx's error when
// ctx ends; then it has taken nothing. A call that waits for the next day blocks the
// calls behind it, so give ctx a deadline.
func (rl *RateLimiter) Acquire(ctx context.Context, model string, estimatedTokens int) (*Reservation, error) {
	var d Decision
	return rl.acquire(ctx, &Call{Model: model, Estimated: estimatedTokens}, &d)
}

// AcquireTokens is Acquire with separate estimates of prompt and output: see
// TryAcquireTokens.
func (rl *RateLimiter) AcquireTokens(ctx context.Context, model string, estimated Tokens) (*Reservation, error) {
	var d Decision
	return rl.acquire(ctx, &Call{Model: model, Tokens: estimated}, &d)
}

// AcquireCall is Acquire for a [Call], which can name a project. Calls that wait for a
// model have their turns by the priorities of their projects, and by the weights of the
// projects of one priority. Calls of one project have theirs by their own priorities,
// then first come, first served. A call that waits for a limit of its own project holds
// up no other project's. When AcquireCall fails, d is the last answer that the call got,
// or it says what the calls before it wait for; it is zero if the store could not be
// asked.
func (rl *RateLimiter) AcquireCall(ctx context.Context, c Call) (res *Reservation, d Decision, err error) {
	res, err = rl.acquire(ctx, &c, &d)
	return res, d, err
}

func (rl *RateLimiter) acquire(ctx context.Context, c *Call, d *Decision) (*Reservation, error) {
	var asks asking
	var scopes [2]*admission.Scope
	n := rl.ready(c, &asks, &scopes)
	if asks.free && ctx.Err() == nil {
		return rl.pass(ctx, &asks, d), nil
	}
	var r admission.Result
	err := rl.engine.Acquire(ctx, &asks.Call, scopes[:n], &r)
	rl.say(&asks, &r, d)
	return rl.reservation(&asks, &r), inWords(&asks, d, err)
}

// inWords lets the error of a call that could never pass say which limit is too small.
func inWords(asks *asking, d *Decision, err error) error {
	switch {
	case !errors.Is(err, ErrNever):
		return err
	case d.Code == DecisionProjectLimit:
		return fmt.Errorf("%w: %s", ErrNever, d.Project.Reason())
	}
	return fmt.Errorf("%w: %s: %s", ErrNever, asks.Model, excess(factsOf(d.Limit).dimension, asks.model.quota()))
}

// WaitForCapacity waits until a call of so many tokens may be made, and takes nothing:
// other callers whose wait ends at the same time may be faster. Acquire waits, and
// reserves.
func (rl *RateLimiter) WaitForCapacity(ctx context.Context, model string, tokens int) error {
	var asks asking
	var scopes [2]*admission.Scope
	n := rl.ready(&Call{Model: model, Estimated: tokens}, &asks, &scopes)
	if asks.free && ctx.Err() == nil {
		return nil
	}
	var r admission.Result
	var d Decision
	err := rl.engine.AwaitCapacity(ctx, &asks.Call, scopes[:n], &r)
	rl.say(&asks, &r, &d)
	return inWords(&asks, &d, err)
}

// Decide says what TryAcquire would, and takes nothing. What it says may not be
// true any more when you act on it: see TryAcquire.
func (rl *RateLimiter) Decide(model string, estimatedTokens int) (d Decision) {
	var asks asking
	var scopes [2]*admission.Scope
	n := rl.ready(&Call{Model: model, Estimated: estimatedTokens}, &asks, &scopes)
	if asks.free {
		rl.allow(&asks, &d)
		return d
	}
	var r admission.Result
	if err := rl.engine.Look(context.Background(), &asks.Call, scopes[:n], &r); err != nil && asks.Invalid == nil {
		return lost(err)
	}
	rl.say(&asks, &r, &d)
	return d
}

// CanSend reports whether a call of so many tokens may be made. It takes nothing:
// calls that are made in parallel can all be told yes. See TryAcquire.
func (rl *RateLimiter) CanSend(model string, estimatedTokens int) bool {
	return rl.Decide(model, estimatedTokens).Allowed
}

// RecordUsage charges a call that was made without a reservation, whatever the
// quota says. Negative numbers count as zero. Nothing is counted for a name that no model
// can have (a name has 1 to 512 bytes of UTF-8, and no control characters), nor for
// models without a quota beyond the first thousand of a day.
func (rl *RateLimiter) RecordUsage(name string, promptTokens, outputTokens int) {
	if !rl.counts(name) {
		return
	}
	var used admission.Ask
	used.Set(1, 0, Tokens{Input: bounded(promptTokens), Output: bounded(outputTokens)}) // which is valid
	used.Split = true                                                                   // also of nothing
	rl.with(name, func(m *model) { rl.engine.Miss(rl.engine.Record(context.Background(), m.scope, used)) })
}

// bounded returns a number of tokens as one that can be counted.
func bounded(n int) int { return min(max(n, 0), admission.MaxTokens) }

// asking is a call made ready for the engine.
type asking struct {
	admission.Call
	model   *model           // nil: the call names no model that is counted
	own     *admission.Scope // the scope of the call's project; nil: the call names none
	free    bool             // neither a quota nor a project's limit governs the call
	isKnown bool             // the model has a quota
}

// ready makes a call ready, and enters the scopes that it names. It returns how many.
func (rl *RateLimiter) ready(c *Call, a *asking, scopes *[2]*admission.Scope) (n int) {
	a.Model, a.Project, a.MaxWait, a.Priority, a.Shadow = c.Model, c.Project, c.MaxWait, c.Priority, c.Shadow
	a.model = (*rl.quotas.Load())[c.Model]
	a.isKnown = a.model != nil
	a.Limited = a.isKnown
	if a.Invalid = c.ask(&a.Ask); a.Invalid == nil {
		a.own, a.Invalid = rl.projectScope(c.Project)
	}
	if a.Invalid != nil {
		if checkProject(c.Project) != nil {
			a.Project = ""
		}
		return 0
	}
	limited := a.isKnown && a.model.scope.Limited()
	switch {
	case !limited && !rl.limitsProjects(a.own) && (c.Model == "" || !rl.isPaused(c.Model)):
		a.free = true
		return 0
	case c.Model != "" && !a.isKnown:
		a.model = rl.findOrMake(c.Model)
	}
	if a.model != nil {
		scopes[n] = a.model.scope
		n++
	}
	if a.own != nil {
		scopes[n] = a.own
		n++
	}
	return n
}

// limitsProjects reports whether a call with such a scope is charged to its project.
func (rl *RateLimiter) limitsProjects(own *admission.Scope) bool {
	return own != nil && own.Rules() != nil
}

// projectScope returns the scope of a call's project, or nil where it has none. Where
// projects have no limits, calls still have their turns by their projects.
func (rl *RateLimiter) projectScope(id string) (*admission.Scope, error) {
	if id == "" {
		return nil, nil
	}
	if projects := rl.projects.Load(); projects != nil {
		return projects.Scope(id)
	}
	if err := checkProject(id); err != nil {
		return nil, err
	}
	return rl.engine.NewOwn(id, id), nil
}

// NewProjects gives projects limits of their own, which are counted in the store of this
// RateLimiter. From then on each [Call] that names a project is charged to the limits of
// the project and to the quota of its model, all or nothing; and calls that wait for a
// model have their turns by the priorities and weights of their projects.
//
// Use the returned limiter to set limits at run time, to look at a project, in package
// httplimit, and for calls without a model. Do not set Store, Observer and OnError of
// cfg: those of this RateLimiter are used.
//
// NewProjects can be called once: a second call fails. Close closes both limiters.
func (rl *RateLimiter) NewProjects(cfg project.Config) (*project.Limiter, error) {
	rl.setting.Lock()
	defer rl.setting.Unlock()
	if rl.projects.Load() != nil {
		return nil, errors.New("ratelimit: the limiter has limits of projects already: NewProjects may be called once, and Projects returns them")
	}
	projects, err := project.NewOn(rl.engine, cfg)
	if err == nil {
		rl.projects.Store(projects)
	}
	return projects, err
}

// Projects returns the limiter that NewProjects has returned, or nil before that.
func (rl *RateLimiter) Projects() *project.Limiter { return rl.projects.Load() }

// pass admits a call that no quota and no project's limit governs.
func (rl *RateLimiter) pass(ctx context.Context, a *asking, d *Decision) *Reservation {
	rl.allow(a, d)
	var r admission.Result
	r.Outcome.Pass()
	rl.engine.Observe(ctx, &a.Call, &r, nil)
	r.Reservation = rl.engine.Unlimited(&a.Call)
	return rl.reservation(a, &r)
}

// allow makes d the decision on a call that no quota and no project's limit governs.
func (rl *RateLimiter) allow(a *asking, d *Decision) {
	d.Allowed, d.Code, d.Reason = true, DecisionUnknownModel, "the model has no quota"
	if a.isKnown {
		d.Code, d.Reason = DecisionUnlimited, "the model's quota limits nothing"
	}
	d.Stats = rl.Stats(a.Model)
}

// reservation returns the reservation of a call that was admitted, or nil. A model without
// limits is told of what was used when that is known.
func (rl *RateLimiter) reservation(a *asking, r *admission.Result) *Reservation {
	res := r.Reservation
	if res == nil {
		return nil
	}
	if s := a.standing(r); s != nil && s.Rules() != nil {
		if !rl.engine.InMemory() {
			a.model.glanceAt(&r.Outcome, s)
		}
	} else if a.Model != "" {
		name := a.Model
		res.AfterCommit(func(t Tokens) { rl.RecordUsage(name, t.Input-t.FreeInput, t.Output-t.FreeOutput) })
	}
	return (*Reservation)(res)
}

// standing returns what the scope of the call's model has said, or nil if it was not asked.
func (a *asking) standing(r *admission.Result) *admission.Standing {
	if a.model == nil {
		return nil
	}
	return r.Outcome.Of(a.model.scope)
}

// lost is the answer where the store could not be asked.
func lost(err error) Decision {
	return Decision{Code: DecisionStoreLost, Reason: err.Error(), RetryAfter: admission.SlotGuess}
}

// invalid is the answer to a call that is not valid, or whose project's limits were closed.
func invalid(err error) Decision {
	if errors.Is(err, store.ErrClosed) {
		return lost(err)
	}
	return Decision{Code: DecisionInvalidTokens, Reason: message.Plain(err), RetryAfter: Never}
}
