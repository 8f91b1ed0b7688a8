package project

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Errors that callers may want to distinguish. Others are faults of the store, or
// of a context that has ended.
var (
	ErrExceeded  = decision.ErrExceeded                  // Allow's: a limit denies the request
	ErrInvalid   = errors.New("ratelimit: invalid call") // the call, or the id of a project, is not valid
	ErrNever     = limit.ErrNever                        // the call is larger than a limit, so it does not wait
	ErrCrowded   = fair.ErrCrowded                       // too many calls of the project wait already
	ErrUnbounded = engine.ErrUnbounded                   // a limit that reserves the most governs a call whose most is not known
	ErrUnpriced  = engine.ErrUnpriced                    // a limit in dollars governs a call whose price is not known
)

// Limiter limits what each project may use. Any number of goroutines may use it. Make
// one with [New] or [NewWithConfig].
type Limiter struct {
	engine     *engine.Engine
	owned      bool          // the engine is this limiter's alone
	memory     *store.Memory // the store, if it is that
	maxWaiting int

	usual  atomic.Pointer[plan] // of projects without one of their own
	inner  *plan                // of projects below others that have neither one nor a template: it limits nothing
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

// Call is one request of a Project, with what it asks for: Requests, Estimated tokens, or Tokens where prompt and output
// are known apart, and Dollars. The zero value of each field is ready to use. It is the same Call as that of package
// ratelimit; its Model and ShadowModel have no effect here but for a Batch.
type Call = engine.Call

// Allow charges one request to the project, if it may pass. Where it may not, the
// error is [ErrExceeded] and says which limit it was.
func (l *Limiter) Allow(ctx context.Context, projectID string) (bool, error) {
	d, err := l.Spend(ctx, Call{Project: projectID})
	if err != nil || d.Allowed {
		return d.Allowed, err
	}
	return false, decision.Err(&d)
}

// Spend charges a call whose cost is known and stays charged: it is Take without a
// reservation, or Acquire if the call has a MaxWait. Without MaxWait a denial is no
// error: the decision has it. [Limit].MaxConcurrent does not count the call, because
// nothing says when it ends. In memory, Spend allocates nothing for a call without
// tokens that does not wait.
func (l *Limiter) Spend(ctx context.Context, c Call) (d Decision, err error) {
	if l.isSimple(&c) && l.engine.Quiet() && l.check(&c) == nil && engine.Ready(&c, engine.RequestsOnly, nil) == nil {
		err = l.spendInMemory(ctx, &c, &d)
		return d, err
	}
	part := engine.WithoutSlots
	if tokensOf(&c) == 0 && c.Dollars <= 0 {
		part = engine.RequestsOnly
	}
	if c.MaxWait == 0 {
		res, d, err := l.try(ctx, &c, part)
		(*engine.Reservation)(res).Stay()
		return d, err
	}
	res, d, err := l.acquire(ctx, &c, part)
	res.Commit(-1, -1)
	return d, err
}

// isSimple reports whether a call that does not wait asks for requests of a single project alone,
// in memory, which shares them with nobody.
func (l *Limiter) isSimple(c *Call) bool {
	return l.memory != nil && c.MaxWait == 0 && tokensOf(c) == 0 && c.Dollars == 0 && c.Asked == nil && c.Key == "" && c.Run == "" && c.ShadowOf == "" &&
		strings.IndexByte(c.Project, '/') < 0 && !l.hasInside(c.Project)
}

// hasInside reports whether there are projects below another, with which it shares its limits.
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
	decision.MarkAsked(d)
	if charge := p.requests; len(charge.Limits) > 0 {
		charge.N = int64(max(c.Requests, 1))
		said, _, err := l.memory.Spend(ctx, appendKey(key[:0], c.Project), charge, room[:0])
		if err != nil {
			l.engine.Observe(ctx, c, &engine.Result{}, err)
			return err
		}
		for i := range said {
			one := said[i].By(charge.Limits[i])
			decision.Enter(d, c.Project, &p.windows[i], &one, one.RetryAfter)
		}
		l.notice(c.Project, p, said, d.Limit == "")
	}
	d.Allowed = d.Limit == ""
	if o := l.engine.Observer(); o != nil {
		o.Observe(ctx, spentEvent(c, d))
	}
	return nil
}

// spentEvent returns the event of a call that was spent.
func spentEvent(c *Call, d *Decision) event.Event {
	e := event.Event{
		Kind: event.Admitted, Project: c.Project, Limit: d.Limit, RemainingMinute: -1, RetryAfter: d.RetryAfter, Shadow: c.Shadow,
	}
	if !d.Allowed {
		e.Kind = event.Denied
	}
	if all := d.Windows(); len(all) > 0 && all[0].Window.Name == kind.RequestsPerMinute.Name() {
		e.RemainingMinute = all[0].Remaining
	}
	return e
}

