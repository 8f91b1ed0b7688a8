package fair

// Standing is where a member stands in its pool.
type Standing struct {
	Name    string
	Waiting int       // calls that wait
	Parts   []Portion // of each quota
}

// Portion is what a member has of one quota. Its part is what it has by weight among those
// that have called within the last period: at least its minimum, and at most its maximum.
type Portion struct {
	Share    int64 // what the member may use
	Used     int64
	Part     int64
	Lent     int64 // what others may use of its part, because the member is not expected to want it
	Borrowed int64 // what it has used beyond its part
}

// Read returns where all members stand.
func (p *Pool) Read(now int64) (all []Standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	for _, m := range p.members {
		p.unpark(m)
	}
	defer p.forget(now) // parks them again
	for i := range p.quotas {
		p.compute(i, now)
		p.top.parts[i].weight = p.quotas[i].part(Whole - p.reserve)
		p.byWeight(p.top, i, now)
	}
	for _, m := range p.members {
		s := Standing{m.name, m.waiting, make([]Portion, len(p.quotas))}
		for i := range s.Parts {
			s.Parts[i] = p.portion(m, i, now)
		}
		all = append(all, s)
	}
	return all
}

// byWeight finds what those in a group have of a quota by weight. Those that are not active have
// their minimum, if it is kept for them, or nothing.
func (p *Pool) byWeight(g *node, i int, now int64) {
	amount := g.parts[i].weight
	for _, x := range g.below {
		if !x.parts[i].active {
			amount -= x.parts[i].floor
		}
	}
	for _, x := range g.below {
		t := &x.parts[i]
		switch {
		case t.active:
			t.weight = mulDiv(max(amount, 0), x.terms().weight(), g.weights)
			if g == p.top {
				t.weight += p.newcomer(x, i, now)
			}
		case x.group != nil || x.dedicated:
			t.weight = t.floor
		default:
			t.weight = 0
		}
		p.byWeight(x, i, now)
	}
}

// portion returns what a member has of a quota.
func (p *Pool) portion(m *node, i int, now int64) Portion {
	q, t := &p.quotas[i], &m.parts[i]
	part := t.weight
	if t.active {
		terms := m.terms()
		part = min(max(part, q.part(terms.Min)), q.most(terms.Max))
	}
	part >>= q.scale
	share, used := t.share>>q.scale, t.usedAt(now)
	return Portion{share, used, part, max(0, part-max(share, used)), max(0, used-part)}
}
