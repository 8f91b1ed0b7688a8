package project

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// Errors that callers may want to tell apart. Others are faults of the store, or
// of a context that has ended.
var (
	ErrExceeded = errors.New("ratelimit: rate limit exceeded") // Allow's: a limit denies the request
	ErrInvalid  = errors.New("ratelimit: invalid call")        // the call, or the id of a project, is not valid
	ErrNever    = limit.ErrNever                               // the call is larger than a limit, so it does not wait
	ErrCrowded  = line.ErrCrowded                              // too many calls of the project wait already
)

// Limiter limits what each project may use. Any number of goroutines may use it. Make
// one with [New] or [NewWithConfig].
type Limiter struct {
	engine     *admission.Engine
	owned      bool          // the engine is this limiter's alone
	memory     *store.Memory // the store, if it is that
	maxWaiting int

	usual   atomic.Pointer[plan] // of projects without one of their own
	plans   *plans               // of those with one
	scopes  *scopes              // of those that are in use
	setting sync.Mutex           // held while limits are set, here and where they are kept
	minima  map[string]Limit     // the limits that have a MinShare; guarded by setting

	closed   atomic.Bool
	unfollow func() // stops following limits that are set elsewhere; may be nil
}

// Call is one request of a project.
type Call struct {
	Project string

	Requests int // how many requests the call counts as: 0 is one

	// Estimated is how many tokens the call is expected to use, prompt and output
	// together. If you know the two apart, set Tokens and leave Estimated 0. Take and
	// Acquire reserve at least one token of a project whose tokens are limited, until
	// the call ends, so that a project in debt waits; Spend asks for no tokens if both
	// are 0.
	Estimated int
	Tokens    llm.Tokens

	// MaxWait is how long [Limiter.Acquire] and [Limiter.Spend] may wait. Without
	// it, Acquire waits until its context ends, and Spend not at all. A call that would
	// have to wait for longer fails at once, with an error that wraps
	// [context.DeadlineExceeded], although other calls may give something back earlier.
	MaxWait time.Duration

	Priority int  // among the waiting calls of the project: higher comes first
	Shadow   bool // tells observers that the call goes on even if it is denied

	// Fault makes the call fail with [ErrInvalid] and this error, and observers see it
	// as refused. Middleware sets it if a request does not say what it asks for, or
	// which project it is of.
	Fault error
}

// Allow charges one request to the project, if it may pass. Where it may not, the
// error is [ErrExceeded] and says which limit it was.
func (l *Limiter) Allow(ctx context.Context, projectID string) (bool, error) {
	d, err := l.Spend(ctx, Call{Project: projectID})
	if err != nil || d.Allowed {
		return d.Allowed, err
	}
	return false, d.err()
}

// err returns what Allow says to a denial.
func (d *Decision) err() error {
	for i := range d.plan.windows {
		if d.plan.windows[i].Name == d.Exceeded {
			return d.plan.exceeded[i]
		}
	}
	return ErrExceeded
}

// Spend charges a call whose cost is known and stays charged: it is Take without a
// reservation, or Acquire if the call has a MaxWait. Without MaxWait a denial is no
// error: the decision tells it. [Limit].MaxConcurrent does not count the call, because
// nothing says when it ends. In memory, Spend allocates nothing for a call without
// tokens that does not wait.
func (l *Limiter) Spend(ctx context.Context, c Call) (d Decision, err error) {
	if c.MaxWait == 0 && c.tokens() == 0 && l.memory != nil && l.engine.Quiet() && l.check(&c, new(admission.Ask)) == nil {
		err = l.spendInMemory(ctx, &c, &d)
		return d, err
	}
	part := admission.WithoutSlots
	if c.tokens() == 0 {
		part = admission.RequestsOnly
	}
	if c.MaxWait == 0 {
		_, d, err = l.try(ctx, &c, part)
		return d, err
	}
	res, d, err := l.acquire(ctx, &c, part)
	res.Commit(-1, -1)
	return d, err
}

// spendInMemory is Spend of a valid call that asks for requests alone, while no call waits.
func (l *Limiter) spendInMemory(ctx context.Context, c *Call, d *Decision) error {
	var key [len("project//requests") + maxID]byte // an id that must be escaped may need more
	var room [requestWindows]limit.Verdict
	p := l.planOf(c.Project)
	d.plan = p
	if charge := p.requests; len(charge.Limits) > 0 {
		charge.N = int64(max(c.Requests, 1))
		said, _, err := l.memory.Spend(ctx, appendKey(key[:0], c.Project), charge, room[:0])
		if err != nil {
			l.engine.Observe(ctx, &admission.Call{Project: c.Project, Shadow: c.Shadow}, &admission.Result{}, err)
			return err
		}
		for i := range said {
			d.enter(&p.windows[i], &said[i])
		}
	}
	d.Allowed = d.Exceeded == ""
	if o := l.engine.Observer(); o != nil {
		o.Observe(ctx, d.event(c))
	}
	return nil
}

// event returns what observers are told of a call that was spent.
func (d *Decision) event(c *Call) event.Event {
	e := event.Event{
		Kind: event.Admitted, Project: c.Project, Limit: d.Exceeded, RemainingMinute: -1, RetryAfter: d.RetryAfter, Shadow: c.Shadow,
	}
	if !d.Allowed {
		e.Kind = event.Denied
	}
	if d.count > 0 && d.standings[0].Window.Name == "minute" {
		e.RemainingMinute = d.standings[0].Remaining
	}
	return e
}

// Take charges a call to all limits of its project, or to none. A denial is no error: the
// reservation is nil then. Commit the reservation with what was used, or cancel it.
func (l *Limiter) Take(ctx context.Context, c Call) (*Reservation, Decision, error) {
	return l.try(ctx, &c, admission.Whole)
}

