package admit

import (
	"context"
	"strings"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limiter is a plain limiter, which has keys and no projects: a *limit.Limiter or a
// *limit.Combined.
type Limiter[In any] interface {
	Spend(in In) limit.Decision
	Peek(in In) limit.Decision
	Wait(ctx context.Context, in In) error
}

// askPlain asks the plain limiter about a call, and writes the result into r.
func (d *Door[In]) askPlain(ctx context.Context, in In, r *Result) {
	decision := d.plain.Spend(in)
	if !decision.Allowed && decision.RetryAfter <= d.Wait && !d.Shadow {
		decision, r.Err = d.waitPlain(ctx, in)
	}
	if d.Observe != nil {
		d.Observe(in, decision)
	}
	r.setPlain(decision, &d.Policies)
	r.Answer = r.judge(ctx)
}

// waitPlain waits for the call's turn. The limiter's Wait returns no decision, so Peek returns
// what is left afterwards.
func (d *Door[In]) waitPlain(ctx context.Context, in In) (limit.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Wait)
	defer cancel()
	err := d.plain.Wait(ctx, in)
	left := d.plain.Peek(in)
	left.Allowed = err == nil
	if left.Allowed {
		left.RetryAfter = 0
	} else {
		left.RetryAfter = max(left.RetryAfter, 1) // not zero, although the limit may admit a call by now
	}
	return left, err
}

// plainWindow is the limit that decided, as a window, and what is left of it. It is empty if
// the key has no limit.
type plainWindow [1]project.Standing

// setPlain writes a plain limiter's decision into the result.
func (r *Result) setPlain(d limit.Decision, p *Policies) {
	r.Decision.Allowed, r.Decision.RetryAfter = d.Allowed, d.RetryAfter
	if d.Allowed && d.Limit == (limit.Limit{}) {
		return
	}
	w := p.window(d.Limit)
	r.plain[0] = project.Standing{Window: w, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}
	if !d.Allowed {
		r.Decision.Limit = w.Name
	}
}

// Windows returns the windows of the call's project and what is left of them, or for a plain
// limiter the limit that decided.
func (r *Result) Windows() []project.Standing {
	if r.plain[0].Window != nil {
		return r.plain[:]
	}
	return r.Decision.Windows()
}

// window returns a limit as a window whose name is the limit's text in ASCII. It caches the
// window until another limit needs its place in the cache.
func (p *Policies) window(l limit.Limit) *project.Window {
	entry := &p.cache[mix(0, l.Count(), l.Period())>>(64-cacheBits)]
	cached := entry.Load()
	if cached == nil || cached.limit != l {
		w := &project.Window{Name: strings.ReplaceAll(l.String(), "µs", "us"), Count: l.Count(), Period: l.Period()}
		cached = newPolicy([]project.Standing{{Window: w}}, "")
		cached.limit = l
		entry.Store(cached)
	}
	return cached.windows[0]
}
