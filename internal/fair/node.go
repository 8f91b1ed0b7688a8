package fair

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// node is one of those who share a pool: a member, which makes calls, or a group of members and of other groups.
// What a group has used, and whether calls of it wait, is that of all below it.
type node struct {
	pool  *Pool
	name  string
	above *node  // nil: it is the top, or it is not in the tree yet
	group *Group // nil: it is a member, or the top
	own   Terms  // the promises of a member
	parts []part // of each quota

	below   []*node // those that are not parked
	inside  int     // how many are in the group, with those that are parked
	weights int64   // of those below that were active when shares were computed, and of those that have come since

	wanting int   // the calls that wait for the share
	since   int64 // when it asked first, after it had not for a period
	called  int64 // when it asked last, here, even if that was not to count
	asked   int64 // when it asked last, here
	last    int64 // and on any node
	waitsTo int64 // until when it wants its share on other nodes, by their reports
	left    int64 // when the last of its calls that waited passed or gave up

	caller
}

// caller is what a pool knows of a member alone, because groups make no calls.
type caller struct {
	forgotten bool  // it is no member any more
	dedicated bool  // the minimum is kept free even if the member has not called for long
	parked    bool  // it has not called for so long that it wants nothing: see park
	byOwn     bool  // something else than the pool's quotas denies its calls that wait
	waiting   int   // calls that wait
	open      int   // admitted calls that are not settled yet
	here      int   // of the calls that wait, those that the pool's quotas deny, and nothing else
	turned    int64 // when a call that does not wait was denied last
	seen      int64 // until when its time is accounted for: see pass
	free      int64 // for how long none of its calls has waited, in all

	nodes    map[source]nodeReport // what other nodes have reported
	nodesEnd int64                 // when the first of these counts no longer
	changed  bool                  // something that other nodes have to know, since the last report
}

// part is what a member or a group has of one quota: its share, and what it has used of that.
type part struct {
	share  int64 // in fine units
	used   ring  // within the last period, or in the fixed window, here
	remote int64 // and on other nodes, by their reports
	carry  int64 // an excess of the period before, which counts as used: see exceed
	extra  int64 // by how much the member's calls use more than they ask for, on average
	taken  int64 // of a member: all that it has taken here
	served int64 // what it was served over its weight, in fine units, here and on other nodes
	size   int64 // the amount that was asked for last
	large  int64 // the amount that large calls have asked for lately
	paid   int64 // until when what was taken lately is enough: see pay

	excess int64 // by how much the share was exceeded at most
	before int64 // the excess before the last charge
	since  int64 // when the period began in which there was an excess or a carry; 0: there was none
	unused int64 // since when nothing of the share counts as used; 0: something does

	waiting int64 // the calls of a member that wait here for what others hold, and for nothing else
	waits   int64 // all that do so, when shares were computed

	active bool  // it had asked within the period, when shares were computed
	calm   bool  // its calls did not wait for half of the time then; of a group, somebody in it is so
	want   int64 // how much it was expected to use at most then, in fine units
	floor  int64 // what it had whatever others wanted, in fine units
	weight int64 // what it has by weight, when that was last read

	actives   int   // of a group: how many of those below it were active then
	newcomers int64 // of a group: the weights of those below it that had begun to call within the last period then

	asks      asks
	elsewhere PartReport // the sum of what other nodes have reported
	unheard   int64      // the part of remote that a store has counted and that no other node has reported yet

	lending outdated // spare
	spare   int64    // of a group: how much more comes back than those below it are expected to want, at the worst time: see foresee
}

const longAgo = math.MinInt64 / 2

func (p *Pool) newNode(name string) *node {
	x := &node{pool: p, name: name, parts: make([]part, len(p.quotas)), called: longAgo, asked: longAgo, last: longAgo}
	x.nodesEnd = math.MaxInt64
	for i := range x.parts {
		x.parts[i].used = newRing(p.quotas[i].limit, p.quotas[i].held)
	}
	return x
}

// terms returns what the node was promised among its siblings. Calls of a project itself, beside those of projects
// below it, are one more of weight 1 in the project's group.
func (x *node) terms() Terms {
	switch {
	case x.group != nil:
		return x.group.Terms()
	case x.above != nil && x.above.name == x.name:
		return Terms{}
	}
	return x.own
}

// maxDepth is how deep a tree is at most. No project is deeper.
const maxDepth = 16

// mostSingle is how many members a pool has at most. Calls of those beyond count for the groups
// that these are in, so that very many users of a project do not make the pool large.
const mostSingle = 1000

