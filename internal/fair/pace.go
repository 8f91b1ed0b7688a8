package fair

// pacedBy returns the outermost of a member and those above it that has taken so much lately that it has to wait, or
// nil.
func (p *Pool) pacedBy(m *node, i int, now int64) *node {
	return m.outermost(func(x *node) bool { return x.parts[i].paid > now && p.isPaced(x, i, now) })
}

// isPaced reports whether a node takes its part of a quota at an even pace. One whose calls wait does beside siblings that
// are calm: otherwise it would take all that comes back at once, and that would come back at once a period later, while
// the others wait in between. Large calls need room at once, so beside them nobody is paced.
func (p *Pool) isPaced(x *node, i int, now int64) bool {
	q, t, g := &p.quotas[i], &x.parts[i], x.above
	return g.parts[i].calm && !t.calm && x.wants(now) && q.slides() && g.parts[i].large <= p.whole(g, i)/largest
}

// pay records when a node that is paced may take more after it has taken an amount: when so much has come free at the
// pace at which it has its share, or what it has used and is free if that is more.
func (p *Pool) pay(x *node, i int, now, n int64) {
	if !p.isPaced(x, i, now) {
		return
	}
	q, t, g := &p.quotas[i], &x.parts[i], &x.above.parts[i]
	rate := max(t.share>>q.scale, t.usedAt(now)+p.whole(x.above, i)-g.usedAt(now), n)
	t.paid = max(t.paid, now-q.period/paceBurst) + mulDiv(n, q.period, rate+rate/paceMore)
}

// whole returns what those in a group have of a quota together.
func (p *Pool) whole(g *node, i int) int64 {
	if g == p.top {
		return p.quotas[i].count
	}
	return g.parts[i].share >> p.quotas[i].scale
}

const (
	largest   = 32 // calls that ask for more than a thirty-second of what is shared are large
	paceMore  = 4  // a member that is paced may take its share faster than evenly by a quarter, so that it catches up
	paceBurst = 20 // a member that is paced may take at once what is its part of a twentieth of the period
)
