package engine

import (
	"context"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// delays reports whether the call makes another call pass later, which the shared scope denies for a
// time, if it takes now what it asks for.
func (e *Engine) delays(ctx context.Context, c, first *Call, scopes Scopes, deniedFor time.Duration) (bool, error) {
	var list []store.Charge
	for _, s := range scopes {
		if s.Kind != Shared {
			continue
		}
		if s.gate != nil && !s.gate.Idle() { // the gate lets single calls pass, or lowers limits in ways that the store does not know
			return true, nil
		}
		p := s.planFor(e, Whole)
		for i := range p.charges {
			of := &p.charges[i]
			if n, m := first.takes(p.rules, of.unit), c.takes(p.rules, of.unit); n > 0 && m > 0 {
				charge := *of.of(n) // of a paced unit, a call of n has no room beside it that is more than the burst
				charge.N = n + m
				list = append(list, charge)
			}
		}
	}
	if len(list) == 0 {
		return false, nil
	}
	said, err := e.store.Peek(ctx, list)
	return slices.ContainsFunc(said, func(d limit.Decision) bool {
		return d.RetryAfter > deniedFor && leavesAfter(&d) > deniedFor
	}), err
}

// takes returns how much of a unit of a scope the call takes.
func (c *Call) takes(r *Rules, u Unit) int64 {
	if !c.part.has(u) {
		return 0
	}
	return r.Amount(u, &c.ask)
}

// leavesAfter returns after which time what is taken now does not count any more.
func leavesAfter(d *limit.Decision) time.Duration {
	switch {
	case d.Limit.Algorithm() == limit.SlidingLog:
		return d.Limit.Period()
	case d.Limit.Algorithm() == limit.FixedWindow && d.Since > 0:
		return d.ResetAfter
	}
	return limit.Never
}

// overtake asks for the call while another one has the turn, unless the call would delay that one.
func (w *wait) overtake(ctx context.Context, first any, deniedFor time.Duration) (fair.Answer, error) {
	delays, err := w.engine.delays(ctx, w.call, first.(*Call), w.scopes, deniedFor)
	if err != nil || delays {
		return fair.Answer{Delays: delays}, err
	}
	a, err := w.ask(ctx)
	if a.Yield {
		a.Again = max(a.Again, SlotGuess) // the share of its flow denies it: that changes slowly
	}
	return a, err
}

// overtakes admits a call that comes while others wait, if it does not delay the first of them, and reports whether it
// has passed.
func (e *Engine) overtakes(ctx context.Context, c *Call, scopes Scopes, r *Result) (passed bool, err error) {
	shared := scopes.line()
	if shared == nil || shared.Waiting() == 0 {
		return false, nil
	}
	call, all, result := *c, slices.Clone(scopes), new(Result) // the caller's may be on its stack
	t := all.ticket(e, &call)
	t.MaxWaiting = 0
	t.Overtake = func(first any, deniedFor time.Duration) (a fair.Answer, err error) {
		if a.Delays, err = e.delays(ctx, &call, first.(*Call), all, deniedFor); err == nil && !a.Delays {
			result.Reservation, err = e.take(ctx, &call, all, &result.Outcome)
			a.Done = result.Reservation != nil
		}
		return a, err
	}
	if passed, err = shared.TryOvertake(t); passed {
		*r = *result
	}
	return passed, err
}
