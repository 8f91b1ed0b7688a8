package share

// Inside makes the pool that of the limits of a group: its members are those in the group, and the group
// itself is one more of weight 1 for calls of nobody in it. It is called before any other method.
func (p *Pool) Inside(root *Group) {
	p.root = root
	for g := root; g != nil && p.depth < depths-1; g = g.Above {
		p.depth++
	}
}

// isRoot reports whether a name is that of the group whose limits the pool divides.
func (p *Pool) isRoot(name string) bool { return p.root != nil && p.root.Name == name }

// below returns a group as the pool knows it: nil if it is the one whose limits the pool divides.
func (p *Pool) below(g *Group) *Group {
	if g == nil || p.isRoot(g.Name) {
		return nil
	}
	return g
}

// Seed lets the pool have its first member, which has called before without the pool: used is what is used
// of each quota, all of it by this member. When it was used is not known, so it counts as used evenly over
// the last period.
func (p *Pool) Seed(w *Who, t Terms, now int64, used []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	if len(p.members) > 0 {
		return
	}
	m := p.member(w, t, now)
	m.called, m.asked, m.last = now, now, now
	for i := range p.quotas {
		p.quotas[i].used.spread(now, float64(used[i]))
		m.parts[i].used.spread(now, float64(used[i]))
	}
}
