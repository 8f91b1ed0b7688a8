package admit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Door decides on calls: by the limits of their projects, or by a plain limiter. In is the type of
// a call: an HTTP request, or an RPC.
type Door[In any] struct {
	Wait   time.Duration // how long a call may wait for its turn; zero: not at all
	Shadow bool          // calls pass whatever the answer is, and do not wait
	Skip   func(In) bool // lets calls pass without asking a limiter; may be nil

	projects *project.Limiter
	limits   engine.Projects                            // those of projects
	Identify func(In) (id string, err error)            // names the project of a call
	Cost     func(In) (requests, tokens int, err error) // nil: one request, and Guess
	Guess    func(In) (tokens int, err error)           // of a call without a Cost, if its project's tokens are limited

	plain   Limiter[In]              // nil: the limits of projects decide
	Observe func(In, limit.Decision) // gets the decision of a plain limiter on each call; may be nil

	Policies Policies
}

// UseProjects lets the limits of projects decide. identify names the project of a call where the
// Door has no Identify.
func (d *Door[In]) UseProjects(limiter *project.Limiter, identify func(In) (string, error)) {
	switch {
	case limiter == nil:
		panic("ratelimit: the limiter is nil: it must be a limiter of projects")
	case d.Observe != nil:
		panic("ratelimit: Observe is for plain limiters: a limiter of projects has an observer")
	case d.Identify == nil:
		d.Identify = identify
	}
	d.projects, d.limits = limiter, hidden.Of[engine.Projects](limiter)
}

// UsePlain lets a plain limiter decide.
func (d *Door[In]) UsePlain(limiter Limiter[In]) {
	switch {
	case limiter == nil:
		panic("ratelimit: the limiter is nil: it must be a plain limiter")
	case d.Identify != nil:
		panic("ratelimit: Identify is for projects: a plain limiter has a key function")
	case d.Cost != nil:
		panic("ratelimit: Cost is for projects: a plain limiter says itself what a call costs, see limit.Limiter.WithCost")
	}
	d.plain = limiter
}

// Ask asks the limiter about a call, and writes the result into r, which is empty. It returns
// the call's project, if there is one. A Result is large, so it is not returned by value.
func (d *Door[In]) Ask(ctx context.Context, in In, r *Result) (id string) {
	if d.plain != nil {
		d.askPlain(ctx, in, r)
		return ""
	}
	id, err := d.Identify(in)
	if err != nil {
		id = "" // a call that cannot be identified belongs to no project
	}
	r.Project = id
	call := project.Call{Project: id, Shadow: d.Shadow}
	switch {
	case err != nil:
	case d.Cost != nil:
		call.Requests, call.Estimated, err = d.Cost(in)
	case d.limits.LimitsTokens(id):
		call.Estimated, err = d.Guess(in)
	}
	if err != nil {
		r.Answer, r.Err = Invalid, err
		d.projects.Spend(ctx, project.Call{Project: id, Shadow: d.Shadow, Fault: err}) // for the limiter's observers
		return id
	}
	d.askProject(ctx, call, r)
	return id
}

// askProject asks the limiter of projects about a call, and writes the result into r.
func (d *Door[In]) askProject(ctx context.Context, call project.Call, r *Result) {
	waits := d.Wait > 0 && !d.Shadow
	if waits {
		call.MaxWait = d.maxWait(ctx)
	}
	switch {
	case call.Estimated == 0:
		r.Decision, r.Err = d.projects.Spend(ctx, call)
	case waits:
		r.Reservation, r.Decision, r.Err = d.projects.Acquire(ctx, call)
	default:
		r.Reservation, r.Decision, r.Err = d.projects.Take(ctx, call)
	}
	r.Reservation.Keep() // the caller of Ask ends the reservation, however long the call takes
	r.Answer = r.judge(ctx)
}

// maxWait returns how long a call may wait: no longer than until its own deadline.
func (d *Door[In]) maxWait(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return d.Wait
	}
	return max(1, min(d.Wait, time.Until(deadline))) // not zero, which is a wait of any length
}
