package share

import "math"

// Standing is where a member stands in its pool.
type Standing struct {
	Name    string
	Waiting int       // calls that wait
	Parts   []Portion // of each quota
}

// Portion is what a member has of one quota. Its part is what it has by weight among the members
// that have called within the last period: at least its minimum, and at most its maximum.
type Portion struct {
	Share    int64 // what the member may use
	Used     int64
	Part     int64
	Lent     int64 // what others may use of its part, because the member is not expected to want it
	Borrowed int64 // what it has used beyond its part
}

// Reset forgets what members have used.
func (p *Pool) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recounts++
	for i := range p.quotas {
		q := &p.quotas[i]
		q.used.clear()
		clear(q.nodes)
		q.parked, q.shares.dirty = 0, true
		for _, m := range p.members {
			t := &m.parts[i]
			t.used.clear()
			t.remote, t.carry, t.excess, t.since, t.unheardUntil = 0, 0, 0, 0, 0
			for _, r := range m.nodes {
				r.Parts[i].Used = 0
			}
		}
	}
}

// Read returns where all members stand.
func (p *Pool) Read(now int64) []Standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	for _, m := range p.members {
		p.unpark(m, now)
	}
	defer p.forget(now) // parks them again
	all := make([]Standing, len(p.order))
	for k, m := range p.order {
		all[k] = Standing{m.name, m.waiting, make([]Portion, len(p.quotas))}
	}
	for i := range p.quotas {
		p.compute(i, now)
		count := p.quotas[i].count
		p.byWeight(p.tops, count*(1-p.reserve), i)
		newcomers := p.newcomers(i, now)
		for k, m := range p.order {
			part := m.parts[i].part
			if p.active(m, i, now) {
				if p.isNew(m, i, now) {
					part += count * p.reserve * m.terms.weight() / newcomers
				}
				if part = max(part, m.terms.Min*count); m.terms.Max > 0 {
					part = min(part, m.terms.Max*count)
				}
			}
			all[k].Parts[i] = m.parts[i].portion(part, now)
		}
	}
	return all
}

// byWeight sets what members have of an amount of a quota by weight. Those that are not active have
// their minimum, if it is kept for them, or nothing.
func (p *Pool) byWeight(nodes []*node, amount float64, i int) {
	weights := 0.0
	for _, n := range nodes {
		if n.active {
			weights += n.weight()
		} else {
			amount -= n.floor
		}
	}
	for _, n := range nodes {
		part := n.floor
		if n.active {
			part = max(0, amount) * n.weight() / weights
		}
		if n.member == nil {
			p.byWeight(n.inside, part, i)
		} else if n.member.parts[i].part = part; !n.active && !n.member.dedicated {
			n.member.parts[i].part = 0
		}
	}
}

// portion returns what a member has whose part by weight is given.
func (t *part) portion(part float64, now int64) Portion {
	used := t.usedAt(now)
	rounded := int64(math.Round(used)) // of a part of the period that has half passed, half counts as used
	return Portion{int64(t.share), rounded, int64(part), int64(max(0, part-max(t.share, used))), int64(max(0, used-part))}
}
