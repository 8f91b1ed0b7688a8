package ratelimit

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/project"
)

// ErrCrowded is the error of a call that may not wait because too many of its
// project do.
var ErrCrowded = line.ErrCrowded

// Call is a call in full: what it asks for, of which model, and for whom. It is
// charged to the quotas of its model and, if there are limits of projects, to those of its
// project: to all of them or to none. See [RateLimiter.NewProjects].
type Call struct {
	Model string // empty: none

	// Estimated is how many tokens it is thought to use, prompt and output
	// together. Where they are known apart, Tokens has them, and Estimated is 0.
	// Of a project whose tokens are limited, a call takes at least one until it ends.
	Estimated int
	Tokens    Tokens

	Requests int // as how many requests it counts: 0 is one

	// Project is whose call it is: up to 512 bytes of UTF-8 without control
	// characters, or empty. Those who wait for a model have their turns by the
	// priorities and the weights of their projects.
	Project string

	// MaxWait is how long it may wait. Without it, it is as long as its context
	// lets it. With it, a call fails at once if it is told to wait for longer,
	// although something may be given back before.
	MaxWait time.Duration

	Priority int  // among the project's calls that wait: higher comes first
	Shadow   bool // it goes on even if it is denied: observers are told so. It should not wait
}

// Reservation is what a call has taken before it is known what it uses.
type Reservation = project.Reservation

// checkProject returns what is wrong with the name of a project, which may be
// empty.
func checkProject(name string) error {
	if name == "" || modelname.Valid(name) {
		return nil
	}
	return fmt.Errorf("ratelimit: project %.40q: a name must have up to %d bytes of UTF-8, and no control characters", name, modelname.MaxBytes)
}

// ask makes a, which is empty, what the call asks for, or returns what is wrong with it.
func (c *Call) ask(a *admission.Ask) error {
	if err := a.Set(c.Requests, c.Estimated, c.Tokens); err != nil {
		return err
	}
	if c.MaxWait < 0 {
		return fmt.Errorf("ratelimit: a call that may wait for %v: it must not be negative", c.MaxWait)
	}
	return nil
}
