package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// ErrNever is the error of a call that can never pass, because it is larger than a quota
// of its model or a limit of its project. Such a call does not wait.
var ErrNever = limit.ErrNever

// DeadlineError is the error of a call that cannot pass before its deadline. Such a call does
// not wait.
type DeadlineError = limit.DeadlineError

// RateLimiter keeps the calls to each model inside its quota. Any number of goroutines
// may use it. Make one with [New], [NewWithConfig], [NewWithSQLite] or [NewWithStore].
type RateLimiter struct {
	engine   *engine.Engine
	projects atomic.Pointer[project.Limiter] // nil before NewProjects
	file     string                          // the path of the YAML file; may be empty: see pathOr
	inFile   bool                            // Persist writes quotas and usage to the YAML file

	pauses   feedback.Pauses // the models whose providers take no calls for a while
	maxPause time.Duration
	keeper   keeper // where the store keeps quotas; nil if it keeps none
	unfollow func() // stops following the keeper's quotas; nil if they are not followed

	// Models with a quota. The map is replaced, never changed.
	quotas atomic.Pointer[map[string]*model]

	setting    sync.Mutex             // locked while quotas are set, here and in the keeper
	declared   map[string]state.Quota // the quotas that the program has set; setting guards it
	logged     map[string]bool        // see logStored; setting guards it
	log        *slog.Logger
	persisting sync.Mutex // locked from reading usage until it is written

	mu           sync.Mutex        // guards withoutQuota, and changes of quotas
	withoutQuota map[string]*model // the models that were used and have no quota
	unknown      unknownModels     // which of the models without a quota are counted
}

// TryAcquire reserves a call's estimated tokens, prompt and output together. If it cannot,
// res is nil, and d says why. It charges all limits of the model's quota in one step,
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
	var prepared preparedCall
	var scopes callScopes
	n := rl.prepare(c, &prepared, &scopes)
	if prepared.unlimited {
		return rl.passUnlimited(ctx, &prepared, d), nil
	}
	var r engine.Result
	err := rl.engine.Try(ctx, &prepared.Call, scopes[:n], &r)
	if err != nil && prepared.Invalid == nil {
		*d = lost(err)
		return nil, err
	}
	c.Asked.keep(&prepared, &r)
	rl.fillDecision(&prepared, &r, d)
	return rl.reservation(&prepared, &r), err
}

// Acquire reserves a call's estimated tokens as soon as it may pass. Calls that
// wait for a model are served first come, first served. It fails with [ErrNever]
// at once if the call is larger than the model's quota, with a [DeadlineError] at once if
// the quota would let it pass only after ctx's deadline, although other calls may give
// something back earlier, and with ctx's error when ctx ends; then it has taken nothing.
// A call that waits for the next day blocks the calls behind it, so give ctx a deadline.
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

// AcquireCall is Acquire for a [Call], which can name a project. Projects that want the
// same model have shares of its quota by their priorities, and by the weights of the
// projects of one priority: see [project.Limit]. Calls of one project have theirs by their own priorities,
// then first come, first served. A call that waits for a limit of its own project holds
// up no other project's. When AcquireCall fails, d is the last answer that the call got,
// or it says what the calls before it wait for; it is zero if the store could not be
// asked.
func (rl *RateLimiter) AcquireCall(ctx context.Context, c Call) (res *Reservation, d Decision, err error) {
	res, err = rl.acquire(ctx, &c, &d)
	return res, d, err
}

func (rl *RateLimiter) acquire(ctx context.Context, c *Call, d *Decision) (*Reservation, error) {
	var prepared preparedCall
	var scopes callScopes
	n := rl.prepare(c, &prepared, &scopes)
	if prepared.unlimited && ctx.Err() == nil {
		return rl.passUnlimited(ctx, &prepared, d), nil
	}
	var r engine.Result
	err := rl.engine.Acquire(ctx, &prepared.Call, scopes[:n], &r)
	c.Asked.keep(&prepared, &r)
	rl.fillDecision(&prepared, &r, d)
	return rl.reservation(&prepared, &r), explainNever(&prepared, d, err)
}

