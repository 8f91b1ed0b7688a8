package fair

// gather makes a member that waits gather what its call asks for, if that is more than its share: until the call
// passes or leaves, the member has that much at least. Otherwise the calls of others, which are within their
// shares, could take back for ever what comes free. What it has used beyond its share counts later: see exceed.
//
// One member of a pool gathers at a time. In the pool of a model none does: there a call that has the turn in line
// keeps smaller ones from passing.
func (p *Pool) gather(m *node) {
	if p.root == nil || p.gathering != nil {
		return
	}
	for i := range m.parts {
		if p.mayGather(m, i) {
			p.gathering = m
			p.disturb()
			return
		}
	}
}

// mayGather reports whether a member may gather what its call asks for of a quota. The call must have its turn by
// what the member has used, and none of a higher rank and no minimum of another may be in its way. Of a fixed
// window nothing comes free before it ends.
func (p *Pool) mayGather(m *node, i int) bool {
	q, t := &p.quotas[i], &m.parts[i]
	if !q.slides() || q.fine(t.size) <= t.share || !t.fits(q, t.counts(m.seen), t.size) {
		return false
	}
	for _, o := range p.members {
		if o != m && o.parts[i].elsewhere.Gathers > 0 {
			return false
		}
	}
	kept := p.reserve
	for x := m; x.above != nil; x = x.above {
		for _, o := range x.above.below {
			if o == x {
				continue
			}
			if o.terms().Rank > x.terms().Rank {
				return false
			}
			kept += max(o.own.Min, o.terms().Min)
		}
	}
	return q.fine(t.size) <= q.part(max(Whole-kept, 0))
}

// gathers returns how much of a quota a member gathers, here or on another node.
func (p *Pool) gathers(m *node, i int) int64 {
	t := &m.parts[i]
	if p.gathering != m || !p.quotas[i].slides() {
		return t.elsewhere.Gathers
	}
	return t.size
}

// endGathering ends that a member gathers.
func (p *Pool) endGathering(m *node, now int64) {
	if p.gathering != m {
		return
	}
	p.gathering = nil
	for i := range p.quotas {
		p.compute(i, now)
		m.parts[i].exceed(&p.quotas[i], m.called) // which it has not by the share that it had meanwhile
	}
}
