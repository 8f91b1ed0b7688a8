package share

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Group is members, and other groups, that have one share together, such as the parts of a project.
// It is divided among them as a quota is divided among the members of a pool.
type Group struct {
	Name  string
	Above *Group // that the group is in; nil: none

	terms atomic.Pointer[Terms] // nil: those of weight 1
}

// Set lets the group have terms from now on. Pools find out about the maximum at once, and about the
// rest when they next compute shares.
func (g *Group) Set(t Terms) {
	g.terms.Store(&t)
	termsSet.Add(1)
}

// Terms returns the terms of the group.
func (g *Group) Terms() (t Terms) {
	if set := g.terms.Load(); set != nil {
		t = *set
	}
	return t
}

// group is a group in a pool.
type group struct {
	*Group
	above *group // nil: none
	parts []groupPart
	node  node // in the division of shares
}

// groupPart is what a group has of one quota.
type groupPart struct {
	share  float64
	weight float64 // when shares were computed
	served float64 // what was served to those in it, over its weight
	used   counted // by those in it, if it has a maximum
}

// mostSingle is how many members a pool has at most. Calls of those beyond count for the groups
// that these are in, so that very many users of a project do not make the pool large.
const mostSingle = 1000

// single returns whom calls count for: the member itself, or its group if the pool has too many
// members.
func (p *Pool) single(w *Who, t Terms) (name string, in *Group, terms Terms) {
	switch {
	case p.isRoot(w.Name):
		return w.Name, nil, Terms{} // its own terms are for other pools
	case w.Group == nil || p.members[w.Name] != nil || len(p.members) < mostSingle:
		return w.Name, p.below(w.Group), t
	case p.isRoot(w.Group.Name):
		return w.Group.Name, nil, Terms{}
	}
	return w.Group.Name, p.below(w.Group.Above), w.Group.Terms()
}

// group returns the pool's own of a group, and makes it if there is none; nil for nil.
func (p *Pool) group(of *Group) *group {
	if of == nil {
		return nil
	}
	g := p.named[of.Name]
	if g == nil {
		g = &group{above: p.group(p.below(of.Above)), parts: make([]groupPart, len(p.quotas))}
		for i := range g.parts {
			g.parts[i].weight = of.Terms().weight()
		}
		p.regroup()
		p.groups, p.named[of.Name] = append(p.groups, g), g
	}
	g.Group = of
	return g
}

// regroup lets members be in other groups than before.
func (p *Pool) regroup() {
	p.recounts++
	for _, m := range p.members {
		p.tell(m)
		m.placed = false
	}
}

// dropGroups forgets groups that no member is in.
func (p *Pool) dropGroups() {
	if len(p.groups) == 0 {
		return
	}
	used := map[*group]bool{}
	for _, m := range p.members {
		for g := m.in; g != nil; g = g.above {
			used[g] = true
		}
	}
	p.regroup()
	p.groups = slices.DeleteFunc(p.groups, func(g *group) bool { return !used[g] })
	maps.DeleteFunc(p.named, func(_ string, g *group) bool { return !used[g] })
}

// inside returns the group that a member is in: calls of a project itself, and not of one inside of it,
// are in the project's group if there is one.
func (p *Pool) inside(m *member) *group {
	if len(p.groups) == 0 {
		return nil
	}
	if !m.placed {
		m.placed, m.maxima = true, maxima{}
		if m.at = p.named[m.name]; m.at == nil {
			m.at = m.in
		}
	}
	return m.at
}

// serve counts what was served to a member of a quota. The groups that the member is in count it later: see
// tell.
func (p *Pool) serve(m *member, i int, n float64) {
	t := &m.parts[i]
	t.served += n / t.weight
	if len(p.groups) > 0 {
		t.untold += n
	}
}

// tell lets the groups that a member is in count what it was served. That is early enough before groups are
// compared, and before a weight or the groups of the member change.
func (p *Pool) tell(m *member) {
	for i := range m.parts {
		p.tellOf(m, i)
	}
}

// tellOf is tell for one quota.
func (p *Pool) tellOf(m *member, i int) {
	t := &m.parts[i]
	if t.untold == 0 {
		return
	}
	for g := p.inside(m); g != nil; g = g.above {
		g.parts[i].served += t.untold / g.parts[i].weight
	}
	t.untold = 0
}

// tellAll is tell for one quota, of all members that are not parked.
func (p *Pool) tellAll(i int) {
	if len(p.groups) == 0 {
		return
	}
	for _, m := range p.order {
		p.tellOf(m, i)
	}
}

// rival is where one of two members stands among its siblings, or a group that it is in among its own:
// at the level at which the two are not in the same group.
type rival struct {
	rank   int
	served float64 // over its weight
	share  float64
	weight float64
}

// rivals returns two members as rivals for a quota.
func (p *Pool) rivals(i int, a, b *member) (rival, rival) {
	below := func(m *member, to *group) rival {
		var last *group
		for g := p.inside(m); g != to; g = g.above {
			last = g
		}
		if last == nil {
			t := &m.parts[i]
			return rival{m.terms.Rank, t.served, t.share, t.weight}
		}
		t := &last.parts[i]
		return rival{last.Terms().Rank, t.served, t.share, t.weight}
	}
	common, other := p.inside(a), p.inside(b)
	for !other.isIn(common) {
		common = common.above
	}
	return below(a, common), below(b, common)
}

// isIn reports whether a group is another, or in it. All are in nil, which stands for the pool.
func (g *group) isIn(other *group) bool {
	for ; g != other; g = g.above {
		if g == nil {
			return false
		}
	}
	return true
}
