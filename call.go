package ratelimit

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// ErrCrowded is the error of a call that may not wait because too many calls of its
// project already do.
var ErrCrowded = line.ErrCrowded

// Call says everything about a call: what it asks for, which model it is for, and which
// project makes it. It is charged to the quota of its model and, after
// [RateLimiter.NewProjects], to the limits of its project: to all of them or to none.
type Call struct {
	Model string // empty: none

	// Estimated is how many tokens the call is expected to use, prompt and output
	// together. If you know the two apart, set Tokens and leave Estimated 0. A call
	// takes at least one token of a project whose tokens are limited, until it ends.
	Estimated int
	Tokens    Tokens

	Requests int // how many requests the call counts as: 0 is one

	// Project names the project that makes the call, or is empty. After
	// [RateLimiter.NewProjects] it is an id that [project.CheckID] accepts, such as
	// "acme/search": the call is charged to acme as well. Before, any name will do that has up to 512 bytes of
	// UTF-8 and no control characters. Projects have shares of a model's quota by their
	// priorities and weights.
	Project string

	// Dollars is the price that the call is expected to have: see [project.Call]. It counts
	// for limits of projects, keys and runs.
	Dollars price.Amount

	// Most and MostDollars are the most tokens that the call can use and the most that it can cost, for
	// limits that reserve these: see [project.Call].
	Most        Tokens
	MostDollars price.Amount

	// First and FirstDollars are what a call that extends its reservation reserves at first, of limits that cut
	// streams: see [project.Call].
	First        Tokens
	FirstDollars price.Amount

	// Key is the id of the key with which the call was made, and Run that of the agent's run
	// that it is a part of: see [project.Call]. Either may be empty. Before
	// [RateLimiter.NewProjects], and without a Project, they have no effect.
	Key, Run string

	// RunProject is the project whose run it is, if that is one above Project.
	RunProject string

	// MaxWait is how long the call may wait in AcquireCall. With 0 it waits until its
	// context ends. A call that would have to wait for longer, or for longer than until
	// the deadline of its context, fails at once with a [DeadlineError], although other
	// calls may give something back earlier.
	MaxWait time.Duration

	Priority int // among the waiting calls of the project: higher comes first

	// ShadowModel says that the quota of the model counts the call, and does not deny it: neither by its
	// limits nor by the shares of projects, nor because the provider takes no calls for a while. ShadowOf
	// says the same of limits of projects: see [project.Call]. [Decision].Shadow says which limit would
	// have denied the call.
	ShadowModel bool
	ShadowOf    string

	// Shadow tells observers that the call goes on even if it is denied. Use it with
	// TryAcquireCall: a call that goes on in any case need not wait.
	Shadow bool

	// Asked, if it is not nil, is filled in with what each limit has answered.
	Asked *Asked

	// Tag is told by [RateLimiter.WaitingCalls] while the call waits.
	Tag any
}

// Reservation is what an admitted call has taken, until its actual usage is known. End it
// with Commit, CommitTokens or Cancel: see [project.Reservation].
type Reservation = project.Reservation

// checkProject returns what is wrong with the name of a project. An empty name is valid.
func checkProject(name string) error {
	if name == "" || modelname.Valid(name) {
		return nil
	}
	return fmt.Errorf("ratelimit: project %.40q: a name must have up to %d bytes of UTF-8, and no control characters", name, modelname.MaxBytes)
}

// ask fills in a, which is empty, with the amounts that the call asks for. It returns what is
// wrong with the call, or nil.
func (c *Call) ask(a *engine.Ask) error {
	if err := a.Set(c.Requests, c.Estimated, c.Tokens); err != nil {
		return err
	}
	if err := project.SetPrice(a, c.Dollars, c.Tokens, c.Most, c.MostDollars); err != nil {
		return err
	}
	if err := project.SetFirst(a, c.First, c.FirstDollars); err != nil {
		return err
	}
	if c.MaxWait < 0 {
		return fmt.Errorf("ratelimit: a call that may wait for %v: it must not be negative", c.MaxWait)
	}
	return nil
}