// explainNever adds to an ErrNever which limit is too small for the call. Other errors stay as
// they are.
func explainNever(prepared *preparedCall, d *Decision, err error) error {
	switch {
	case !errors.Is(err, ErrNever):
		return err
	case d.Code == DecisionProjectLimit:
		return fmt.Errorf("%w: %s", ErrNever, d.Project.Reason())
	}
	return fmt.Errorf("%w: %s: %s", ErrNever, prepared.Model, excess(factsOf(d.Limit).kind, prepared.model.quota()))
}

// WaitForCapacity waits until a call of so many tokens may be made, and takes nothing:
// other callers whose wait ends at the same time may be faster. Acquire waits, and
// reserves. It fails as Acquire does.
func (rl *RateLimiter) WaitForCapacity(ctx context.Context, model string, tokens int) error {
	var prepared preparedCall
	var scopes callScopes
	n := rl.prepare(&Call{Model: model, Estimated: tokens}, &prepared, &scopes)
	if prepared.unlimited && ctx.Err() == nil {
		return nil
	}
	var r engine.Result
	var d Decision
	err := rl.engine.AwaitCapacity(ctx, &prepared.Call, scopes[:n], &r)
	rl.fillDecision(&prepared, &r, &d)
	return explainNever(&prepared, &d, err)
}

// Decide returns the decision that TryAcquire would, and takes nothing. Other calls may
// have changed it by the time you act on it: see TryAcquire.
func (rl *RateLimiter) Decide(model string, estimatedTokens int) (d Decision) {
	var prepared preparedCall
	var scopes callScopes
	n := rl.prepare(&Call{Model: model, Estimated: estimatedTokens}, &prepared, &scopes)
	if prepared.unlimited {
		rl.fillUnlimited(&prepared, &d)
		return d
	}
	var r engine.Result
	if err := rl.engine.Look(context.Background(), &prepared.Call, scopes[:n], &r); err != nil && prepared.Invalid == nil {
		return lost(err)
	}
	rl.fillDecision(&prepared, &r, &d)
	return d
}

// CanSend reports whether a call of so many tokens may be made. It takes nothing:
// it may say yes to many parallel calls of which only one fits. See TryAcquire.
func (rl *RateLimiter) CanSend(model string, estimatedTokens int) bool {
	return rl.Decide(model, estimatedTokens).Allowed
}

// RecordUsage charges a call that was made without a reservation, whatever the
// quota says. Negative numbers count as zero. Nothing is counted for a name that no model
// can have (a name has 1 to 512 bytes of UTF-8, and no control characters), nor for
// models without a quota beyond the first thousand of a day.
func (rl *RateLimiter) RecordUsage(name string, promptTokens, outputTokens int) {
	rl.record(name, Tokens{Input: promptTokens, Output: outputTokens})
}

// record is RecordUsage of tokens, the free ones of which do not count.
func (rl *RateLimiter) record(name string, t Tokens) {
	if !rl.counts(name) {
		return
	}
	t.Input, t.Output = bounded(t.Input), bounded(t.Output)
	m := rl.findOrMake(name)
	var used engine.Ask
	used.Set(1, 0, t)
	used.Split = true // even if both are zero
	used.Weigh(m.scope.Rules().Count, t, Tokens{}, Tokens{})
	rl.engine.Miss(rl.engine.Record(context.Background(), m.scope, &used))
}

// bounded returns the number nearest to n that the engine can count.
func bounded(n int) int { return min(max(n, 0), engine.MaxTokens) }

// preparedCall is a call in the form that the engine takes.
type preparedCall struct {
	engine.Call
	model     *model // nil if the call names no model that is counted
	unlimited bool   // neither a quota nor a project's limit governs the call
	hasQuota  bool   // the model has a quota
}

// callScopes has room for the scopes that a call is charged to.
type callScopes [1 + project.MostScopes]*engine.Scope