// single returns whom calls count for: the member itself, or its group if the pool has too many
// members.
func (p *Pool) single(w *Who, t Terms) (name string, in *Group, own Terms) {
	switch {
	case p.isRoot(w.Name):
		return w.Name, nil, Terms{} // its own terms are for other pools
	case w.Group == nil || p.members[w.Name] != nil || len(p.members) < mostSingle:
		return w.Name, p.below(w.Group), t
	}
	g := w.Group
	if strings.Contains(g.Name, KeySign) {
		g = g.Above // so that there are not more members for very many keys
	}
	if p.isRoot(g.Name) {
		return g.Name, nil, Terms{}
	}
	return g.Name, p.below(g.Above), g.Terms()
}

// member returns the member of a name, which has its terms from now on and is not parked.
func (p *Pool) member(w *Who, t Terms, now int64) *node {
	name, in, t := p.single(w, t)
	m := p.find(w)
	if m == nil {
		m = p.newNode(name)
		m.own = t
		p.members[name] = m
		p.joined.Add(1)
	}
	p.unpark(m)
	if m.own != t {
		m.own = t
		p.disturb()
	}
	// It is in the project's own group, if there is one, or in the group that the project is in.
	if above := cmp.Or(p.groups[name], p.groupOf(in)); above != m.above {
		p.put(m, above)
	}
	return m
}

// groupOf returns the pool's own of a group, and makes it if there is none; the top for nil.
func (p *Pool) groupOf(of *Group) *node {
	if of == nil {
		return p.top
	}
	g := p.groups[of.Name]
	if g == nil {
		g = p.newNode(of.Name)
		g.group = of
		p.groups[of.Name] = g
		p.put(g, p.groupOf(p.below(of.Above)))
		if m := p.members[of.Name]; m != nil { // which has called before anybody in the group
			p.put(m, g)
		}
	}
	g.group = of
	return g
}

// put puts a node below another, where it has not been yet. What it has used, those above it have used too.
func (p *Pool) put(x, above *node) {
	if x.above != nil {
		p.takeOut(x)
	}
	x.above = above
	above.inside++
	for g := above; g != nil; g = g.above {
		g.add(x, 1)
	}
	if x.group == nil && !x.parked {
		p.enter(x)
	}
}

// takeOut takes a node from below another.
func (p *Pool) takeOut(x *node) {
	if !x.parked {
		p.leave(x)
	}
	for g := x.above; g != nil; g = g.above {
		g.add(x, -1)
	}
	x.above.inside--
	x.above = nil
}

// add adds what a node below another has used and wants to it, or takes that away.
func (g *node) add(x *node, sign int64) {
	g.wanting += int(sign) * x.wanting
	g.last, g.waitsTo = max(g.last, x.last), max(g.waitsTo, x.waitsTo)
	for i := range x.parts {
		to, from := &g.parts[i], &x.parts[i]
		to.used.addRing(&from.used, sign)
		to.remote += sign * from.remote
	}
}

// enter gives a node its place among those that share, and so the group that it is in.
func (p *Pool) enter(x *node) {
	g := x.above
	if g.above != nil && len(g.below) == 0 {
		p.enter(g)
	}
	g.below = append(g.below, x)
	g.weights += x.terms().weight()
	if x.group == nil {
		p.awake++
	}
	for i := range p.quotas {
		x.parts[i].share = min(mulDiv(g.parts[i].share, x.terms().weight(), g.weights), x.most(i)) // until shares are computed
	}
	p.disturb()
}

// leave takes a node from those that share, and so the group that it is in if it is the last.
func (p *Pool) leave(x *node) {
	g := x.above
	at := slices.Index(g.below, x)
	if at < 0 {
		return
	}
	g.below = slices.Delete(g.below, at, at+1)
	g.weights = max(g.weights-x.terms().weight(), 0)
	if x.group == nil {
		p.awake--
	}
	if len(g.below) == 0 && g.above != nil {
		p.leave(g)
	}
	p.disturb()
}

// maximum returns the node's maximum, which is that of its own calls too; 0 is none.
func (x *node) maximum() int64 {
	if x.group != nil {
		return x.group.Terms().Max
	}
	return x.own.Max
}

// most returns how much of a quota the node has at most, by its maximum and by those of all above it, in fine units.
func (x *node) most(i int) int64 {
	most := int64(endless)
	for ; x != nil; x = x.above {
		most = min(most, x.pool.quotas[i].most(x.maximum()))
	}
	return most
}

// outermost returns the outermost of a member and those above it, without the top, of which something is true; nil: it is
// true of none.
func (m *node) outermost(is func(x *node) bool) (found *node) {
	for x := m; x.above != nil; x = x.above {
		if is(x) {
			found = x
		}
	}
	return found
}

// usedAt returns what was used at a time, on all nodes.
func (t *part) usedAt(now int64) int64 { return t.used.sumAt(now) + t.remote }

// counts returns how much of the share is used at a time.
func (t *part) counts(at int64) int64 { return t.usedAt(at) + t.carry }
