package fair

import "sync/atomic"

// Who names a member. It remembers which member that was in the pools that it was used for last, so
// that the next call need not look it up.
type Who struct {
	Name  string
	Group *Group // that the member is in; nil: none
	last  [depths]atomic.Pointer[node]
}

// depths is how many pools a member is remembered of: that of a model, and one for each group that the
// member is in. No project is deeper.
const depths = 9

// find returns the member of a name, or nil.
func (p *Pool) find(w *Who) *node {
	last := &w.last[p.depth]
	if m := last.Load(); m != nil && m.pool == p && !m.forgotten && m.name == w.Name {
		return m
	}
	name, _, _ := p.single(w, Terms{})
	m := p.members[name]
	if m != nil && m.name == w.Name { // the group's member is looked up each time: it may not stay the group's
		last.Store(m)
	}
	return m
}