// prepare fills in p and the scopes that the call is charged to, the model's first. It returns how
// many these are.
func (rl *RateLimiter) prepare(c *Call, p *preparedCall, scopes *callScopes) (n int) {
	p.Model, p.Project, p.MaxWait, p.Priority, p.Shadow = c.Model, c.Project, c.MaxWait, c.Priority, c.Shadow
	p.Tag = c.Tag
	p.model = (*rl.quotas.Load())[c.Model]
	p.hasQuota = p.model != nil
	p.Limited = p.hasQuota
	own, err := scopes[1:1], c.ask(&p.Ask)
	if err == nil && c.Project != "" {
		own, err = rl.appendProject(own, c)
	}
	if err == nil && p.hasQuota && !c.ShadowModel {
		err = project.CheckBounded(p.model.scope, c.Most)
	}
	if err != nil {
		p.Invalid = err
		if checkProject(c.Project) != nil {
			p.Project = ""
		}
		return 0
	}
	if p.hasQuota {
		p.Ask.Weigh(p.model.scope.Rules().Count, c.Tokens, c.Most, c.First)
	}
	limited := p.hasQuota && p.model.scope.Limited()
	projectLimited := len(own) > 0 && own[0].Rules() != nil
	switch {
	case !limited && !projectLimited && (c.Model == "" || c.ShadowModel || !rl.isPaused(c.Model)):
		p.unlimited = true
		return 0
	case c.Model != "" && !p.hasQuota:
		p.model = rl.findOrMake(c.Model)
	}
	switch {
	case p.model == nil:
		return copy(scopes[:], own)
	case c.ShadowModel:
		n = copy(scopes[:], own)
		scopes[n] = p.model.scope.Shadow()
		return n + 1
	}
	scopes[0] = p.model.scope
	return 1 + len(own)
}

// appendProject appends the scopes of a call's project, key and run. Before NewProjects the project's
// scope has no limits, but calls still have their turns by their projects.
func (rl *RateLimiter) appendProject(list []*engine.Scope, c *Call) ([]*engine.Scope, error) {
	projects := rl.projects.Load()
	if projects == nil {
		return append(list, rl.engine.NewOwn(c.Project, c.Project)), checkProject(c.Project)
	}
	list, err := projects.AppendScopes(list, project.Owners{Project: c.Project, Key: c.Key, Run: c.Run, RunProject: c.RunProject, Shadow: c.ShadowOf})
	if err == nil {
		err = project.CheckKnown(list, c.Dollars, c.Most, c.MostDollars)
	}
	return list, err
}

// NewProjects gives projects limits of their own, which are counted in the store of this
// RateLimiter. From then on each [Call] that names a project is charged to the limits of
// the project and to the quota of its model, all or nothing; and projects have shares of a
// model's quota by their priorities and weights.
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

// passUnlimited admits a call that no quota and no project's limit governs.
func (rl *RateLimiter) passUnlimited(ctx context.Context, p *preparedCall, d *Decision) *Reservation {
	rl.fillUnlimited(p, d)
	var r engine.Result
	r.Outcome.Pass()
	rl.engine.Observe(ctx, &p.Call, &r, nil)
	r.Reservation = rl.engine.Unlimited(&p.Call)
	return rl.reservation(p, &r)
}

// fillUnlimited fills in d for a call that no quota and no project's limit governs.
func (rl *RateLimiter) fillUnlimited(p *preparedCall, d *Decision) {
	d.Allowed, d.Code, d.Reason = true, DecisionUnknownModel, "the model has no quota"
	if p.hasQuota {
		d.Code, d.Reason = DecisionUnlimited, "the model's quota limits nothing"
	}
	d.Stats = rl.Stats(p.Model)
}

// reservation returns the reservation of a call that was admitted, or nil. For a model without
// limits, the reservation records the usage when it is committed.
func (rl *RateLimiter) reservation(p *preparedCall, r *engine.Result) *Reservation {
	res := r.Reservation
	if res == nil {
		return nil
	}
	if s := p.modelOutcome(r); s != nil && s.Rules() != nil {
		if !rl.engine.Private() {
			p.model.recordSnapshot(s)
		}
	} else if p.Model != "" {
		name := p.Model
		res.AfterCommit(func(t Tokens) { rl.record(name, t) })
	}
	return (*Reservation)(res)
}

// modelOutcome returns the answer of the limits of the call's model, or nil if they were not asked.
func (p *preparedCall) modelOutcome(r *engine.Result) *engine.Standing {
	if p.model == nil {
		return nil
	}
	return r.Outcome.Of(p.model.scope)
}

// lost returns the decision on a call for which the store could not be asked.
func lost(err error) Decision {
	return Decision{Code: DecisionStoreLost, Reason: err.Error(), RetryAfter: engine.SlotGuess}
}

// invalid returns the decision on a call that is not valid, or whose project limiter is closed.
func invalid(err error) Decision {
	if errors.Is(err, store.ErrClosed) {
		return lost(err)
	}
	return Decision{Code: DecisionInvalidTokens, Reason: message.Plain(err), RetryAfter: Never}
}
