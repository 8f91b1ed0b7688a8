package admit

import (
	"context"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Limiter is a plain limiter: one that knows keys and no projects, such as
// *limit.Limiter and *limit.Combined.
type Limiter[In any] interface {
	Spend(in In) limit.Decision
	Peek(in In) limit.Decision
	Wait(ctx context.Context, in In) error
}

// PlainGate admits calls by a plain limiter.
type PlainGate[In any] struct {
	Limiter  Limiter[In]
	Wait     time.Duration            // how long a call may wait in turn; zero: not at all
	Shadow   bool                     // calls go on whatever the answer is, so they do not wait
	Observe  func(In, limit.Decision) // is told what was decided on each call; nil: nobody is
	Policies *Policies
}

// Ask asks for a call, and makes r, which is empty, the result.
func (g *PlainGate[In]) Ask(ctx context.Context, in In, r *Result) {
	d := g.Limiter.Spend(in)
	if !d.Allowed && d.RetryAfter <= g.Wait && !g.Shadow {
		d, r.Err = g.wait(ctx, in)
	}
	if g.Observe != nil {
		g.Observe(in, d)
	}
	r.enter(d, g.Policies)
	r.Answer = r.judge(ctx)
}

// wait lets a call wait in turn. The limiter says only whether it passed, so Peek
// tells where the key stands afterwards.
func (g *PlainGate[In]) wait(ctx context.Context, in In) (limit.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Wait)
	defer cancel()
	err := g.Limiter.Wait(ctx, in)
	d := g.Limiter.Peek(in)
	if d.Allowed = err == nil; d.Allowed {
		d.RetryAfter = 0
	} else {
		d.RetryAfter = max(d.RetryAfter, 1) // the key may have become free since
	}
	return d, err
}

// plainStanding is where a key stands under the limit that decided, or none if no
// limit governs it.
type plainStanding [1]project.Standing

// enter makes a plain limiter's decision the result's.
func (r *Result) enter(d limit.Decision, p *Policies) {
	r.Decision.Allowed, r.Decision.RetryAfter = d.Allowed, d.RetryAfter
	if d.Allowed && d.Limit == (limit.Limit{}) {
		return
	}
	w := p.window(d.Limit)
	r.plain[0] = project.Standing{Window: w, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter}
	if !d.Allowed {
		r.Decision.Exceeded = w.Name
	}
}

// Standings returns where the call's project stands in its windows, or where its
// key stands under the limit of a plain limiter that decided.
func (r *Result) Standings() []project.Standing {
	if r.plain[0].Window != nil {
		return r.plain[:]
	}
	return r.Decision.Windows()
}

// window returns a limit as a window, whose name is the limit's text in ASCII. It
// is the same one for as long as the limit's slot is not needed for another.
func (p *Policies) window(l limit.Limit) *project.Window {
	slot := &p.slots[mix(0, l.Count(), l.Period())>>(64-slotBits)]
	known := slot.Load()
	if known == nil || known.limit != l {
		w := &project.Window{Name: strings.ReplaceAll(l.String(), "µs", "us"), Count: l.Count(), Period: l.Period()}
		known = newPolicy([]project.Standing{{Window: w}})
		known.limit = l
		slot.Store(known)
	}
	return known.windows[0]
}
