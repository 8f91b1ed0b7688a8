package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// Errors that callers may want to tell apart. Others are faults of the store, or
// of a context that has ended.
var (
	ErrExceeded  = errors.New("ratelimit: rate limit exceeded")                       // Allow's: a limit denies the request
	ErrInvalid   = errors.New("ratelimit: invalid call")                              // the call, or the id of a project, is not valid
	ErrNever     = limit.ErrNever                                                     // the call is larger than a limit, so it does not wait
	ErrCrowded   = line.ErrCrowded                                                    // too many calls of the project wait already
	ErrUnbounded = errors.New("ratelimit: the most that the call can use is unknown") // a limit that reserves the most governs a call whose most is not known
	ErrUnpriced  = errors.New("ratelimit: the price is unknown")                      // a limit in dollars governs a call whose price is not known
)

// Limiter limits what each project may use. Any number of goroutines may use it. Make
// one with [New] or [NewWithConfig].
type Limiter struct {
	engine     *engine.Engine
	owned      bool          // the engine is this limiter's alone
	memory     *store.Memory // the store, if it is that
	maxWaiting int

	usual  atomic.Pointer[plan] // of projects without one of their own
	inner  *plan                // of projects inside of others that have neither one nor a template: it limits nothing
	plans  *plans               // of those with one, and of templates
	scopes *scopes              // of projects that are in use
	users  *scopes              // of users of projects for which no plan was set
	nested atomic.Bool          // some of them have paths for ids

	keyPlans *plans               // of keys
	keys     *scopes              // of keys that are in use and have limits
	runPlan  atomic.Pointer[plan] // of every run; nil: none has limits
	runs     *scopes              // of runs that are in use

	setting sync.Mutex       // held while limits are set, here and where they are kept
	minima  map[string]Limit // the limits that have a MinShare; guarded by setting

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

	// Dollars is the price that the call is expected to have. [price.Unknown] is one that is
	// not known: the call fails with [ErrUnpriced] if a limit in dollars governs it.
	Dollars price.Amount

	// Most and MostDollars are the most tokens that the call can use and the most that it can cost, for limits that
	// reserve these: see [Reserve]. What is less than Tokens and Dollars, such as 0, stands for those. A negative
	// number of tokens and [price.Unknown] say that nobody knows: then the call fails with [ErrUnbounded] if a limit
	// that reserves the most governs it.
	Most        llm.Tokens
	MostDollars price.Amount

	// First and FirstDollars are what a call that extends its reservation as its answer comes reserves at first, of
	// limits whose OnOverrun is [OverrunCut]: the most of its prompt, and what is expected of its output. They are zero
	// for any other call: of those limits, it reserves the most. See [Reservation.Extend].
	First        llm.Tokens
	FirstDollars price.Amount

	// Key is the id of the key with which the call was made, and Run that of the agent's run
	// that the call is a part of. Either may be empty. The call is charged to their limits as
	// well: see [Limiter.SetKeyLimits] and [Config].Runs.
	Key, Run string

	// RunProject is the project whose run it is, if that is one above Project: users of one
	// project may hand on a run to each other. The call is charged to its limits in any case,
	// even if it has only the default one. Empty is Project itself.
	RunProject string

	// MaxWait is how long [Limiter.Acquire] and [Limiter.Spend] may wait. Without
	// it, Acquire waits until its context ends, and Spend not at all. A call that would
	// have to wait for longer, or for longer than until the deadline of its context, fails
	// at once with a [limit.DeadlineError], although other calls may give something back
	// earlier.
	MaxWait time.Duration

	// Batch says that the call stands for many calls that the provider makes when it likes, so
	// that it is no matter of rates: tokens of a minute count, but do not deny the call, and
	// [Limit].MaxConcurrent does not count it. It is for Take and Acquire.
	Batch bool

	Priority int  // among the waiting calls of the project: higher comes first
	Shadow   bool // tells observers that the call goes on even if it is denied

	// Asked, if it is not nil, is filled in with what each limit has answered. It is for package
	// gateway alone.
	Asked *engine.Asked

	// Tag is told by WaitingCalls of a ratelimit.RateLimiter while the call waits.
	Tag any

	// ShadowOf is Project or one above it, or empty. The limits of that project, of all inside of it, of
	// the key and of the run count the call, and do not deny it: [Decision].Shadow says which of them would
	// have. Those above it hold.
	ShadowOf string

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
	if d.Share.Window != nil {
		return fmt.Errorf("%w: %s", ErrExceeded, d.Reason())
	}
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
	if l.isSimple(&c) && l.engine.Quiet() && l.check(&c, new(engine.Ask)) == nil {
		err = l.spendInMemory(ctx, &c, &d)
		return d, err
	}
	part := engine.WithoutSlots
	if c.tokens() == 0 && c.Dollars <= 0 {
		part = engine.RequestsOnly
	}
	if c.MaxWait == 0 {
		_, d, err = l.try(ctx, &c, part)
		return d, err
	}
	res, d, err := l.acquire(ctx, &c, part)
	res.Commit(-1, -1)
	return d, err
}

