package ratelimit

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// elsewhere is what others use of a model's quotas, with the same account, as the
// provider has told: of each dimension an amount that was missing at a time, and
// comes back evenly until none is missing, as a provider's bucket fills.
type elsewhere [dimensions]struct{ n, from, until int64 }

// missing is what is missing at one time, and for how much longer.
type missing [dimensions]struct {
	n    int64
	left time.Duration
}

// heedOthers compares what the provider has left with what the model's quota has.
func (rl *RateLimiter) heedOthers(ctx context.Context, m *model, windows []llm.Window) {
	r, now := m.rules.Load(), rl.clock()
	var o outcome
	if rl.shared == nil {
		m.stats(now, &o)
	} else if err := rl.shared.peek(ctx, m, r, &amounts{}, &o); err != nil {
		return // those who ask the store for a call will say so
	}
	var e elsewhere
	before := m.elsewhere.Load()
	if before != nil {
		e = *before
	}
	was := e.at(now)
	for _, w := range windows {
		d, ok := dimensionOf(w)
		reset := w.Reset
		if reset <= 0 && w.Per == time.Minute {
			reset = w.Per
		}
		if !ok || r.max[d] == 0 || w.Remaining < 0 || reset <= 0 {
			continue
		}
		e[d].n, e[d].from, e[d].until = max(r.max[d]-o.used[d]-w.Remaining, 0), now, now+int64(reset)
		if was == nil && e[d].n > 0 || was != nil && e[d].n > was[d].n {
			rl.observeProvider(ctx, Event{Kind: EventLowered, Model: m.name, Limit: facts[d].name, Said: w.Remaining, RetryAfter: reset})
		}
	}
	if before == nil && e.at(now) == nil {
		return
	}
	m.elsewhere.Store(&e)
	m.line.Wake() // there may be more than they were told
}

// at returns what is missing at a time, or nil for nothing.
func (e *elsewhere) at(now int64) *missing {
	var m missing
	for d := range e {
		each := &e[d]
		left := uint64(each.until - max(now, each.from))
		if now >= each.until || each.n == 0 {
			continue
		}
		hi, lo := bits.Mul64(uint64(each.n), left)
		n, rest := bits.Div64(hi, lo, uint64(each.until-each.from))
		if rest > 0 {
			n++
		}
		m[d].n, m[d].left = int64(n), time.Duration(left)
	}
	if m == (missing{}) {
		return nil
	}
	return &m
}

// rulesAt returns the model's rules at a time: with less where the provider has
// less.
func (m *model) rulesAt(now int64) *rules {
	r, e := m.rules.Load(), m.elsewhere.Load()
	if e == nil {
		return r
	}
	less := e.at(now)
	if less == nil {
		m.elsewhere.CompareAndSwap(e, nil)
		return r
	}
	return r.without(less)
}

// without returns the rules without what is missing. At least one is left of each
// maximum, so that somebody finds out when there is more again.
func (r *rules) without(less *missing) *rules {
	lower := *r
	lower.missing = less
	lower.limited = slices.Clone(r.limited)
	for i := range lower.limited {
		most := &lower.limited[i]
		most.max = max(most.max-less[most.dim].n, 1)
	}
	lower.charged = slices.Clone(r.charged)
	for i := range lower.charged {
		c := &lower.charged[i]
		c.limits, c.looked = slices.Clone(c.limits), slices.Clone(c.looked)
		for k, d := range c.dims {
			if r.max[d] > 0 && less[d].n > 0 {
				c.limits[k] = c.limits[k].WithCount(max(r.max[d]-less[d].n, 1))
				c.looked[k] = c.limits[k]
			}
		}
	}
	return &lower
}

// after returns when so much of what is missing has come back, or all of it.
func (m *missing) after(d dimension, much int64) time.Duration {
	each := &m[d]
	if much >= each.n {
		return each.left
	}
	hi, lo := bits.Mul64(uint64(each.left), uint64(much))
	t, rest := bits.Div64(hi, lo, uint64(each.n))
	if rest > 0 {
		t++
	}
	return time.Duration(t)
}

// relent corrects when a request passes, by a store's word, that does not know of
// what comes back: it may be sooner.
func (o *outcome) relent(ask *amounts) {
	m := o.rules.missing
	if m == nil || !o.denied {
		return
	}
	for d := range m {
		d, n := dimension(d), ask[facts[d].unit]
		if m[d].n == 0 || o.retry[d] == 0 || n > o.rules.max[d] {
			continue
		}
		excess := o.used[d] + n - max(o.rules.max[d]-m[d].n, 1)
		o.retry[d] = min(o.retry[d], m.after(d, excess))
	}
}
