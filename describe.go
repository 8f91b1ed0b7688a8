package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// A store says to a take what is left of each limit, in one go. From that follows
// what is used, but for debts, and for when a day began. To read all that is in a
// log takes long, so it is done only where nothing else tells.

// hear enters what a store says to a take. It returns what is not about the model.
func (o *outcome) hear(r *rules, ask *amounts, decisions []limit.Decision) (rest []limit.Decision) {
	o.rules = r
	allowed := store.Allowed(decisions)
	for _, c := range r.charged {
		taken := allowed && ask[c.unit] > 0
		for k, d := range c.dims {
			o.enter(d, &decisions[k])
			switch full := decisions[k].Remaining == 0 && !taken; {
			case d.ofDay():
				began := d == rpd && taken && o.used[d] == ask[c.unit]
				o.vague = o.vague || full || began
			case full:
				o.full = true
			}
		}
		decisions = decisions[len(c.dims):]
	}
	return decisions
}

// see enters what a store says to a look, at what rules want to be looked at.
func (o *outcome) see(r *rules, decisions []limit.Decision) {
	o.rules = r
	for _, c := range r.charged {
		for k, d := range c.dims {
			o.enter(d, &decisions[k])
			o.vague = o.vague || d.ofDay() && decisions[k].Remaining == 0
		}
		if n := len(c.dims); n < len(c.looked) {
			o.used[c.log] = boundless - decisions[n].Remaining
		}
		decisions = decisions[len(c.looked):]
	}
}

func (o *outcome) enter(d dimension, said *limit.Decision) {
	if !said.Allowed {
		o.deny(d, said.RetryAfter)
	}
	o.used[d] = said.Limit.Count() - said.Remaining
	if o.used[d] > maxQuota { // a store that has lost the others' part of what is boundless
		o.vague = true
	}
	if d == rpd {
		o.dayLeft = said.ResetAfter
	}
}

// peek says what a take would, and exactly what is used of logs.
func (s *shared) peek(ctx context.Context, m *model, r *rules, ask *amounts, o *outcome) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	list := charges(m.name, r, ask)
	if len(list) == 0 { // it is for no model
		o.rules = r
		return nil
	}
	for i := range list {
		list[i].Limits = r.charged[i].looked
	}
	decisions, err := s.store.Peek(ctx, list)
	if err == nil {
		o.see(r, decisions)
	}
	return err
}

// study is peek by all that a store knows: debts deny even those who ask for
// nothing.
func (s *shared) study(ctx context.Context, m *model, r *rules, ask *amounts, o *outcome) error {
	u, at, err := s.usage(ctx, m.name, r)
	if err != nil {
		return err
	}
	u.look(r, at, ask, o)
	m.seeDay(u.days[ofRequests].at(at), at)
	return nil
}

// describe completes what is used. It asks the store only where that is not known
// yet.
func (s *shared) describe(m *model, o *outcome) error {
	ctx := context.Background()
	if o.full && !o.vague {
		var now outcome
		if err := s.peek(ctx, m, o.rules, &amounts{}, &now); err != nil {
			return err
		}
		o.used, o.dayLeft, o.vague = now.used, now.dayLeft, now.vague
	}
	if !o.vague && m.recallDay(o) {
		return nil
	}
	var now outcome
	if err := s.study(ctx, m, o.rules, &amounts{}, &now); err != nil {
		return err
	}
	o.used, o.dayStart = now.used, now.dayStart
	return nil
}

// stats says what is used, or at least of how much.
func (s *shared) stats(m *model, o *outcome) error {
	o.rules = m.rules.Load()
	if err := s.peek(context.Background(), m, o.rules, &amounts{}, o); err != nil {
		return err
	}
	return s.describe(m, o)
}

// seenDay is a day of requests as it was last seen in a store. An answer says how
// long its day lasts, by which it is known again.
type seenDay struct {
	start int64 // by the store's clock
	end   int64 // by the limiter's
}

// sameDay is by how much the ends of a day may differ, for the time that answers
// are under way and for clocks that drift. So where other machines have given
// back all of a day and begun it anew at once, it is that much off.
const sameDay = 100 * time.Millisecond

// seeDay notes the day that a store has shown at a time of its clock.
func (m *model) seeDay(d day, at int64) {
	m.day.Store(&seenDay{d.start, m.limiter.clock() + d.end - at})
}

// recallDay completes when the day began, if that is known.
func (m *model) recallDay(o *outcome) bool {
	if o.dayLeft == 0 { // nothing is used of it
		return true
	}
	seen := m.day.Load()
	if seen == nil {
		return false
	}
	off := time.Duration(m.limiter.clock() + int64(o.dayLeft) - seen.end)
	if off.Abs() > sameDay {
		return false
	}
	o.dayStart = seen.start
	return true
}
