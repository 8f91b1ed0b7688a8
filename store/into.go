package store

import (
	"context"
	"math/bits"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// TakeInto is Take of prepared charges. It appends what each limit says to
// decisions, notes in h what SettleHold needs, and reports whether all limits
// allow.
func (m *Memory) TakeInto(ctx context.Context, charges []Charge, decisions []limit.Decision, h *Hold) (_ []limit.Decision, allowed bool, err error) {
	h.charges = 0
	if err := checkPrepared(ctx, charges); err != nil {
		return decisions, false, err
	}
	var room [few]*entry
	entries := room[:]
	if len(charges) > few {
		entries = make([]*entry, len(charges))
	}
	now := m.clock() // before the locks, so that they are held for a shorter time
	locked := shardsOf(charges)
	if err := m.lock(locked); err != nil {
		return decisions, false, err
	}
	now = m.timeOf(locked, now)
	first := len(decisions)
	allowed = true
	for i := range charges {
		p, at := charges[i].prepared, len(decisions)
		entries[i] = m.entryOf(p)
		a := entries[i].purse.Account()
		if p.plan == nil {
			p.plan = a.PlanOf(charges[i].Limits)
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

// charge charges what all limits have allowed.
func (m *Memory) charge(charges []Charge, entries []*entry, now int64, h *Hold) {
	held := h.begin(len(charges), now)
	for i := range charges {
		p, e := charges[i].prepared, entries[i]
		a := e.purse.Account()
		held[i].prepared, held[i].Mark = p, a.Charge(p.plan, now, charges[i].N)
		if p.plan.Buckets() {
			h.buckets = a.AppendReceipts(p.plan, now, charges[i].N, h.buckets)
		}
		m.keep(p, e, now)
	}
}

// deny lets the limits that allow say what remains while nothing is taken.
func deny(charges []Charge, entries []*entry, now int64, decisions []limit.Decision) {
	for i := range charges {
		p := charges[i].prepared
		entries[i].purse.Account().Deny(p.plan, now, charges[i].N, decisions)
		decisions = decisions[len(p.plan.Limits()):]
	}
}

// PeekInto is Peek of prepared charges. It appends what each limit says to
// decisions, and reports whether all limits allow.
func (m *Memory) PeekInto(ctx context.Context, charges []Charge, decisions []limit.Decision) (_ []limit.Decision, allowed bool, err error) {
	if err := checkPrepared(ctx, charges); err != nil {
		return decisions, false, err
	}
	now := m.clock() // before the locks, so that they are held for a shorter time
	locked := shardsOf(charges)
	if err := m.lock(locked); err != nil {
		return decisions, false, err
	}
	now = m.timeOf(locked, now)
	allowed = true
	var unused limit.Account
	for i := range charges {
		p, a := charges[i].prepared, &unused
		if e := m.lookUp(p); e != nil {
			a = e.purse.Account()
		}
		if p.plan == nil {
			p.plan = a.PlanOf(charges[i].Limits)
		}
		at := len(decisions)
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
		decisions = slices.Grow(decisions, max(len(p.Limits()), few))
	}
	return decisions[:n]
}

// SettleHold is Settle of what TakeInto has noted in h: one amount for each
// charge, or a negative one to leave what was taken. Only the first call after a
// take does anything. Two goroutines must not call it with one Hold at a time.
//
// It reads no clock, unless there is a bucket among the limits: what has left its
// window since the last decision will have left it at the next.
func (m *Memory) SettleHold(h *Hold, actual []int64) {
	held := h.held()
	h.charges = 0
	var locked uint64
	for i := range held {
		if held[i].changes(actual[i]) {
			locked |= 1 << held[i].shard
		}
	}
	if locked == 0 {
		return
	}
	if m.lock(locked) != nil {
		return
	}
	if len(h.buckets) > 0 {
		m.timeOf(locked, m.clock())
	}
	buckets := h.buckets
	for i := range held {
		p := held[i].prepared
		var receipts []limit.BucketReceipt
		if p.plan.Buckets() {
			receipts, buckets = buckets[:len(p.plan.Limits())], buckets[len(p.plan.Limits()):]
		}
		if held[i].changes(actual[i]) {
			e, now := m.entryOf(p), m.shards[p.shard].seen
			e.purse.Account().Correct(p.plan, held[i].Mark, receipts, h.at, now, actual[i])
			m.keep(p, e, now)
		}
	}
	m.unlock(locked)
}

// changes reports whether settling a charge as actual changes what it has taken.
func (h *held) changes(actual int64) bool { return actual >= 0 && actual != h.N }

// shardsOf returns the shards of prepared charges, as bits.
func shardsOf(charges []Charge) (set uint64) {
	for i := range charges {
		set |= 1 << charges[i].prepared.shard
	}
	return set
}

// lock locks the shards of a set, in one order whatever the caller's, unless the
// store is closed.
func (m *Memory) lock(set uint64) error {
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].mu.Lock()
	}
	if m.closed.Load() {
		m.unlock(set)
		return ErrClosed
	}
	return nil
}

// timeOf returns the time of a decision in shards that are locked. It is now, which
// may have been read before they were. Where another call has read a later time
// meanwhile, it is read again: then it is earlier only if the clock went back.
func (m *Memory) timeOf(set uint64, now int64) int64 {
	for rest := set; rest != 0; rest &= rest - 1 {
		if now < m.shards[bits.TrailingZeros64(rest)%shards].seen {
			now = m.clock()
			break
		}
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].seen = now
	}
	return now
}

func (m *Memory) unlock(set uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].mu.Unlock()
	}
}

// lookUp returns the entry of a prepared key, whose shard is locked, or nil.
func (m *Memory) lookUp(p *prepared) *entry {
	mine := p.owner.Load() == m
	if mine && p.entry != nil && p.entry.next != gone {
		return p.entry
	}
	e := m.shards[p.shard].table.find(p.hash, p.key)
	if e != nil && (mine || p.owner.CompareAndSwap(nil, m)) {
		p.entry = e
	}
	return e
}

// entryOf returns the entry of a prepared key, whose shard is locked. One that is
// new is not in the table yet: see keep.
func (m *Memory) entryOf(p *prepared) *entry {
	if e := m.lookUp(p); e != nil {
		return e
	}
	if !p.owner.CompareAndSwap(nil, m) && p.owner.Load() != m {
		return &entry{key: p.key, next: gone}
	}
	if p.entry == nil {
		p.entry = new(entry)
	}
	*p.entry = entry{key: p.key, next: gone}
	return p.entry
}

// keep remembers an entry that is new, if anything of it is in use.
func (m *Memory) keep(p *prepared, e *entry, now int64) {
	if e.next == gone && now < e.purse.FullAt() {
		m.shards[p.shard].table.add(p.hash, e, now)
	}
}
