package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/unreported"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Errors that callers may want to tell apart. Others are faults of the store, or
// of a context that has ended.
var (
	ErrExceeded = errors.New("ratelimit: rate limit exceeded") // Allow's, of what was denied
	ErrInvalid  = errors.New("ratelimit: invalid call")        // nothing was charged
	ErrNever    = ratelimit.ErrNever                           // of a wait that could never end
	ErrCrowded  = ratelimit.ErrCrowded                         // of a call that may not wait: too many of its project do
)

// Limiter limits what each project may use. All of its methods may be called at a
// time. Make one with [New] or [NewWithConfig].
type Limiter struct {
	models     *ratelimit.RateLimiter // does all that waits or is settled
	owned      bool                   // models was made here
	store      ratelimit.Store        // of models
	memory     *store.Memory          // the store, if it is that
	observer   ratelimit.Observer     // may be nil
	maxWaiting int
	broken     error // why no call can be decided on, or nil

	usual   atomic.Pointer[plan] // of projects without one of their own
	plans   *plans               // of those with one
	setting sync.Mutex           // held while limits are set, here and where they are kept

	closed   atomic.Bool
	unfollow func() // stops following limits that are set elsewhere; may be nil
	missed   unreported.Error
}

// Call is one request of a project.
type Call struct {
	Project string
	Model   string // of [Config].Models; empty: its quotas have no part in it

	Requests int // as how many requests it counts: 0 is one

	// Estimated is how many tokens it is thought to use, prompt and output
	// together. Where they are known apart, Tokens has them, and Estimated is 0.
	// Take and Acquire reserve at least one of a project whose tokens are
	// limited, so that what it owes holds it up; Spend asks for none if both are 0.
	Estimated int
	Tokens    ratelimit.Tokens

	// MaxWait is how long [Limiter.Acquire] and [Limiter.Spend] may wait. Without
	// it, Acquire waits as long as the context lets it, and Spend not at all. With
	// it, a call fails at once if it is told to wait for longer, although
	// something may be given back before.
	MaxWait time.Duration

	Priority int  // among the project's calls that wait: higher comes first
	Shadow   bool // it goes on even if it is denied: observers are told so

	// Fault is why it is not known what the call asks for, or whose it is: it is
	// not valid, and observers are told so.
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

// Spend charges a call whose cost is known, and that will not be given back: it is
// Take without a reservation, or Acquire if the call may wait. A denial is no
// error, unless it waits. As nothing says when the call ends, it is not one of
// those that [Limit].MaxConcurrent counts. In memory it allocates nothing for a call
// without tokens and model that does not wait.
func (l *Limiter) Spend(ctx context.Context, c Call) (Decision, error) {
	if c.Model != "" || c.MaxWait > 0 {
		return l.spendInTurn(ctx, c)
	}
	var d Decision
	err := l.spend(ctx, &c, &d)
	if l.observer != nil {
		l.observe(ctx, &c, &d, err)
	}
	return d, err
}

func (l *Limiter) spendInTurn(ctx context.Context, c Call) (Decision, error) {
	through := l.models.TryAcquireCall
	if c.MaxWait > 0 {
		through = l.models.AcquireCall
	}
	res, d, err := l.reserve(ctx, c, through, func(p *plan) *ratelimit.ProjectLimits {
		if c.tokens() == 0 {
			return &p.requests
		}
		return &p.spent
	})
	res.Commit(-1, -1)
	return d, err
}

func (l *Limiter) spend(ctx context.Context, c *Call, d *Decision) error {
	if err := l.check(c); err != nil {
		return err
	}
	p := l.planOf(c.Project)
	if again, by, waiting := l.models.Projects().Ahead(c.Project); waiting && p.limitedBy(by, c) { // they come first
		if err := l.look(ctx, p, p.charges(c), d); err != nil {
			return err
		}
		if again = max(again, 1); again > d.RetryAfter {
			d.Allowed, d.RetryAfter, d.Exceeded = false, again, by
		}
		return nil
	}
	d.Allowed = true
	switch {
	case c.tokens() == 0 && len(p.limits.Requests) == 0: // nothing limits it
		return nil
	case c.tokens() == 0 && l.memory != nil:
		return l.spendInMemory(ctx, p, c, d)
	}
	_, said, err := l.store.Take(ctx, p.charges(c))
	if err != nil {
		d.Allowed = false
		return err
	}
	d.hear(p, said)
	return nil
}

func (l *Limiter) spendInMemory(ctx context.Context, p *plan, c *Call, d *Decision) error {
	var key [len("project//requests") + maxID]byte // an id that must be escaped may need more
	var said [requestWindows]limit.Decision
	decisions, err := l.memory.Spend(ctx, appendKey(key[:0], c.Project), p.limits.Requests, int64(max(c.Requests, 1)), said[:0])
	if err != nil {
		d.Allowed = false
		return err
	}
	d.hear(p, decisions)
	return nil
}

// limitedBy reports whether a limit has a part in a call.
func (p *plan) limitedBy(name string, c *Call) bool {
	if name == ratelimit.ConcurrentProject { // it is spent, and takes no place
		return false
	}
	return c.tokens() > 0 || slices.Contains(p.requests.Names, name)
}

// charges returns what a call is charged. One that asks for no tokens is not asked
// whether it may have any.
func (p *plan) charges(c *Call) (list []store.Charge) {
	prefix := (ratelimit.Projects{}).Key(c.Project)
	if len(p.limits.Requests) > 0 {
		list = append(list, store.Charge{Key: prefix + "requests", Limits: p.limits.Requests, N: int64(max(c.Requests, 1))})
	}
	if n := c.tokens(); len(p.limits.Tokens) > 0 && n > 0 {
		list = append(list, store.Charge{Key: prefix + "tokens", Limits: p.limits.Tokens, N: n})
	}
	return list
}

// look says where a project stands, and what it would say to charges.
func (l *Limiter) look(ctx context.Context, p *plan, list []store.Charge, d *Decision) error {
	said, err := l.store.Peek(ctx, list)
	if err == nil {
		d.Allowed = true
		d.hear(p, said)
	}
	return err
}

// Take charges a call to its project and its model, to all or nothing. A denial is
// no error. The reservation is to be committed with what was used, or cancelled.
func (l *Limiter) Take(ctx context.Context, c Call) (*ratelimit.Reservation, Decision, error) {
	return l.reserve(ctx, c, l.models.TryAcquireCall, everyLimit)
}

// Acquire is Take that waits in turn. It fails at once with [ErrNever] if the call
// is larger than a limit, with [ErrCrowded] if too many of its project wait, and
// with ctx's error when ctx ends; then nothing is charged, and the decision is the
// last that it was told.
//
// Calls of a project to the same model come in the order of their priorities, and
// first come, first served within these; so do those without a model. Projects that
// wait for a model's quota have their turns by the priorities of their limits, and by
// their weights among those of the same. A project that waits for what it may use
// itself holds up no other.
func (l *Limiter) Acquire(ctx context.Context, c Call) (*ratelimit.Reservation, Decision, error) {
	return l.reserve(ctx, c, l.models.AcquireCall, everyLimit)
}

type door = func(context.Context, ratelimit.Call) (*ratelimit.Reservation, ratelimit.Decision, error)

func everyLimit(p *plan) *ratelimit.ProjectLimits { return &p.limits }

// reserve asks for a call, of its project by those limits of its plan that are
// chosen.
func (l *Limiter) reserve(ctx context.Context, c Call, through door, chosen func(*plan) *ratelimit.ProjectLimits) (*ratelimit.Reservation, Decision, error) {
	var d Decision
	if err := l.check(&c); err != nil {
		if l.observer != nil {
			l.observe(ctx, &c, &d, err)
		}
		return nil, d, err
	}
	var plans []*plan // by which it was decided on, the last last
	res, said, err := through(ctx, ratelimit.Call{
		Model: c.Model, Requests: c.Requests, Estimated: c.Estimated, Tokens: c.Tokens,
		Project: c.Project, MaxWait: c.MaxWait, Priority: c.Priority, Shadow: c.Shadow,
		Limits: func() *ratelimit.ProjectLimits {
			p := l.planOf(c.Project)
			if len(plans) == 0 || plans[len(plans)-1] != p {
				plans = append(plans, p)
			}
			return chosen(p)
		},
	})
	if s := said.Project; s != nil {
		i := slices.IndexFunc(plans, func(p *plan) bool { return chosen(p) == s.Limits })
		d.hear(plans[i], s.Decisions)
	}
	d.Allowed, d.RetryAfter, d.Exceeded = said.Allowed, said.RetryAfter, said.Limit
	if c.Model != "" {
		d.Model = &said
	}
	return res, d, err
}

// Peek says where a project stands, in all of its windows, and what Take would say
// to a call. It charges nothing.
func (l *Limiter) Peek(ctx context.Context, projectID string) (Decision, error) {
	var d Decision
	if err := l.check(&Call{Project: projectID}); err != nil {
		return d, err
	}
	p := l.planOf(projectID)
	err := l.look(ctx, p, p.limits.Charges(projectID, 1, 0), &d)
	return d, err
}

// Reset forgets what a project has used, and which of its calls are under way.
func (l *Limiter) Reset(ctx context.Context, projectID string) error {
	if err := l.check(&Call{Project: projectID}); err != nil {
		return err
	}
	err := l.store.Reset(ctx, (ratelimit.Projects{}).Key(projectID))
	l.models.Projects().Wake(projectID)
	return err
}

// check returns what is wrong with a call.
func (l *Limiter) check(c *Call) error {
	if l.broken != nil {
		return l.broken
	}
	if l.closed.Load() {
		return store.ErrClosed
	}
	if c.Fault != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, c.Fault)
	}
	if err := CheckID(c.Project); err != nil {
		return err
	}
	if c.Model != "" && l.owned {
		return fmt.Errorf("%w: it is for the model %.40q: Config.Models must say what its quota is", ErrInvalid, c.Model)
	}
	if c.Requests < 0 || int64(c.Requests) > maxAmount {
		return fmt.Errorf("%w: it counts as %d requests: it must be from 0, which is one, to %d", ErrInvalid, c.Requests, int64(maxAmount))
	}
	if c.MaxWait < 0 {
		return fmt.Errorf("%w: it may wait for %v: that must not be negative", ErrInvalid, c.MaxWait)
	}
	for _, n := range [...]int{c.Estimated, c.Tokens.Input, c.Tokens.Output} {
		if n < 0 || int64(n) > maxAmount {
			return fmt.Errorf("%w: %d tokens: it must be from 0 to %d", ErrInvalid, n, int64(maxAmount))
		}
	}
	if c.Estimated > 0 && c.Tokens != (ratelimit.Tokens{}) {
		return fmt.Errorf("%w: Estimated and Tokens are both set: where the parts are known, Estimated must be 0", ErrInvalid)
	}
	return nil
}

