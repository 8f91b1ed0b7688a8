package share

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
	Lent     int64 // what others may use of its part, because the member is not expected to want it
	Borrowed int64 // what it has used beyond its part
}

// Reset forgets what members have used.
func (p *Pool) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		for k, part := range p.partsByWeight(i, now) {
			all[k].Parts[i] = p.order[k].parts[i].portion(part, now)
		}
	}
	return all
}

// partsByWeight returns what each member has of a quota by weight. Members that are dedicated and
// not active have their minimum.
func (p *Pool) partsByWeight(i int, now int64) []float64 {
	count := p.quotas[i].count
	weights, newcomers := p.weights(i, now)
	left := count * (1 - p.reserve)
	list := make([]float64, len(p.order))
	for k, m := range p.order {
		if m.dedicated && !p.active(m, i, now) {
			list[k] = m.terms.Min * count
			left -= list[k]
		}
	}
	for k, m := range p.order {
		if !p.active(m, i, now) {
			continue
		}
		part := left * m.weight() / weights
		if p.isNew(m, i, now) {
			part += count * p.reserve * m.weight() / newcomers
		}
		if part = max(part, m.terms.Min*count); m.terms.Max > 0 {
			part = min(part, m.terms.Max*count)
		}
		list[k] = part
	}
	return list
}

// portion returns what a member has whose part by weight is given.
func (t *part) portion(part float64, now int64) Portion {
	used := t.usedAt(now)
	return Portion{int64(t.share), int64(used), int64(max(0, part-max(t.share, used))), int64(max(0, used-part))}
}
