package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/limit"
)

// heedOthers compares what the provider has left with what the model's quota has.
func (rl *RateLimiter) heedOthers(ctx context.Context, m *model, said *providerLimits) {
	q, now := m.quota(), rl.engine.Now()
	had := m.elsewhere.Load() != nil
	if !said.matters(q, had) || !had && said.agrees(q, m.glance.Load(), now) {
		return
	}
	var o admission.Outcome
	if err := m.look(ctx, &o); err != nil {
		return // those who ask the store for a call will say so
	}
	used := usedAtProvider(&o, o.Of(m.scope))
	more, less := m.lower(q, said, &used, now)
	for _, d := range more {
		rl.observeProvider(ctx, Event{Kind: EventLowered, Model: m.name, Limit: d.String(), Said: said[d].Remaining, RetryAfter: said.reset(d)})
	}
	if less {
		rl.engine.Wake(m.scope) // calls were told to wait for longer
	}
}

// usedAtProvider returns what the provider counts as used: of a minute nothing that is in
// the quota's margin. If that counted too, what others use would be taken for it.
func usedAtProvider(o *admission.Outcome, s *admission.Standing) (used [state.Dimensions]int64) {
	for i := range s.Len() { // of a dimension, the provider's limit comes last
		l, said := o.At(s, i)
		used[l.ID%state.AtProvider] = said.Used
	}
	return used
}

// matters reports whether what the provider says can make a difference: it has less
// than all of a maximum, or it had.
func (said *providerLimits) matters(q *state.Quota, had bool) bool {
	for d := range state.Dimensions {
		if most := int64(*q.Max(d)); most > 0 && said[d].Remaining >= 0 && (had || said[d].Remaining < most) {
			return true
		}
	}
	return false
}

// glance is what a store has said at a time that is used, when a call was last taken.
type glance struct {
	at   int64
	used [state.Dimensions]int64
}

// glanceAt notes what a store has said to a call that it has taken. In memory there is no
// need: it can be asked again for next to nothing.
func (m *model) glanceAt(o *admission.Outcome, s *admission.Standing) {
	m.glance.Store(&glance{m.limiter.engine.Now(), usedAtProvider(o, s)})
}

// Settled is [admission.Gate]'s. It takes what a call has given back off the last glance.
// Otherwise it would look as if the provider counted that, where others have used it since.
// A glance that knows of it already says too little then, and the store is asked once more.
func (m *model) Settled(taken, used admission.Amounts) {
	for {
		g := m.glance.Load()
		if g == nil {
			return
		}
		lower := *g
		for d := range state.Dimensions {
			u := d.Unit()
			lower.used[d] -= max(taken[u]-used[u], 0)
		}
		if lower.used == g.used || m.glance.CompareAndSwap(g, &lower) {
			return
		}
	}
}

// fresh is how long a glance is as good as another look.
const fresh = time.Second

// agrees reports whether the provider has at least as much left as was left a moment
// ago: then nobody else has used any, and the store need not be asked.
func (said *providerLimits) agrees(q *state.Quota, g *glance, now int64) bool {
	if g == nil || now-g.at > int64(fresh) {
		return false
	}
	for d := range state.Dimensions {
		if most := int64(*q.Max(d)); most > 0 && said[d].Remaining >= 0 && said[d].Remaining < most-g.used[d] {
			return false
		}
	}
	return true
}

// lower records how much less the provider has left than the quota, given what is used. It
// returns the dimensions in which the difference has grown, and whether it has shrunk in any.
//
// An answer does not know of calls that have come after it, so with many under way
// some make too little of it. Of a minute the strictest counts therefore: what is
// missing comes back by itself soon enough. Of a day the last does.
func (m *model) lower(q *state.Quota, said *providerLimits, used *[state.Dimensions]int64, now int64) (more []state.Dimension, less bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e feedback.Elsewhere
	if before := m.elsewhere.Load(); before != nil {
		e = *before
	}
	was := e.At(now)
	for d := range state.Dimensions {
		reset := said.reset(d)
		if *q.Max(d) == 0 || said[d].Remaining < 0 || reset <= 0 {
			continue
		}
		n := max(int64(*q.Max(d))-used[d]-min(said[d].Remaining, state.MaxQuota), 0)
		switch {
		case n > was.N[d]:
			more = append(more, d)
		case !d.OfDay():
			continue
		}
		less = less || n < was.N[d]
		e[d] = feedback.Absence{N: n, From: now, Until: now + int64(reset)}
	}
	if after := e.At(now); after.None() {
		m.elsewhere.Store(nil)
	} else {
		stays := e // it is stored seldom, and only then allocated
		m.elsewhere.Store(&stays)
	}
	return more, less
}

// Lower is [admission.Gate]'s: with less where the provider has less.
func (m *model) Lower(r *admission.Rules, now int64) *admission.Rules {
	e := m.elsewhere.Load()
	if e == nil {
		return r
	}
	less := e.At(now)
	if less.None() {
		m.elsewhere.CompareAndSwap(e, nil)
		return r
	}
	lower := r.Lowered(func(l *admission.Limit) int64 { return leftOf(l, &less) })
	lower.Setup = &setup{setupOf(r).quota, &less}
	return lower
}

// leftOf returns the count of a limit without what is missing of it. At least one is left, so
// that somebody finds out when there is more again.
func leftOf(l *admission.Limit, less *feedback.Missing) int64 {
	if l.Free {
		return l.Limit.Count()
	}
	return max(l.Limit.Count()-less.N[l.ID], 1)
}

// Reconsider is [admission.Gate]'s: what is used leaves, and what is missing comes back.
func (m *model) Reconsider(ctx context.Context, e *admission.Engine, o *admission.Outcome, s *admission.Standing, ask *admission.Ask) error {
	r := s.Rules()
	less := setupOf(r).missing
	if less == nil {
		return nil
	}
	accounts, at, err := e.Read(ctx, m.scope)
	if err != nil {
		return err
	}
	for i := range s.Len() {
		l, said := o.At(s, i)
		if !said.Allowed && !l.Free && less.N[l.ID] > 0 {
			d := state.Dimension(l.ID)
			w := without{less, d, int64(*setupOf(r).quota.Max(d)), r.Amount(l.Unit, ask)}
			said.RetryAfter = max(w.retry(l.Limit, said, accounts[l.Unit], at), 1) // something may have been given back since
		}
	}
	return nil
}

// without is a call of n that a dimension denies while the provider has less left than the quota.
type without struct {
	missing *feedback.Missing
	dim     state.Dimension
	max, n  int64
}

// retry returns when the dimension lets the call pass.
func (w *without) retry(l limit.Limit, said *limit.Verdict, account *limit.Account, now int64) time.Duration {
	if w.n > w.max {
		return Never
	}
	earliest := Never
	try := func(at time.Duration, freed int64) {
		switch rest := said.Used - freed + w.n; {
		case rest <= 1: // which is always left
			earliest = min(earliest, at)
		case rest <= w.max:
			earliest = min(earliest, max(at, w.missing.When(int(w.dim), w.max-rest)))
		}
	}
	try(0, 0)
	if w.dim.OfDay() {
		try(said.ResetAfter, said.Used)
		return earliest
	}
	freed, since := int64(0), now-int64(l.Period())
	for at, n := range account.Entries() {
		leaves := time.Duration(at - since)
		if leaves <= 0 {
			continue
		}
		if leaves >= earliest {
			break
		}
		freed += n
		try(leaves, freed)
	}
	return earliest
}