// tokens returns how many a call is thought to use.
func (c *Call) tokens() int64 {
	return int64(c.Estimated) + int64(c.Tokens.Input) + int64(c.Tokens.Output)
}

// observe tells of a call that was spent.
func (l *Limiter) observe(ctx context.Context, c *Call, d *Decision, err error) {
	e := ratelimit.Event{
		Kind: ratelimit.EventAdmitted, Project: c.Project, Limit: d.Exceeded, RemainingMinute: d.remainingMinute(),
		RetryAfter: d.RetryAfter, Shadow: c.Shadow, Estimated: c.tokens(), Err: err,
	}
	switch {
	case errors.Is(err, ErrInvalid):
		e.Kind, e.Estimated = ratelimit.EventRefused, 0
		if CheckID(c.Project) != nil {
			e.Project = "" // it is none
		}
	case err == nil && !d.Allowed, errors.Is(err, ratelimit.ErrCrowded), errors.Is(err, context.DeadlineExceeded) && d.Exceeded != "":
		e.Kind = ratelimit.EventDenied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Kind = ratelimit.EventLeft
	case err != nil:
		e.Kind = ratelimit.EventLost
	}
	l.observer.Observe(ctx, e)
}

// Close lets nobody ask any more. Those who wait get an error, unless there are
// Models, who go on. It returns what went wrong of what nobody could
// be told.
func (l *Limiter) Close() error {
	if l.broken != nil || !l.closed.CompareAndSwap(false, true) {
		return nil
	}
	if l.unfollow != nil {
		l.unfollow()
	}
	err := l.missed.Take()
	if l.owned {
		err = errors.Join(err, l.models.Close())
	}
	return err
}