// Acquire is Take that waits in turn. It fails at once with [ErrNever] if the call
// is larger than a limit, with [ErrCrowded] if too many of its project wait, and
// with ctx's error when ctx ends; then nothing is charged, and the decision is the
// last answer that the call got.
//
// Waiting calls of a project are served by their priorities, then first come, first
// served. A project that waits for its own limits holds up no other.
func (l *Limiter) Acquire(ctx context.Context, c Call) (*Reservation, Decision, error) {
	return l.acquire(ctx, &c, admission.Whole)
}

// try asks for a call, of the part of its project's limits that is given.
func (l *Limiter) try(ctx context.Context, c *Call, part admission.Part) (*Reservation, Decision, error) {
	var asks admission.Call
	var r admission.Result
	scopes := [1]*admission.Scope{l.ready(c, part, &asks)}
	err := l.engine.Try(ctx, &asks, scopes[:], &r)
	return l.answer(scopes[0], &r, err)
}

// acquire is try that waits.
func (l *Limiter) acquire(ctx context.Context, c *Call, part admission.Part) (*Reservation, Decision, error) {
	var asks admission.Call
	var r admission.Result
	scopes := [1]*admission.Scope{l.ready(c, part, &asks)}
	err := l.engine.Acquire(ctx, &asks, scopes[:], &r)
	return l.answer(scopes[0], &r, err)
}

// answer returns what became of a call of a project. An error of one that could never pass
// says so in words.
func (l *Limiter) answer(scope *admission.Scope, r *admission.Result, err error) (*Reservation, Decision, error) {
	d := decisionOf(scope, r)
	if errors.Is(err, ErrNever) {
		err = fmt.Errorf("%w: %s", ErrNever, d.Reason())
	}
	return (*Reservation)(r.Reservation), d, err
}

// decisionOf returns the decision on a call of a project alone. Of a call that is not valid
// there is no scope.
func decisionOf(scope *admission.Scope, r *admission.Result) (d Decision) {
	if s := r.Outcome.Of(scope); s != nil {
		d.hear(&r.Outcome, s)
	}
	d.Allowed, d.RetryAfter, d.Exceeded = r.Allowed(), r.RetryAfter(), r.Limit()
	return d
}

// ready makes asks, which is empty, what the engine is asked for a call. It returns the
// scope of the call's project, or nil if the call is not valid.
func (l *Limiter) ready(c *Call, part admission.Part, asks *admission.Call) *admission.Scope {
	asks.Part, asks.MaxWait, asks.Priority, asks.Project, asks.Shadow = part, c.MaxWait, c.Priority, c.Project, c.Shadow
	if asks.Invalid = l.check(c, &asks.Ask); asks.Invalid != nil {
		if CheckID(c.Project) != nil {
			asks.Project = "" // it is none
		}
		return nil
	}
	scope, err := l.scopes.of(l, c.Project)
	asks.Invalid = err
	return scope
}

// Scope returns the scope of a project, which has its limits, for calls that are charged
// to a model as well. It is for package ratelimit alone.
func (l *Limiter) Scope(projectID string) (*admission.Scope, error) {
	if scope := l.scopes.known(projectID); scope != nil && !l.closed.Load() {
		return scope, nil
	}
	if err := l.checkID(projectID); err != nil {
		return nil, err
	}
	return l.scopes.of(l, projectID)
}

// Peek returns where a project stands in all of its windows, and what Take would answer
// to a call. It charges nothing.
func (l *Limiter) Peek(ctx context.Context, projectID string) (Decision, error) {
	var asks admission.Call
	var r admission.Result
	scopes := [1]*admission.Scope{l.ready(&Call{Project: projectID}, admission.Whole, &asks)}
	if err := l.engine.Look(ctx, &asks, scopes[:], &r); err != nil {
		return Decision{}, err
	}
	r.Behind = false // it says where the project stands, whoever waits
	return decisionOf(scopes[0], &r), nil
}

// Reset forgets what a project has used, and which of its calls are under way.
func (l *Limiter) Reset(ctx context.Context, projectID string) error {
	scope, err := l.Scope(projectID)
	if err != nil {
		return err
	}
	return l.engine.Reset(ctx, scope)
}

// check makes ask, which is empty, what a call asks for, or returns what is wrong with it.
func (l *Limiter) check(c *Call, ask *admission.Ask) error {
	if c.Fault != nil && !l.closed.Load() {
		return fmt.Errorf("%w: %w", ErrInvalid, c.Fault)
	}
	if err := l.checkID(c.Project); err != nil {
		return err
	}
	if c.MaxWait < 0 {
		return fmt.Errorf("%w: it may wait for %v: that must not be negative", ErrInvalid, c.MaxWait)
	}
	if err := ask.Set(c.Requests, c.Estimated, c.Tokens); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, message.Plain(err))
	}
	return nil
}

// checkID returns what is wrong with the id of a project, or that the limiter is closed.
func (l *Limiter) checkID(id string) error {
	if l.closed.Load() {
		return store.ErrClosed
	}
	return CheckID(id)
}

// tokens returns how many a call is thought to use.
func (c *Call) tokens() int64 {
	return int64(c.Estimated) + int64(c.Tokens.Input) + int64(c.Tokens.Output)
}

// Close ends the limiter: waiting and later calls get an error. It returns the first of
// the errors that no method could return, as [Config].OnError gets them. The store stays
// open. A limiter that RateLimiter.NewProjects has made is closed by the RateLimiter's
// Close, which also returns its errors.
func (l *Limiter) Close() error {
	if !l.closed.CompareAndSwap(false, true) {
		return nil
	}
	if l.unfollow != nil {
		l.unfollow()
	}
	if !l.owned {
		return nil
	}
	return l.engine.Close()
}
