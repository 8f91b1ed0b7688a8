package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
)

// ErrCrowded is the error of a call that may not wait because too many of its
// project do.
var ErrCrowded = line.ErrCrowded

// Call is a call in full: what it asks for, of which model, and for whom. It is
// charged to the quotas of its model and to the limits of its project, or to
// nothing.
type Call struct {
	Model string // empty: none

	// Estimated is how many tokens it is thought to use, prompt and output
	// together. Where they are known apart, Tokens has them, and Estimated is 0.
	// Of a project whose tokens are limited, a call takes at least one.
	Estimated int
	Tokens    Tokens

	Requests int // as how many requests it counts: 0 is one

	// Project is whose call it is: up to 512 bytes of UTF-8 without control
	// characters, or empty. Those who wait for a model have their turns by the
	// priorities and the weights of their projects.
	Project string

	// Limits returns the limits of the project, or nil for none. It is called
	// whenever the call is decided on, so that a change reaches those who wait,
	// and must not take long. Without it, nothing but the quotas of the model
	// counts.
	Limits func() *ProjectLimits

	// MaxWait is how long it may wait. Without it, it is as long as its context
	// lets it. With it, a call fails at once if it is told to wait for longer,
	// although something may be given back before.
	MaxWait time.Duration

	Priority int  // among the project's calls that wait: higher comes first
	Shadow   bool // it goes on even if it is denied: observers are told so. It should not wait
}

// TryAcquireCall is TryAcquire for a call in full. A denial is no error: that
// says that the call is not valid, or that the store could not be asked.
func (rl *RateLimiter) TryAcquireCall(ctx context.Context, c Call) (res *Reservation, d Decision, err error) {
	made := c.ready()
	res, err = rl.tryAcquire(ctx, &made, &d)
	return res, d, cmp.Or(made.invalid, err)
}

// AcquireCall is Acquire for a call in full. Those who wait for a model have their
// turns by the priorities of their projects, by their weights among those of the same
// priority, and first come, first served within a project, unless the priorities of
// its calls differ. A call that has to wait for what its project may use holds up
// nobody else's. When it fails, the decision is the last that it was told, or what
// those before it wait for.
func (rl *RateLimiter) AcquireCall(ctx context.Context, c Call) (res *Reservation, d Decision, err error) {
	w := wait{limiter: rl, call: c.ready()}
	res, err = w.acquire(ctx, &d)
	return res, d, err
}

// call is a call made ready.
type call struct {
	model    string
	request  request
	project  string
	limits   func() *ProjectLimits // nil: none
	maxWait  time.Duration
	priority int
	shadow   bool
	invalid  error
}

// checkProject returns what is wrong with the name of a project, which may be
// empty.
func checkProject(name string) error {
	if name == "" || modelname.Valid(name) {
		return nil
	}
	return fmt.Errorf("ratelimit: project %.40q: a name must have up to %d bytes of UTF-8, and no control characters", name, modelname.MaxBytes)
}

func (c *Call) ready() call {
	made := call{model: c.Model, project: c.Project, limits: c.Limits, maxWait: c.MaxWait, priority: c.Priority, shadow: c.Shadow}
	if c.Tokens == (Tokens{}) {
		made.request, made.invalid = newRequest(c.Estimated)
	} else {
		made.request, made.invalid = newSplitRequest(c.Tokens)
	}
	if c.Requests != 0 {
		made.request.requests = int64(c.Requests)
	}
	switch {
	case made.invalid != nil:
	case checkProject(c.Project) != nil:
		made.invalid = checkProject(c.Project)
	case c.Tokens != (Tokens{}) && c.Estimated != 0:
		made.invalid = errors.New("ratelimit: Estimated and Tokens are both set: where the parts are known, Estimated must be 0")
	case c.MaxWait < 0:
		made.invalid = fmt.Errorf("ratelimit: a call that may wait for %v: it must not be negative", c.MaxWait)
	case c.Requests < 0 || int64(c.Requests) > maxTokens:
		made.invalid = fmt.Errorf("ratelimit: a call that counts as %d requests: it must be from 0 to %d", c.Requests, int64(maxTokens))
	}
	return made
}

// ticket returns how a call stands in line. There may be no limits.
func (l *ProjectLimits) ticket(c *call, cost int64) line.Ticket {
	t := line.Ticket{Flow: flowOf(c.project, l), Weight: 1, Priority: c.priority, Cost: cost}
	if l != nil {
		t.Rank, t.Weight, t.Most = l.Priority, max(l.Weight, 1), l.MaxWaiting
	}
	return t
}

// plain ends the flow of a project's calls that ask for nothing but requests, so that
// these do not wait behind those that wait for tokens, or for another to end.
const plain = "\x00plain"

// flowOf returns the flow of a project's calls under some of its limits. There may
// be none.
func flowOf(project string, l *ProjectLimits) string {
	if l == nil || len(l.Tokens) > 0 || l.MaxConcurrent > 0 {
		return project
	}
	return project + plain
}

// projectLimits returns the limits of a call's project as they are now, or nil.
func (c *call) projectLimits() *ProjectLimits {
	if c.limits == nil {
		return nil
	}
	return c.limits()
}
