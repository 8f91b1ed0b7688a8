package share

import "slices"

// Lend takes amounts for a member whose share has denied them, if the others are expected to
// find their shares all the same: used is what is used of each quota by its own count.
func (p *Pool) Lend(w *Who, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	if m == nil || !p.lends(m, now, amounts, used) {
		return false
	}
	p.charge(m, now, amounts, true)
	return true
}

// WouldLend says what Lend would, and takes nothing.
func (p *Pool) WouldLend(w *Who, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	return m != nil && p.lends(m, now, amounts, used)
}

// StillDenies says which share denies amounts that are not lent either, as far as this node knows what
// is used of each quota. It takes nothing.
func (p *Pool) StillDenies(w *Who, now int64, amounts []Amount) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.find(w)
	if m == nil {
		return Denial{}
	}
	p.unpark(m, now)
	i := p.denies(m, now, amounts)
	if i < 0 {
		return Denial{}
	}
	used := make([]int64, len(p.quotas))
	for k := range p.quotas {
		var elsewhere curve
		p.quotas[k].elsewhere(now, &elsewhere)
		used[k] = int64(p.quotas[k].used.sumAt(now) + elsewhere[0])
	}
	if !p.lends(m, now, amounts, used) {
		return p.denial(m, i, now, amounts[i].N)
	}
	for k := range p.quotas {
		p.quotas[k].lending = outdated{} // by what this node knows: Lend knows better
	}
	return Denial{}
}

func (p *Pool) lends(m *member, now int64, amounts []Amount, used []int64) bool {
	for i := range amounts {
		n := m.parts[i].expected(amounts[i].N)
		if n < 0 {
			continue
		}
		if p.capped(m, i, now, amounts[i].N) || !m.parts[i].fits(now, n) && !p.borrows(m, i, now, amounts[i].N, float64(used[i])) {
			return false
		}
	}
	return true
}

// borrows reports whether a member may use an amount beyond its share of a quota, of which so much is
// used. If nobody wants what is free, the call need not fit with what it is expected to use more.
func (p *Pool) borrows(m *member, i int, now, n int64, used float64) bool {
	q := &p.quotas[i]
	room := q.count
	if !p.isNew(m, i, now) {
		room *= 1 - p.reserve
	}
	if len(p.order) == 1 { // nobody else wants what is free
		return used+float64(n) <= room
	}
	if q.lending.due(now, len(p.order), q.steady) {
		p.foresee(i, now, used)
	}
	q.lending.uses++
	if q.spare < 0 {
		n = m.parts[i].expected(n)
	}
	return used+float64(n) <= room+q.spare && !p.leads(m, i, now, q.count-used)
}

// leads reports whether another member that waits, and whose call fits into what is free of the
// quota, was served so much less than this one, by weight, that it should have what is lent.
func (p *Pool) leads(m *member, i int, now int64, room float64) bool {
	p.tellAll(i)
	return slices.ContainsFunc(p.order, func(o *member) bool {
		if o == m || !o.wants(now) || float64(o.parts[i].size) > room {
			return false
		}
		own, other := p.rivals(i, m, o)
		return other.rank >= own.rank && other.served < own.served-own.share*lead/own.weight
	})
}

// lead is by which part of its share a member may be ahead of others when it borrows.
const lead = 0.1
