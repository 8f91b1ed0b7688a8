package share

import "slices"

// Lend takes amounts for a member whose share has denied them, if the others are expected to
// find their shares all the same: used is what is used of each quota by its own count.
func (p *Pool) Lend(name string, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m == nil || !p.lends(m, now, amounts, used) {
		return false
	}
	p.charge(m, now, amounts, true)
	return true
}

// WouldLend says what Lend would, and takes nothing.
func (p *Pool) WouldLend(name string, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	return m != nil && p.lends(m, now, amounts, used)
}

// StillDenies says which share denies amounts that are not lent either, as far as this node knows what
// is used of each quota. It takes nothing.
func (p *Pool) StillDenies(name string, now int64, amounts []Amount) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	if m == nil {
		return Denial{}
	}
	d := p.decide(m, now, amounts)
	if !d.Denied {
		return d
	}
	used := make([]int64, len(p.quotas))
	for i := range p.quotas {
		used[i] = int64(p.quotas[i].usedAt(now))
	}
	if !p.lends(m, now, amounts, used) {
		return d
	}
	for i := range p.quotas {
		p.quotas[i].foreseen = 0 // by what this node knows: Lend knows better
	}
	return Denial{}
}

func (p *Pool) lends(m *member, now int64, amounts []Amount, used []int64) bool {
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		n := t.expected(amounts[i].N)
		if n < 0 || t.fits(now, n) {
			continue
		}
		room := q.count
		if !p.isNew(m, i, now) {
			room *= 1 - p.reserve
		}
		if now-q.foreseen > q.period/steady {
			p.foresee(i, now, float64(used[i]))
		}
		if p.leads(m, i, now, q.count-float64(used[i])) {
			return false
		}
		if m.terms.Max > 0 && t.usedAt(now) >= m.terms.Max*q.count || float64(used[i]+n) > room+q.spare {
			return false
		}
	}
	return true
}

// leads reports whether another member that waits, and whose call fits into what is free of the
// quota, was served so much less than this one, by weight, that it should have what is lent.
func (p *Pool) leads(m *member, i int, now int64, room float64) bool {
	t := &m.parts[i]
	served := t.served - t.share*lead/m.weight()
	return slices.ContainsFunc(p.order, func(o *member) bool {
		other := &o.parts[i]
		return o != m && o.terms.Rank >= m.terms.Rank && o.wants(now) && float64(other.size) <= room && other.served < served
	})
}

// lead is by which part of its share a member may be ahead of others when it borrows.
const lead = 0.1

// foresee computes how much more of a quota comes back than the members are expected to want of
// their shares, at the time within the next period at which that is least. It is at most zero: that
// much of what is free now must stay free.
func (p *Pool) foresee(i int, now int64, used float64) {
	q := &p.quotas[i]
	q.foreseen, q.spare = now, 0
	known := q.usedAt(now)
	for k := range int64(parts) {
		at := now + k*q.period/parts
		back := min(known-q.usedAt(at), used)
		if q.resetAt > 0 && at >= q.resetAt {
			back = used
		}
		stays := q.elsewhere(at) / max(q.elsewhere(now), 1)
		wanted := 0.0
		for _, m := range p.order {
			if float64(m.parts[i].size) <= q.count-used+back { // a larger call does not pass yet
				wanted += p.wanted(m, i, now, at, stays)
			}
		}
		q.spare = min(q.spare, back-wanted)
	}
}

// wanted returns how much of its share a member is expected to ask for from now until a time, at
// which a part of what is used on other nodes stays used.
func (p *Pool) wanted(m *member, i int, now, at int64, stays float64) float64 {
	q, t := &p.quotas[i], &m.parts[i]
	used := t.used.sumAt(at) + (t.usedAt(now)-t.used.sumAt(now))*stays
	free := min(t.share, t.demand) - used - t.carry
	if q.resetAt > 0 && at >= q.resetAt {
		free = min(t.share, t.demand)
	}
	kept := 0.0 // whatever the member does
	if m.terms.Min > 0 && (m.dedicated || p.active(m, i, now)) {
		kept = min(m.terms.Min*q.count, t.share) - used
	}
	if free < float64(t.size)/2 && used+t.carry > 0 {
		free = 0 // none of its calls fits
	}
	return max(min(free, p.asks(m, i, now, at-now)), kept, 0)
}
