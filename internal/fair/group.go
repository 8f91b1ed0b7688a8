package fair

import "sync/atomic"

// Group is members, and other groups, that have one share together, such as the parts of a project.
type Group struct {
	Name  string
	Above *Group // that the group is in; nil: none

	terms atomic.Pointer[Terms] // nil: those of weight 1
}

// KeySign is in the names of groups that are the calls of a project with one key, and in no other names of groups.
const KeySign = "\x00"

// Set replaces the terms of the group. Pools find out about the maximum at once, and about the rest when they next
// compute shares.
func (g *Group) Set(t Terms) { g.terms.Store(&t) }

// Terms returns the terms of the group.
func (g *Group) Terms() (t Terms) {
	if set := g.terms.Load(); set != nil {
		t = *set
	}
	return t
}

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
