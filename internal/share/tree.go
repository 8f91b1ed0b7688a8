package share

// node is a member in the division of a quota, or a group of them.
type node struct {
	member *member // nil: a group
	group  *group  // nil: a member
	inside []*node // of a group
	terms  Terms
	active bool // it has asked within the period
	demand float64
	floor  float64 // what it has whatever others want
	share  float64
}

func (n *node) weight() float64 { return n.terms.weight() }

func (t Terms) weight() float64 { return float64(max(t.Weight, 1)) }

// tree returns the members that are in no group and the groups that are in none, with what they are
// expected to want of a quota.
func (p *Pool) tree(i int, now int64) []*node {
	q := &p.quotas[i]
	if q.active, q.weights = 0, 0; cap(p.nodes) < len(p.order) {
		p.nodes = make([]node, 2*len(p.order))
	}
	p.tops = p.tops[:0]
	for _, g := range p.groups {
		g.node = node{group: g, terms: g.Terms(), inside: g.node.inside[:0]}
	}
	for _, g := range p.groups {
		p.place(&g.node, g.above)
	}
	for k, m := range p.order {
		p.pass(m, now)
		m.parts[i].demand = p.demand(m, i, now)
		n := &p.nodes[k]
		*n = node{member: m, terms: m.terms, active: p.active(m, i, now), demand: m.parts[i].demand, floor: p.floor(m, i)}
		if n.active {
			q.active++
			q.weights += m.terms.weight()
		}
		in := p.inside(m)
		if in != m.in {
			n.terms = Terms{} // the member's own are those of the group
		}
		p.place(n, in)
	}
	if len(p.groups) > 0 {
		for _, n := range p.tops {
			n.gather(q.count)
		}
	}
	return p.tops
}

// place puts a node into a group, or to those that are in none.
func (p *Pool) place(n *node, in *group) {
	if in == nil {
		p.tops = append(p.tops, n)
	} else {
		in.node.inside = append(in.node.inside, n)
	}
}

// gather lets a group want what those in it want.
func (n *node) gather(count float64) {
	if n.member != nil {
		return
	}
	for _, each := range n.inside {
		each.gather(count)
		n.demand += each.demand
		n.floor += each.floor
		n.active = n.active || each.active
	}
	n.floor = max(n.floor, min(n.terms.Min*count, n.demand))
	if n.terms.Max > 0 {
		n.demand = min(n.demand, n.terms.Max*count)
	}
	n.demand = max(n.demand, n.floor)
}
