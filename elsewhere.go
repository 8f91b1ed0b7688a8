package ratelimit

import (
	"context"
	"math/bits"
	"slices"
	"time"
)

// elsewhere is what others use of a model's quotas, with the same account, as the
// provider has told: of each dimension an amount that was missing at a time, and
// comes back evenly until none is missing, as a provider's bucket fills. Times are
// Unix nanoseconds of the limiter's clock.
type elsewhere [dimensions]absence

type absence struct{ n, from, until int64 }

// missing is what is missing at one time.
type missing struct {
	elsewhere
	now int64
	n   [dimensions]int64
}

// heedOthers compares what the provider has left with what the model's quota has.
func (rl *RateLimiter) heedOthers(ctx context.Context, m *model, said *standing) {
	r, now := m.rules.Load(), rl.clock()
	if !said.matters(r, m.elsewhere.Load() != nil) || m.elsewhere.Load() == nil && said.agrees(r, m.glance.Load(), now) {
		return
	}
	var o outcome
	if rl.shared == nil {
		m.statsAtProvider(now, &o)
	} else if err := rl.shared.peekAtProvider(ctx, m, r, &o); err != nil {
		return // those who ask the store for a call will say so
	}
	more, less := m.lower(r, said, &o, now)
	for _, d := range more {
		rl.observeProvider(ctx, Event{Kind: EventLowered, Model: m.name, Limit: facts[d].name, Said: said[d].Remaining, RetryAfter: said.reset(d)})
	}
	if less {
		m.line.Wake() // they were told to wait for longer
	}
}

// lookAtProvider is look for nothing, but says what the provider counts as used: of a
// minute nothing that is in the quota's margin. If that counted too, what others use
// would be taken for it.
func (u *usage) lookAtProvider(r *rules, now int64, o *outcome) {
	u.look(r, now, &amounts{}, o)
	if r.quota.Margin == 0 {
		return
	}
	for _, most := range r.limited {
		if !most.dim.ofDay() && most.dim != concurrent {
			o.used[most.dim] -= u.minute.usedBy(now-int64(time.Minute), most.unit)
		}
	}
}

// peekAtProvider is lookAtProvider over a store. With a margin it takes all of a log to
// know, so that is done once in a while; in between, what is in the margin counts too,
// which makes less of what is missing, and never more.
func (s *shared) peekAtProvider(ctx context.Context, m *model, r *rules, o *outcome) error {
	now, last := m.limiter.clock(), m.compared.Load()
	if r.quota.Margin == 0 || now-last < int64(fresh) || !m.compared.CompareAndSwap(last, now) {
		return s.peek(ctx, m, r, &amounts{}, o)
	}
	u, at, err := s.usage(ctx, m.name, r)
	if err == nil {
		u.lookAtProvider(r, at, o)
	}
	return err
}

// matters reports whether what the provider says can make a difference: it has less
// than all of a maximum, or it had.
func (said *standing) matters(r *rules, had bool) bool {
	return slices.ContainsFunc(r.limited, func(most maximum) bool {
		w := &said[most.dim]
		return w.Remaining >= 0 && (had || w.Remaining < most.max)
	})
}

// glance is what a store has said at a time that is used, when a call was last taken.
type glance struct {
	at   int64
	used [dimensions]int64
}

