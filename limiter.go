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
	"dappco.re/go/core/go-ratelimit/internal/hidden"
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
	projects atomic.Pointer[projects] // nil before NewProjects
	file     string                   // the path of the YAML file; may be empty: see pathOr
	inFile   bool                     // Persist writes quotas and usage to the YAML file

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
	var room [1 + engine.MostOwn]*engine.Scope
	scopes, invalid := rl.prepare(c, room[:0])
	if len(scopes) == 0 && invalid == nil {
		return rl.passUnlimited(ctx, c, d), nil
	}
	var r engine.Result
	err := rl.engine.Try(ctx, c, scopes, &r)
	if err != nil && invalid == nil {
		*d = lost(err)
		return nil, err
	}
	rl.fillDecision(c, invalid, &r, d)
	return rl.reservation(c, &r), err
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
	var room [1 + engine.MostOwn]*engine.Scope
	scopes, invalid := rl.prepare(c, room[:0])
	if len(scopes) == 0 && invalid == nil && ctx.Err() == nil {
		return rl.passUnlimited(ctx, c, d), nil
	}
	var r engine.Result
	err := rl.engine.Acquire(ctx, c, scopes, &r)
	rl.fillDecision(c, invalid, &r, d)
	return rl.reservation(c, &r), rl.explainNever(c, d, err)
}

// explainNever adds to an ErrNever which limit is too small for the call. Other errors stay as
// they are.
func (rl *RateLimiter) explainNever(c *Call, d *Decision, err error) error {
	switch {
	case !errors.Is(err, ErrNever):
		return err
	case d.Code == DecisionProjectLimit:
		return fmt.Errorf("%w: %s", ErrNever, d.Decision.Reason())
	}
	return fmt.Errorf("%w: %s: %s", ErrNever, c.Model, excess(factsOf(d.Limit).kind, rl.find(c.Model).quota()))
}

// WaitForCapacity waits until a call of so many tokens may be made, and takes nothing:
// other callers whose wait ends at the same time may be faster. Acquire waits, and
// reserves. It fails as Acquire does.
func (rl *RateLimiter) WaitForCapacity(ctx context.Context, model string, tokens int) error {
	c := Call{Model: model, Estimated: tokens}
	var room [1 + engine.MostOwn]*engine.Scope
	scopes, invalid := rl.prepare(&c, room[:0])
	if len(scopes) == 0 && invalid == nil && ctx.Err() == nil {
		return nil
	}
	var r engine.Result
	var d Decision
	err := rl.engine.AwaitCapacity(ctx, &c, scopes, &r)
	rl.fillDecision(&c, invalid, &r, &d)
	return rl.explainNever(&c, &d, err)
}

// Decide returns the decision that TryAcquire would, and takes nothing. Other calls may
// have changed it by the time you act on it: see TryAcquire.
func (rl *RateLimiter) Decide(model string, estimatedTokens int) (d Decision) {
	_ = rl.decide(context.Background(), &Call{Model: model, Estimated: estimatedTokens}, &d)
	return d
}

// decide fills in d, which is empty, with the decision on a call, and takes nothing.
func (rl *RateLimiter) decide(ctx context.Context, c *Call, d *Decision) error {
	var room [1 + engine.MostOwn]*engine.Scope
	scopes, invalid := rl.prepare(c, room[:0])
	if len(scopes) == 0 && invalid == nil {
		rl.fillUnlimited(c, d)
		return nil
	}
	var r engine.Result
	err := rl.engine.Look(ctx, c, scopes, &r)
	if err != nil && invalid == nil {
		*d = lost(err)
		return err
	}
	rl.fillDecision(c, invalid, &r, d)
	return err
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
	rl.engine.Miss(rl.engine.Record(context.Background(), m.scope, &Call{Tokens: t}))
}

// bounded returns the number nearest to n that the engine can count.
func bounded(n int) int { return min(max(n, 0), engine.MaxTokens) }

