package fair

import (
	"cmp"
	"slices"
	"time"
)

// Hold makes a quota one of what calls hold until they end, such as slots, and not of what they use in a period. It is
// called before any other method.
//
// Nothing of such a quota has to be foreseen or lent, because it comes back when a call ends: everybody may take what is
// free, unless it is beyond its share while another wants more that has not its share.
func (p *Pool) Hold(i int) {
	q := &p.quotas[i]
	q.held, q.period, q.steady = true, int64(time.Minute), int64(time.Second)
	p.shortest = min(p.shortest, q.period)
	p.top.parts[i].used = newRing(q.limit, true)
}

// Urgent reports whether calls wait for what others hold, here or elsewhere, so that other nodes should know of changes
// at once.
func (p *Pool) Urgent(now int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.quotas {
		if p.quotas[i].isWanted(now) {
			return true
		}
	}
	return false
}

// isWanted reports whether calls wait for the quota, which is one of what calls hold.
func (q *quota) isWanted(now int64) bool { return q.waiting > 0 || now < q.waitsTo }

// slides reports whether what was used of the quota comes back a period later.
func (q *quota) slides() bool { return q.resetAt == 0 && !q.held }

// heldBy returns whose share of what calls hold denies a call of a member, or nil. The member wants more by asking, even
// if none of its calls waits.
func (p *Pool) heldBy(m *node, i int, now, n int64) *node {
	q, t := &p.quotas[i], &m.parts[i]
	by := p.yieldsBy(m, i, now, n)
	if by != nil && t.waiting == 0 {
		t.waiting, q.shares.dirty = 1, true
		p.divide(i, now)
		by = p.yieldsBy(m, i, now, n)
		t.waiting, q.shares.dirty = 0, true
	}
	return cmp.Or(by, p.capped(m, i, now, n))
}

// yieldsBy returns the outermost of a member and those above it that has its share of what calls hold, beside a sibling
// that wants more and has not its share; nil: the call may have what is free.
func (p *Pool) yieldsBy(m *node, i int, now, n int64) *node {
	q := &p.quotas[i]
	if !q.isWanted(now) && p.top.parts[i].floor == 0 {
		return nil
	}
	lacks := func(o *node) bool {
		t := &o.parts[i]
		held := t.usedAt(now)
		return q.fine(held) < t.floor || t.waits > 0 && t.fits(q, held, max(t.size, 1))
	}
	return m.outermost(func(x *node) bool {
		t := &x.parts[i]
		return !t.fits(q, t.usedAt(now), n) && slices.ContainsFunc(x.above.below, func(o *node) bool { return o != x && lacks(o) })
	})
}

// wantHeld returns how much a member wants of what calls hold, in fine units: everything if calls of it wait, and
// otherwise what it has.
func (p *Pool) wantHeld(m *node, i int, now int64) int64 {
	if m.parts[i].waits > 0 {
		return endless
	}
	return p.quotas[i].fine(max(m.parts[i].usedAt(now), 0))
}

// waitFor counts the call among those that wait for what others hold of one quota, and for nothing else; -1 is none. It
// reports whether that is new.
func (w *Waiting) waitFor(quota int) bool {
	if w.quota == quota+1 {
		return false
	}
	m, p := w.member, w.member.pool
	for place, by := range map[int]int64{w.quota: -1, quota + 1: 1} {
		if place > 0 {
			m.parts[place-1].waiting += by
			p.quotas[place-1].waiting += by
			p.quotas[place-1].shares.dirty, m.changed = true, true
		}
	}
	w.quota = quota + 1
	return true
}

// holds reports whether calls of a member hold something.
func (p *Pool) holds(m *node) bool {
	for i := range p.quotas {
		if p.quotas[i].held && m.parts[i].used.sum > 0 {
			return true
		}
	}
	return false
}