// lowerGlance takes what a call has given back off the last glance. Otherwise it would
// look as if the provider counted that, where others have used it since. A glance that
// knows of it already says too little then, and the store is asked once more.
func (m *model) lowerGlance(taken, used *amounts) {
	for {
		g := m.glance.Load()
		if g == nil {
			return
		}
		lower := *g
		for d := range lower.used {
			u := facts[d].unit
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
func (said *standing) agrees(r *rules, g *glance, now int64) bool {
	if g == nil || now-g.at > int64(fresh) {
		return false
	}
	return !slices.ContainsFunc(r.limited, func(most maximum) bool {
		w := &said[most.dim]
		return w.Remaining >= 0 && w.Remaining < most.max-g.used[most.dim]
	})
}

// lower enters what is missing of the quota, by what the provider has left and what
// is used. It returns the dimensions of which more is missing than before, and whether
// less is of any.
//
// An answer does not know of calls that have come after it, so with many under way
// some make too little of it. Of a minute the strictest counts therefore: what is
// missing comes back by itself soon enough. Of a day the last does.
func (m *model) lower(r *rules, said *standing, o *outcome, now int64) (more []dimension, less bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e elsewhere
	if before := m.elsewhere.Load(); before != nil {
		e = *before
	}
	was := e.at(now)
	for i := range r.limited {
		d, reset := r.limited[i].dim, said.reset(r.limited[i].dim)
		if said[d].Remaining < 0 || reset <= 0 {
			continue
		}
		n := max(r.max[d]-o.used[d]-min(said[d].Remaining, maxQuota), 0)
		switch {
		case n > was.n[d]:
			more = append(more, d)
		case !d.ofDay():
			continue
		}
		less = less || n < was.n[d]
		e[d] = absence{n, now, now + int64(reset)}
	}
	if after := e.at(now); after.none() {
		m.elsewhere.Store(nil)
	} else {
		stays := e // it is stored seldom, and only then allocated
		m.elsewhere.Store(&stays)
	}
	return more, less
}

func (m *missing) none() bool { return m.n == [dimensions]int64{} }

// at returns what is missing at a time.
func (e *elsewhere) at(now int64) missing {
	m := missing{elsewhere: *e, now: now}
	for d := range e {
		if a := &e[d]; now < a.until && a.n > 0 {
			m.n[d] = quotient(a.n, a.until-max(now, a.from), a.until-a.from)
		}
	}
	return m
}

// quotient returns n*by/of, rounded up. by is of at most.
func quotient(n, by, of int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(by))
	q, rest := bits.Div64(hi, lo, uint64(of))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// when returns how long it takes until no more than so much is missing.
func (m *missing) when(d dimension, most int64) time.Duration {
	a := m.elsewhere[d]
	if m.n[d] <= most {
		return 0
	}
	back := quotient(a.until-a.from, a.n-most, a.n) // since a.from
	return time.Duration(a.from + back - m.now)
}

// rulesAt returns the model's rules at a time: with less where the provider has
// less.
func (m *model) rulesAt(now int64) *rules {
	r, e := m.rules.Load(), m.elsewhere.Load()
	if e == nil {
		return r
	}
	if less := e.at(now); !less.none() {
		return r.without(less)
	}
	m.elsewhere.CompareAndSwap(e, nil)
	return r
}

// without returns the rules without what is missing. At least one is left of each
// maximum, so that somebody finds out when there is more again.
func (r *rules) without(less missing) *rules {
	lower := *r
	lower.missing = &less
	lower.limited = slices.Clone(r.limited)
	for i := range lower.limited {
		most := &lower.limited[i]
		most.max = max(most.max-less.n[most.dim], 1)
	}
	lower.charged = slices.Clone(r.charged)
	for i := range lower.charged {
		c := &lower.charged[i]
		c.limits, c.looked = slices.Clone(c.limits), slices.Clone(c.looked)
		for k, d := range c.dims {
			if r.max[d] > 0 && less.n[d] > 0 {
				c.limits[k] = c.limits[k].WithCount(max(r.max[d]-less.n[d], 1))
				c.looked[k] = c.limits[k]
			}
		}
	}
	return &lower
}

// retryWithout is retry of a dimension of which some is missing: what is used leaves,
// and what is missing comes back.
func (u *usage) retryWithout(r *rules, d dimension, n, used, now int64) time.Duration {
	earliest := Never
	try := func(at time.Duration, freed int64) {
		switch rest := used - freed + n; {
		case rest <= 1: // which is always left
			earliest = min(earliest, at)
		case rest <= r.max[d]:
			earliest = min(earliest, max(at, r.missing.when(d, r.max[d]-rest)))
		}
	}
	try(0, 0)
	if d.ofDay() {
		try(time.Duration(u.days[facts[d].unit].end-now), used)
		return earliest
	}
	freed := int64(0)
	for i := u.minute.first; i < u.minute.next; i++ {
		each := u.minute.use(i)
		at := time.Duration(each.at - now + r.quota.minute())
		if at >= earliest {
			break
		}
		freed += each.n[facts[d].unit]
		try(at, freed)
	}
	return earliest
}

// reconsider corrects when a request passes that a store has denied: it does not know
// of what comes back.
func (s *shared) reconsider(ctx context.Context, m *model, ask *amounts, o *outcome) error {
	if o.rules.missing == nil || !o.denied {
		return nil
	}
	u, at, err := s.usage(ctx, m.name, o.rules)
	if err != nil {
		return err
	}
	var exact outcome
	u.look(o.rules, at, ask, &exact)
	for d := range o.retry {
		if o.retry[d] > 0 && o.rules.missing.n[d] > 0 {
			o.retry[d] = max(exact.retry[d], 1) // something may have been given back since
		}
	}
	return nil
}