// isSimple reports whether a call that does not wait asks for requests of a single project alone,
// in memory, which shares them with nobody.
func (l *Limiter) isSimple(c *Call) bool {
	return l.memory != nil && c.MaxWait == 0 && c.tokens() == 0 && c.Dollars == 0 && c.Asked == nil && c.Key == "" && c.Run == "" && c.ShadowOf == "" &&
		strings.IndexByte(c.Project, '/') < 0 && !l.hasInside(c.Project)
}

// hasInside reports whether there are projects inside of another, with which it shares its limits.
func (l *Limiter) hasInside(id string) bool {
	if !l.nested.Load() {
		return false
	}
	scope := l.scopes.known(id)
	return scope != nil && scope.HasBelow()
}

// spendInMemory is Spend of a simple call that is valid, while no call waits.
func (l *Limiter) spendInMemory(ctx context.Context, c *Call, d *Decision) error {
	var key [len("project//requests") + MaxID]byte // an id that must be escaped may need more
	var room [4]limit.Verdict                      // of more windows of requests, the verdicts are allocated
	p := l.planOf(c.Project)
	d.plan, d.asked = p, true
	if charge := p.requests; len(charge.Limits) > 0 {
		charge.N = int64(max(c.Requests, 1))
		said, _, err := l.memory.Spend(ctx, appendKey(key[:0], c.Project), charge, room[:0])
		if err != nil {
			l.engine.Observe(ctx, &engine.Call{Project: c.Project, Shadow: c.Shadow}, &engine.Result{}, err)
			return err
		}
		for i := range said {
			one := said[i].By(charge.Limits[i])
			d.enter(p, c.Project, i, &one, one.RetryAfter)
		}
		l.notice(c.Project, p, said, d.Exceeded == "")
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
	if d.count > 0 && d.few[0].Window.kind == kind.RequestsPerMinute {
		e.RemainingMinute = d.few[0].Remaining
	}
	return e
}

// Take charges a call to all limits of its project, or to none. A denial is no error: the
// reservation is nil then. Commit the reservation with what was used, or cancel it.
func (l *Limiter) Take(ctx context.Context, c Call) (*Reservation, Decision, error) {
	return l.try(ctx, &c, c.part())
}

// Acquire is Take that waits in turn. It fails at once with [ErrNever] if the call
// is larger than a limit, with [ErrCrowded] if too many of its project wait, with a
// [limit.DeadlineError] if a limit lets it pass only after ctx's deadline, and
// with ctx's error when ctx ends; then nothing is charged, and the decision is the
// last answer that the call got.
//
// Waiting calls of a project are served by their priorities, then first come, first
// served. A project that waits for its own limits holds up no other.
func (l *Limiter) Acquire(ctx context.Context, c Call) (*Reservation, Decision, error) {
	return l.acquire(ctx, &c, c.part())
}

// try asks for a call, of the part of its limits that is given.
func (l *Limiter) try(ctx context.Context, c *Call, part engine.Part) (*Reservation, Decision, error) {
	var asks engine.Call
	var r engine.Result
	var room [MostScopes]*engine.Scope
	err := l.engine.Try(ctx, &asks, l.ready(c, part, &asks, room[:0]), &r)
	return l.answer(c, &asks, &r, err)
}

// acquire is try that waits.
func (l *Limiter) acquire(ctx context.Context, c *Call, part engine.Part) (*Reservation, Decision, error) {
	var asks engine.Call
	var r engine.Result
	var room [MostScopes]*engine.Scope
	err := l.engine.Acquire(ctx, &asks, l.ready(c, part, &asks, room[:0]), &r)
	return l.answer(c, &asks, &r, err)
}

// answer returns what became of a call of a project. An error of one that could never pass
// says so in words.
func (l *Limiter) answer(c *Call, asks *engine.Call, r *engine.Result, err error) (*Reservation, Decision, error) {
	if c.Asked != nil {
		c.Asked.Keep(asks, r)
	}
	d := decisionOf(r)
	if errors.Is(err, ErrNever) {
		err = fmt.Errorf("%w: %s", ErrNever, d.Reason())
	}
	return (*Reservation)(r.Reservation), d, err
}

// decisionOf returns the decision on a call of a project alone.
func decisionOf(r *engine.Result) (d Decision) {
	d.hear(&r.Outcome)
	d.Allowed, d.RetryAfter, d.Exceeded = r.Allowed(), r.RetryAfter(), r.Limit()
	d.Shadow = ShadowDenialOf(&r.Outcome)
	return d
}

// ready makes asks, which is empty, what the engine is asked for a call. It appends the scopes of
// the call, or nothing if the call is not valid.
func (l *Limiter) ready(c *Call, part engine.Part, asks *engine.Call, scopes []*engine.Scope) []*engine.Scope {
	asks.Part, asks.MaxWait, asks.Priority, asks.Project, asks.Shadow = part, c.MaxWait, c.Priority, c.Project, c.Shadow
	asks.Tag = c.Tag
	if asks.Invalid = l.check(c, &asks.Ask); asks.Invalid != nil {
		if CheckID(c.Project) != nil {
			asks.Project = "" // it is none
		}
		return nil
	}
	scopes, asks.Invalid = l.AppendScopes(scopes, Owners{c.Project, c.Key, c.Run, c.RunProject, c.ShadowOf})
	if asks.Invalid == nil {
		asks.Invalid = CheckKnown(scopes, c.Dollars, c.Most, c.MostDollars)
	}
	return scopes
}

// Peek returns where a project, and all above it, stand in all of their windows, and what Take
// would answer to a call. It charges nothing.
func (l *Limiter) Peek(ctx context.Context, projectID string) (Decision, error) {
	return l.PeekCall(ctx, Call{Project: projectID})
}

// PeekCall is Peek of a call, which may name a key and a run. It returns what Take would answer.
func (l *Limiter) PeekCall(ctx context.Context, c Call) (Decision, error) {
	var asks engine.Call
	var r engine.Result
	var room [MostScopes]*engine.Scope
	if err := l.engine.Look(ctx, &asks, l.ready(&c, c.part(), &asks, room[:0]), &r); err != nil {
		return Decision{}, err
	}
	r.Behind = false // it says where the project stands, whoever waits
	if c.Asked != nil {
		c.Asked.Keep(&asks, &r)
	}
	return decisionOf(&r), nil
}

// Reset forgets what a project has used, and which of its calls are under way. What those above
// it and inside of it have used stays.
func (l *Limiter) Reset(ctx context.Context, projectID string) error {
	if err := l.checkID(projectID); err != nil {
		return err
	}
	scope, err := l.scopes.of(projectID)
	if err != nil {
		return err
	}
	return l.engine.Reset(ctx, scope)
}

// check makes ask, which is empty, what a call asks for, or returns what is wrong with it.
func (l *Limiter) check(c *Call, ask *engine.Ask) error {
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
	if err := SetPrice(ask, c.Dollars, c.Tokens, c.Most, c.MostDollars); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, message.Plain(err))
	}
	if err := SetFirst(ask, c.First, c.FirstDollars); err != nil {
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

// part returns the part of the limits that a call with a reservation is charged to.
func (c *Call) part() engine.Part {
	if c.Batch {
		return engine.Batch
	}
	return engine.Whole
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
