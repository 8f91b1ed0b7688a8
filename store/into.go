package store

import (
	"context"

	"dappco.re/go/core/go-ratelimit/limit"
)

// TakeInto is Take of prepared charges. It appends the verdicts of all limits to
// verdicts, notes in h what SettleHold must know, and reports whether all limits
// allow. Neither the charges, nor the verdicts, nor h are kept. Unlike Take, it does not
// check that every key is charged once.
func (m *Memory) TakeInto(ctx context.Context, charges []Amount, verdicts []limit.Verdict, h *Hold) (_ []limit.Verdict, allowed bool, err error) {
	return m.TakeIntoAt(ctx, m.clock(), charges, verdicts, h)
}

// TakeIntoAt is TakeInto for a caller that has just read the time from Now.
func (m *Memory) TakeIntoAt(ctx context.Context, now int64, charges []Amount, verdicts []limit.Verdict, h *Hold) (_ []limit.Verdict, allowed bool, err error) {
	locked, err := checkPrepared(ctx, charges)
	if err != nil {
		return verdicts, false, err
	}
	now, err = m.lockAt(locked, now)
	if err != nil {
		return verdicts, false, err
	}
	var unused limit.Account
	var room [maxFew]*entry
	entries, first := room[:0], len(verdicts)
	allowed = true
	buckets := false
	for i := range charges {
		c, at := &charges[i], len(verdicts)
		p := c.Of.prepared
		e := m.entryOf(p)
		entries = append(entries, e)
		a := e.purse.Asked(now, &unused)
		if p.plan == nil {
			p.plan = a.PlanOf(c.Of.Limits)
		}
		verdicts = grow(verdicts, p.plan)
		if !a.Ask(p.plan, now, c.N, verdicts[at:]) {
			allowed = false
		}
		buckets = buckets || p.plan.Buckets()
	}
	if allowed {
		h.begin(len(charges), buckets, now)
		m.charge(charges, entries, now, h)
	} else {
		m.deny(charges, now, verdicts[first:])
	}
	m.unlock(locked)
	m.sweep(now)
	return verdicts, allowed, nil
}

// charge charges the accounts of entries after all limits have allowed it.
func (m *Memory) charge(charges []Amount, entries []*entry, now int64, h *Hold) {
	for i := range charges {
		p, e := charges[i].Of.prepared, entries[i]
		if e.next == gone { // an entry of the key may have been added since
			e = m.entryOf(p)
		}
		var r limit.Receipt
		e.purse.Charge(p.plan, now, charges[i].N, &r)
		h.keep(i, &r)
		m.keep(p, e, now)
	}
}

// Record charges amounts of prepared charges that were used without a take, whatever their
// limits say.
func (m *Memory) Record(ctx context.Context, charges []Amount) error {
	locked, err := checkPrepared(ctx, charges)
	if err != nil {
		return err
	}
	var room [few]limit.Verdict
	now, err := m.lockNow(locked)
	if err != nil {
		return err
	}
	for i := range charges {
		p, n := charges[i].Of.prepared, charges[i].N
		e := m.entryOf(p)
		if a := e.purse.Account(); a.Ask(p.plan, now, n, grow(room[:0], p.plan)) {
			a.Charge(p.plan, now, n, nil)
		} else {
			a.Settle(p.plan.Limits(), limit.Receipt{At: now}, now, n) // a debt
		}
		m.keep(p, e, now)
	}
	m.unlock(locked)
	m.sweep(now)
	return nil
}

// deny corrects the verdicts after a limit has denied: those that allow say how much
// remains while nothing is taken.
func (m *Memory) deny(charges []Amount, now int64, verdicts []limit.Verdict) {
	var unused limit.Account
	for i := range charges {
		p := charges[i].Of.prepared
		m.entryOf(p).purse.Asked(now, &unused).Deny(p.plan, now, charges[i].N, verdicts)
		verdicts = verdicts[len(p.plan.Limits()):]
	}
}

// PeekInto is Peek of prepared charges. It appends the verdicts of all limits to
// verdicts, and reports whether all limits allow. Neither the charges nor the
// verdicts are kept.
func (m *Memory) PeekInto(ctx context.Context, charges []Amount, verdicts []limit.Verdict) (_ []limit.Verdict, allowed bool, err error) {
	locked, err := checkPrepared(ctx, charges)
	if err != nil {
		return verdicts, false, err
	}
	now, err := m.lockNow(locked)
	if err != nil {
		return verdicts, false, err
	}
	allowed = true
	var unused limit.Account
	for i := range charges {
		p, a, at := charges[i].Of.prepared, &unused, len(verdicts)
		if e := m.lookUp(p); e != nil {
			a = e.purse.Peeked()
		}
		if p.plan == nil {
			p.plan = a.PlanOf(charges[i].Of.Limits)
		}
		verdicts = grow(verdicts, p.plan)
		if !a.Peek(p.plan, now, charges[i].N, verdicts[at:]) {
			allowed = false
		}
	}
	m.unlock(locked)
	return verdicts, allowed, nil
}

// grow appends a verdict for each limit of a plan, to be filled in.
func grow(verdicts []limit.Verdict, p *limit.Plan) []limit.Verdict {
	n := len(verdicts) + len(p.Limits())
	if n > cap(verdicts) {
		verdicts = append(make([]limit.Verdict, 0, n+maxFew), verdicts...)
	}
	return verdicts[:n]
}

// Settlement is what a take has taken of a prepared charge, and what was used of it. A
// negative Actual leaves what was taken.
type Settlement struct {
	Of            *Charge
	Taken, Actual int64
}

// SettleHold is Settle of the take that h was given to, with a settlement of each of its
// charges. Call it at most once for each take. A store that is closed settles nothing.
//
// SettleHold reads the clock only if there is a bucket among the limits. For logs and
// windows the time of the last decision will do: an entry that has left its window
// since then will have left it at the next decision.
func (m *Memory) SettleHold(h *Hold, all []Settlement) {
	var locked uint64
	buckets := false
	for i := range all {
		if all[i].corrects() {
			p := all[i].Of.prepared
			locked |= 1 << p.shard
			buckets = buckets || p.plan.Buckets()
		}
	}
	var err error
	switch {
	case locked == 0:
		return
	case buckets:
		_, err = m.lockNow(locked)
	default:
		err = m.lock(locked)
	}
	if err != nil {
		return
	}
	for i := range all {
		if s := &all[i]; s.corrects() {
			p := s.Of.prepared
			var r limit.Receipt
			h.receipt(i, s.Taken, &r)
			e, now := m.entryOf(p), m.shards[p.shard].seen
			e.purse.Correct(p.plan, &r, now, s.Actual)
			m.keep(p, e, now)
		}
	}
	m.unlock(locked)
}

// corrects reports whether the amount that was used is known, and not the one that was
// taken.
func (s *Settlement) corrects() bool { return s.Actual >= 0 && s.Actual != s.Taken }
