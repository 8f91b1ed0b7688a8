package store

import (
	"context"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// memoryReceipt is the receipt of a take.
type memoryReceipt struct {
	store   *Memory
	taken   []taken
	settled atomic.Bool
	room    [4]taken // for what most takes take
}

// taken is what a take has taken of one key.
type taken struct {
	*prepared
	limit.Receipt
}

// few is how many charges most takes have at most, and fewLimits how many limits. More of them need more memory.
const (
	few       = 12
	fewLimits = 24
)

// Take is [Store]'s.
func (m *Memory) Take(ctx context.Context, charges []Charge) (Receipt, []limit.Decision, error) {
	if err := check(ctx, charges); err != nil {
		return nil, nil, err
	}
	now := m.clock()
	r := &memoryReceipt{store: m}
	all, locked := ready(charges, r.room[:0])
	now, err := m.lockAt(locked, now)
	if err != nil {
		return nil, nil, err
	}
	var room [few]*entry
	var said [fewLimits]limit.Verdict
	entries, verdicts, allowed := m.ask(charges, all, now, room[:0], said[:0])
	if allowed {
		m.charge(all, entries, now)
	} else {
		m.deny(all, now, verdicts)
	}
	m.unlock(locked)
	m.sweep(now)
	decisions := decisionsOf(charges, verdicts)
	if !allowed {
		return nil, decisions, nil
	}
	r.taken = all
	return r, decisions, nil
}

// ready appends what charges, which are valid, take of their keys, and returns the set of their shards.
func ready(charges []Charge, all []taken) (_ []taken, locked uint64) {
	for i := range charges {
		c := &charges[i]
		p := c.prepared
		if !c.isPrepared() {
			p = &prepared{key: c.Key, hash: hashOf(c.Key), shard: shardOf(c.Key)}
		}
		all = append(all, taken{prepared: p, Receipt: limit.Receipt{N: c.N}})
		locked |= 1 << p.shard
	}
	return all, locked
}

// ask appends the entries of all keys, and the verdicts of all limits, and reports whether all of them allow.
func (m *Memory) ask(charges []Charge, all []taken, now int64, entries []*entry, verdicts []limit.Verdict) ([]*entry, []limit.Verdict, bool) {
	var unused limit.Account
	allowed := true
	for i := range all {
		t, at := &all[i], len(verdicts)
		e := m.entryOf(t.prepared)
		entries = append(entries, e)
		a := e.purse.Asked(now, &unused)
		if t.plan == nil {
			t.plan = a.PlanOf(charges[i].Limits)
		}
		verdicts = grow(verdicts, t.plan)
		if !a.Ask(t.plan, now, t.N, verdicts[at:]) {
			allowed = false
		}
	}
	return entries, verdicts, allowed
}

// charge charges the accounts of entries after all limits have allowed it.
func (m *Memory) charge(all []taken, entries []*entry, now int64) {
	for i := range all {
		t, e := &all[i], entries[i]
		if e.next == gone { // an entry of the key may have been added since
			e = m.entryOf(t.prepared)
		}
		e.purse.Charge(t.plan, now, t.N, &t.Receipt)
		m.keep(t.prepared, e, now)
	}
}

// deny corrects the verdicts after a limit has denied: those that allow say how much
// remains while nothing is taken.
func (m *Memory) deny(all []taken, now int64, verdicts []limit.Verdict) {
	var unused limit.Account
	for i := range all {
		t := &all[i]
		m.entryOf(t.prepared).purse.Asked(now, &unused).Deny(t.plan, now, t.N, verdicts)
		verdicts = verdicts[len(t.plan.Limits()):]
	}
}

// Peek is [Store]'s.
func (m *Memory) Peek(ctx context.Context, charges []Charge) ([]limit.Decision, error) {
	if err := check(ctx, charges); err != nil {
		return nil, err
	}
	now := m.clock()
	var room [few]taken
	all, locked := ready(charges, room[:0])
	now, err := m.lockAt(locked, now)
	if err != nil {
		return nil, err
	}
	var unused limit.Account
	var said [fewLimits]limit.Verdict
	verdicts := said[:0]
	for i := range all {
		t, a, at := &all[i], &unused, len(verdicts)
		if e := m.lookUp(t.prepared); e != nil {
			a = e.purse.Peeked()
		}
		if t.plan == nil {
			t.plan = a.PlanOf(charges[i].Limits)
		}
		verdicts = grow(verdicts, t.plan)
		a.Peek(t.plan, now, t.N, verdicts[at:])
	}
	m.unlock(locked)
	return decisionsOf(charges, verdicts), nil
}

// grow appends a verdict for each limit of a plan, to be filled in.
func grow(verdicts []limit.Verdict, p *limit.Plan) []limit.Verdict {
	n := len(verdicts) + len(p.Limits())
	if n > cap(verdicts) {
		verdicts = append(make([]limit.Verdict, 0, n+fewLimits), verdicts...)
	}
	return verdicts[:n]
}

// decisionsOf returns the verdicts of the limits of charges, in order, as decisions.
func decisionsOf(charges []Charge, verdicts []limit.Verdict) []limit.Decision {
	if len(verdicts) == 0 {
		return nil
	}
	decisions := make([]limit.Decision, 0, len(verdicts))
	for i := range charges {
		for _, l := range charges[i].Limits {
			decisions = append(decisions, verdicts[len(decisions)].By(l))
		}
	}
	return decisions
}

// Renew takes once more what was taken at some places of a receipt: see package accounts.
func (m memoryInternals) Renew(_ context.Context, r Receipt, places []int) (Receipt, error) {
	own, ok := r.(*memoryReceipt)
	if !ok || own.store != m.Memory {
		return nil, nil
	}
	next := &memoryReceipt{store: m.Memory}
	var locked uint64
	for _, i := range places {
		next.taken = append(next.taken, own.taken[i])
		locked |= 1 << own.taken[i].shard
	}
	now, err := m.lockNow(locked)
	if err != nil {
		return nil, err
	}
	entries := make([]*entry, len(places))
	for k := range next.taken {
		t := &next.taken[k]
		entries[k] = m.entryOf(t.prepared)
		entries[k].purse.Correct(t.plan, &t.Receipt, now, 0)
	}
	m.charge(next.taken, entries, now)
	m.unlock(locked)
	return next, nil
}

// Settle is [Store]'s.
func (m *Memory) Settle(ctx context.Context, r Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	_, err := m.settle(r, actual)
	return err
}

// settle settles a take. It reports whether it was the first to do so.
//
// It reads the clock only if there is a bucket among the limits. For logs and windows the time of the last
// decision will do: an entry that has left its window since then will have left it at the next decision.
func (m *Memory) settle(r Receipt, actual []int64) (first bool, err error) {
	receipt, ok := r.(*memoryReceipt)
	switch {
	case !ok || receipt.store != m || len(actual) != len(receipt.taken):
		return false, ErrReceipt
	case m.closed.Load():
		return false, ErrClosed
	case !receipt.settled.CompareAndSwap(false, true):
		return false, nil
	}
	var locked uint64
	buckets := false
	for i := range receipt.taken {
		if t := &receipt.taken[i]; t.differs(actual[i]) {
			locked |= 1 << t.shard
			buckets = buckets || t.plan.Buckets()
		}
	}
	switch {
	case locked == 0:
		return true, nil
	case buckets:
		_, err = m.lockNow(locked)
	default:
		err = m.lock(locked)
	}
	if err != nil {
		return false, err
	}
	for i := range receipt.taken {
		if t := &receipt.taken[i]; t.differs(actual[i]) {
			e, now := m.entryOf(t.prepared), m.shards[t.shard].seen
			e.purse.Correct(t.plan, &t.Receipt, now, actual[i])
			m.keep(t.prepared, e, now)
		}
	}
	m.unlock(locked)
	return true, nil
}

// differs reports whether the amount that was used is known, and not the one that was taken.
func (t *taken) differs(actual int64) bool { return actual >= 0 && actual != t.N }