// Take charges a call to all limits of its project, or to none. A denial is no error: the
// reservation is nil then. Commit the reservation with what was used, or cancel it.
func (l *Limiter) Take(ctx context.Context, c Call) (*Reservation, Decision, error) {
	return l.try(ctx, &c, partOf(&c))
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
	return l.acquire(ctx, &c, partOf(&c))
}

// try asks for a call, of the part of its limits that is given.
func (l *Limiter) try(ctx context.Context, c *Call, part engine.Part) (*Reservation, Decision, error) {
	var r engine.Result
	var room [engine.MostOwn]*engine.Scope
	err := l.engine.Try(ctx, c, l.ready(c, part, room[:0]), &r)
	return answer(&r, err)
}

// acquire is try that waits in turn.
func (l *Limiter) acquire(ctx context.Context, c *Call, part engine.Part) (*Reservation, Decision, error) {
	var r engine.Result
	var room [engine.MostOwn]*engine.Scope
	err := l.engine.Acquire(ctx, c, l.ready(c, part, room[:0]), &r)
	return answer(&r, err)
}

// answer returns what became of a call of a project. An error of one that could never pass
// says so in words.
func answer(r *engine.Result, err error) (res *Reservation, d Decision, _ error) {
	r.Decide(&d)
	if errors.Is(err, ErrNever) {
		err = fmt.Errorf("%w: %s", ErrNever, d.Reason())
	}
	return (*Reservation)(r.Reservation), d, err
}

// ready makes a call ready. It appends the scopes of the call, or nothing if the call is not valid.
func (l *Limiter) ready(c *Call, part engine.Part, scopes []*engine.Scope) []*engine.Scope {
	queue := l.queueOf(c)
	c.Model = ""
	err := l.check(c)
	if err == nil {
		scopes, err = l.appendOwned(scopes, engine.OwnersOf(c))
	}
	if err == nil && queue != nil {
		scopes = append(scopes, queue)
	}
	if err == nil {
		if err = engine.Ready(c, part, scopes); err != nil && !errors.Is(err, ErrUnpriced) && !errors.Is(err, ErrUnbounded) {
			err = fmt.Errorf("%w: %s", ErrInvalid, message.Plain(err))
		}
	}
	if err == nil {
		return scopes
	}
	engine.Refuse(c, err)
	if CheckID(c.Project) != nil {
		c.Project = "" // it is none
	}
	return nil
}

// Peek returns where a project, and all above it, stand in all of their windows, and what Take
// would answer to a call. It charges nothing.
func (l *Limiter) Peek(ctx context.Context, projectID string) (Decision, error) {
	return l.PeekCall(ctx, Call{Project: projectID})
}

// PeekCall is Peek of a call, which may name a key and a run. It returns what Take would answer.
func (l *Limiter) PeekCall(ctx context.Context, c Call) (d Decision, err error) {
	var r engine.Result
	var room [engine.MostOwn]*engine.Scope
	if err := l.engine.Look(ctx, &c, l.ready(&c, partOf(&c), room[:0]), &r); err != nil {
		return d, err
	}
	r.Behind = false // it says where the project stands, whoever waits
	r.Decide(&d)
	return d, nil
}

// Reset forgets what a project has used, and which of its calls are under way. What those above
// it and below it have used stays.
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

// check returns what is wrong with a call, apart from its amounts.
func (l *Limiter) check(c *Call) error {
	if c.Fault != nil && !l.closed.Load() {
		return fmt.Errorf("%w: %w", ErrInvalid, c.Fault)
	}
	return l.checkID(c.Project)
}

// checkID returns what is wrong with the id of a project, or that the limiter is closed.
func (l *Limiter) checkID(id string) error {
	if l.closed.Load() {
		return store.ErrClosed
	}
	return CheckID(id)
}

// queueOf returns the scope that limits what the batches of a call's model have enqueued, or nil.
func (l *Limiter) queueOf(c *Call) *engine.Scope {
	if !c.Batch || c.Model == "" {
		return nil
	}
	queue := l.engine.Queue(c.Model)
	if queue != nil && c.ShadowModel {
		return queue.Shadow()
	}
	return queue
}

// partOf returns the part of the limits that a call with a reservation is charged to.
func partOf(c *Call) engine.Part {
	if c.Batch {
		return engine.Batch
	}
	return engine.Whole
}

// tokensOf returns how many tokens a call is thought to use.
func tokensOf(c *Call) int64 {
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
