package fair

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

// StillDenies returns which share denies amounts that are not lent either: used is what is used of each quota by its own
// count; nil is what this node knows of. It takes nothing.
func (p *Pool) StillDenies(w *Who, now int64, amounts []Amount, used []int64) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, d := p.peek(w, now, amounts)
	if !d.Denied {
		return d
	}
	if used == nil {
		for i := range p.quotas {
			used = append(used, p.top.parts[i].usedAt(now))
		}
	}
	if p.lends(m, now, amounts, used) {
		return Denial{}
	}
	return d
}

func (p *Pool) lends(m *node, now int64, amounts []Amount, used []int64) bool {
	for i := range amounts {
		n := amounts[i].N
		if n < 0 {
			continue
		}
		if q := &p.quotas[i]; q.held {
			if p.denier(m, i, now, n) != nil {
				return false
			}
			continue
		}
		if p.capped(m, i, now, n) != nil || p.pacedBy(m, i, now) != nil || !p.borrows(m, i, now, n, used[i]) {
			return false
		}
	}
	return true
}

// borrows reports whether a member may use an amount of a quota, of which so much is used, where that is beyond its
// share or that of a group above it. From the outermost on, each has what is left of its share, or what is free without
// what its siblings are expected to want. If nobody wants what is free, the call need not fit with what it is expected
// to use more.
func (p *Pool) borrows(m *node, i int, now, n, used int64) bool {
	q := &p.quotas[i]
	var list [maxDepth]*node
	way := list[:0]
	for x := m; x.above != nil; x = x.above {
		way = append(way, x)
	}
	room := q.count - used
	if !p.isNew(way[len(way)-1], i, now) {
		room -= mulDiv(q.count, p.reserve, Whole)
	}
	expected := m.parts[i].expected(n)
	for _, x := range slices.Backward(way) {
		t := &x.parts[i]
		spare := p.spare(x.above, i, now, used)
		if p.admits(x, i, now, expected) {
			room = max(room+spare, t.share>>q.scale-t.counts(now), expected)
			continue
		}
		amount := n
		if spare < 0 {
			amount = expected
		}
		if amount > room+spare || p.leads(x, i, now, room) {
			return false
		}
		room += spare
	}
	return true
}

// spare returns how much more of what a group has of a quota comes back than those in it are expected to want, at the
// time at which that is least: at most zero. used is what is used of the quota.
func (p *Pool) spare(g *node, i int, now, used int64) int64 {
	t := &g.parts[i]
	if len(g.below) == 1 { // nobody else wants what is free
		return 0
	}
	if t.lending.due(now, len(g.below), p.quotas[i].steady) {
		if g != p.top {
			used = t.usedAt(now)
		}
		p.foresee(g, i, now, used)
	}
	t.lending.uses++
	return t.spare
}

// leads reports whether a sibling that waits, and whose call fits into what is free of the
// quota, was served so much less than a node, by weight, that it should have what is lent.
func (p *Pool) leads(x *node, i int, now, room int64) bool {
	own, rank := &x.parts[i], x.terms().Rank
	ahead := own.served - own.share/x.terms().weight()/lead
	for _, o := range x.above.below {
		if o != x && o.wants(now) && o.parts[i].size <= room && o.terms().Rank >= rank && o.parts[i].served < ahead {
			return true
		}
	}
	return false
}

// lead is by which part of its share one may be ahead of others when it borrows: a tenth.
const lead = 10