// prepare makes a call ready, and appends to scopes, which is empty, what it is charged to. That is nothing if neither a
// quota nor a project's limit governs the call, and if it cannot be decided on: then the error says why.
func (rl *RateLimiter) prepare(c *Call, scopes engine.Scopes) (_ engine.Scopes, invalid error) {
	m := (*rl.quotas.Load())[c.Model]
	if m != nil {
		engine.SetLimited(c)
	}
	scopes, err := rl.appendProject(scopes, c)
	projectLimited := len(scopes) > 0 && scopes[0].Rules() != nil
	if err == nil {
		scopes = m.charge(c, scopes)
		err = engine.Ready(c, engine.Whole, scopes)
	}
	if err != nil {
		engine.Refuse(c, err)
		if checkProject(c.Project) != nil {
			c.Project = ""
		}
		return nil, err
	}
	limited := m != nil && m.scope.Limited()
	switch {
	case !limited && !projectLimited && (c.Model == "" || c.ShadowModel || !rl.isPaused(c.Model)):
		return nil, nil
	case c.Model != "" && m == nil:
		return rl.findOrMake(c.Model).charge(c, scopes), nil
	}
	return scopes, nil
}

// appendProject appends the scopes of a call's project, key and run, if it has a project. Before NewProjects the
// project's scope has no limits, but calls still have their turns by their projects.
func (rl *RateLimiter) appendProject(list engine.Scopes, c *Call) (engine.Scopes, error) {
	projects := rl.projects.Load()
	switch {
	case c.Project == "":
		return list, nil
	case projects == nil:
		return append(list, rl.engine.NewOwn(c.Project, c.Project)), checkProject(c.Project)
	}
	own, n, err := projects.owners.Scopes(engine.OwnersOf(c))
	return append(list, own[:n]...), err
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
	if cfg.Store != nil || cfg.Observer != nil || cfg.OnError != nil {
		return nil, errors.New("ratelimit: Store, Observer and OnError of a project.Config must not be set here: those of the RateLimiter are used")
	}
	cfg.Store = engine.Joined{Store: rl.Store(), Engine: rl.engine}
	limiter, err := project.NewWithConfig(cfg)
	if err == nil {
		rl.projects.Store(&projects{limiter, hidden.Of[engine.Projects](limiter)})
	}
	return limiter, err
}

// Projects returns the limiter that NewProjects has returned, or nil before that.
func (rl *RateLimiter) Projects() *project.Limiter {
	if p := rl.projects.Load(); p != nil {
		return p.limiter
	}
	return nil
}

// projects are the limits of projects: their limiter, and what it has for this package.
type projects struct {
	limiter *project.Limiter
	owners  engine.Projects
}

// passUnlimited admits a call that no quota and no project's limit governs.
func (rl *RateLimiter) passUnlimited(ctx context.Context, c *Call, d *Decision) *Reservation {
	rl.fillUnlimited(c, d)
	var r engine.Result
	r.Outcome.Pass()
	rl.engine.Observe(ctx, c, &r, nil)
	r.Reservation = rl.engine.Unlimited(c)
	return rl.reservation(c, &r)
}

// fillUnlimited fills in d for a call that no quota and no project's limit governs.
func (rl *RateLimiter) fillUnlimited(c *Call, d *Decision) {
	d.Allowed, d.Code, d.reason = true, DecisionUnknownModel, "the model has no quota"
	if (*rl.quotas.Load())[c.Model] != nil {
		d.Code, d.reason = DecisionUnlimited, "the model's quota limits nothing"
	}
	d.Stats = rl.Stats(c.Model)
}

// reservation returns the reservation of a call that was admitted, or nil. For a model without
// limits, the reservation records the usage when it is committed.
func (rl *RateLimiter) reservation(c *Call, r *engine.Result) *Reservation {
	res := r.Reservation
	if res == nil {
		return nil
	}
	if m, s := modelOf(r); m != nil && s.Rules() != nil {
		m.recordSnapshot(s)
	} else if c.Model != "" {
		name := c.Model
		res.AfterCommit(func(t Tokens) { rl.record(name, t) })
	}
	return (*Reservation)(res)
}

// lost returns the decision on a call for which the store could not be asked.
func lost(err error) Decision {
	return Decision{Decision: project.Decision{RetryAfter: engine.SlotGuess}, Code: DecisionStoreLost, reason: err.Error()}
}

// undecidable returns the decision on a call that is not valid, or whose project limiter is closed.
func undecidable(err error) Decision {
	if errors.Is(err, store.ErrClosed) {
		return lost(err)
	}
	return Decision{Decision: project.Decision{RetryAfter: Never}, Code: DecisionInvalidTokens, reason: message.Plain(err)}
}
