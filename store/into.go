package store

import (
	"context"

	"dappco.re/go/core/go-ratelimit/limit"
)

// TakeInto is Take of prepared charges. It appends the decisions of all limits to
// decisions, notes in h what SettleHold must know, and reports whether all limits
// allow. Neither the charges, nor the decisions, nor h are kept.
func (m *Memory) TakeInto(ctx context.Context, charges []Amount, decisions []limit.Decision, h *Hold) (_ []limit.Decision, allowed bool, err error) {
	if err := checkPrepared(ctx, charges); err != nil {
		return decisions, false, err
	}
	var room [maxFew]*entry
	entries := room[:]
	if len(charges) > len(room) {
		entries = make([]*entry, len(charges))
	}
	now := m.clock() // read before the shards are locked, so that they are locked for a shorter time
	locked := shardsOf(charges)
	if err := m.lock(locked); err != nil {
		return decisions, false, err
	}
	now = m.timeOf(locked, now)
	first := len(decisions)
	allowed = true
	for i := range charges {
		p, at := charges[i].Of.prepared, len(decisions)
		entries[i] = m.entryOf(p)
		a := entries[i].purse.Account()
		if p.plan == nil {
			p.plan = a.PlanOf(charges[i].Of.Limits)
		}
		decisions = grow(decisions, p.plan)
		if !a.Ask(p.plan, now, charges[i].N, decisions[at:]) {
			allowed = false
		}
	}
	if allowed {
		m.charge(charges, entries, now, h)
	} else {
		deny(charges, entries, now, decisions[first:])
	}
	m.unlock(locked)
	m.sweep(now)
	return decisions, allowed, nil
}

// charge charges the accounts of the entries after all limits have allowed it.
func (m *Memory) charge(charges []Amount, entries []*entry, now int64, h *Hold) {
	h.begin(charges, now)
	for i := range charges {
		p, e := charges[i].Of.prepared, entries[i]
		var r limit.Receipt
		e.purse.Account().Charge(p.plan, now, charges[i].N, &r)
		h.keep(i, &r)
		m.keep(p, e, now)
	}
}

// deny corrects the decisions after a limit has denied: those that allow say how much
// remains while nothing is taken.
func deny(charges []Amount, entries []*entry, now int64, decisions []limit.Decision) {
	for i := range charges {
		plan := charges[i].Of.prepared.plan
		entries[i].purse.Account().Deny(plan, now, charges[i].N, decisions)
		decisions = decisions[len(plan.Limits()):]
	}
}

// PeekInto is Peek of prepared charges. It appends the decisions of all limits to
// decisions, and reports whether all limits allow. Neither the charges nor the
// decisions are kept.
func (m *Memory) PeekInto(ctx context.Context, charges []Amount, decisions []limit.Decision) (_ []limit.Decision, allowed bool, err error) {
	if err := checkPrepared(ctx, charges); err != nil {
		return decisions, false, err
	}
	now := m.clock()
	locked := shardsOf(charges)
	if err := m.lock(locked); err != nil {
		return decisions, false, err
	}
	now = m.timeOf(locked, now)
	allowed = true
	var unused limit.Account
	for i := range charges {
		p, a, at := charges[i].Of.prepared, &unused, len(decisions)
		if e := m.lookUp(p); e != nil {
			a = e.purse.Account()
		}
		if p.plan == nil {
			p.plan = a.PlanOf(charges[i].Of.Limits)
		}
		decisions = grow(decisions, p.plan)
		if !a.Peek(p.plan, now, charges[i].N, decisions[at:]) {
			allowed = false
		}
	}
	m.unlock(locked)
	return decisions, allowed, nil
}

// grow appends a decision for each limit of a plan, to be filled in.
func grow(decisions []limit.Decision, p *limit.Plan) []limit.Decision {
	n := len(decisions) + len(p.Limits())
	if n > cap(decisions) {
		decisions = append(make([]limit.Decision, 0, n+maxFew), decisions...)
	}
	return decisions[:n]
}

// SettleHold is Settle of the take that h was given to. taken is what was taken, and actual
// what was used of each charge: a negative number leaves what was taken. Call it at most
// once for each take. A store that is closed settles nothing.
//
// SettleHold reads the clock only if there is a bucket among the limits. For logs and
// windows the time of the last decision will do: an entry that has left its window
// since then will have left it at the next decision.
func (m *Memory) SettleHold(h *Hold, taken []Amount, actual []int64) {
	var locked uint64
	buckets := false
	for i := range taken {
		if taken[i].differs(actual[i]) {
			p := taken[i].Of.prepared
			locked |= 1 << p.shard
			buckets = buckets || p.plan.Buckets()
		}
	}
	if locked == 0 || m.lock(locked) != nil {
		return
	}
	if buckets {
		m.timeOf(locked, m.clock())
	}
	for i := range taken {
		if taken[i].differs(actual[i]) {
			p, r := taken[i].Of.prepared, h.receipt(i, taken[i].N)
			e, now := m.entryOf(p), m.shards[p.shard].seen
			e.purse.Account().Correct(p.plan, &r, now, actual[i])
			m.keep(p, e, now)
		}
	}
	m.unlock(locked)
}

// differs reports whether the amount that was used is known, and not the one that was
// taken.
func (a *Amount) differs(actual int64) bool { return actual >= 0 && actual != a.N }
