// Package share divides quotas among those who use them, by weight.
//
// A [Pool] is the quotas of one model, or the limits of one project. Its members are the projects that
// use the model, or those inside of the project.
// Every member has a share of each quota. A member within its share passes. A member that
// has used its share passes too, as long as the others are expected to find theirs when
// they ask for it: so what they do not want is lent, and a member that is alone has
// everything.
//
// What is expected of a member is what it does: how much it asks for, and how fast. What
// is expected of a quota is known: what was used comes back a period later.
//
// A pool only denies. It does not know what the quotas themselves say.
package share

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Pool is quotas that several members share. All of its methods may be called at a time.
// Times are Unix nanoseconds.
type Pool struct {
	reserve  float64      // the part of every quota that is kept for newcomers
	shortest int64        // the shortest period of a quota
	joined   atomic.Int32 // the number of members

	dedicated *Dedicated // nil: no members are dedicated
	root      *Group     // whose limits the quotas are; nil: they are a model's
	depth     int        // the number of groups that root is in, plus one; 0 without a root

	mu        sync.Mutex
	seen      *map[string]Terms // the dedicated members that the pool has
	quotas    []quota
	members   map[string]*member
	groups    []*group          // that members are in
	named     map[string]*group // the groups by their names
	heard     map[string]*Group // that other nodes have reported
	reports   int64             // the number of reports of other nodes
	recounts  int64             // how often something has happened that lets what groups have used be counted anew
	gathering *member           // that gathers what its call asks for here; nil: none does
	order     []*member         // without those that are parked, by rank, the highest first
	nodes     []node            // room for the computation of shares
	tops      []*node
	sorted    []*node
	sweepAt   int64 // when members that do not call any more are parked or forgotten next
	moveAt    int64 // when time next changes something: see moveOn
}

// quota is one of the quotas of a pool.
type quota struct {
	limit     limit.Limit
	period    int64
	steady    int64 // for how long time alone does not change demands much
	count     float64
	used      ring               // by all members, here
	nodes     map[string]nodeUse // and on other nodes
	parked    float64            // what members have used that are parked
	began     int64              // when a fixed window began
	resetAt   int64              // when it ends; 0 for a quota that slides
	countedAt int64              // when what a group has used was counted last

	shares outdated // the shares of all members
	active int      // the members that had called within the period, when shares were computed

	weights float64 // of these, and of those that have come since

	lending outdated // spare
	spare   float64  // how much more comes back than others are expected to want, at the worst time: see foresee
}

// Terms are the promises that a member has.
type Terms struct {
	Weight   int     // of the member among those of its rank, from 1
	Rank     int     // members of a higher rank have what they want before those of a lower one
	Min, Max float64 // the parts of every quota that the member has at least and at most; a Max of 0 is all
}

// member is one of those who share a pool.
type member struct {
	pool      *Pool
	name      string
	in        *group // the group that the member is in; nil: none
	at        *group // the group that its calls are in, if it is placed: see inside
	placed    bool
	maxima    maxima
	terms     Terms
	forgotten bool  // it is no member any more
	dedicated bool  // the minimum is kept free even if the member has not called for long
	parked    bool  // it has not called for so long that it wants nothing: see park
	own       bool  // something else than the pool's quotas denies its calls that wait
	waiting   int   // calls that wait
	open      int   // admitted calls that are not settled yet
	here      int   // of these, the calls that the quotas of a pool with a root deny, and nothing else
	since     int64 // when it asked first, after it had not for a period
	called    int64 // when it asked last, here, even if that was not to count
	asked     int64 // when it asked last, here
	last      int64 // and on any node
	turned    int64 // when a call that does not wait was denied last
	left      int64 // when the last of its calls that waited passed or gave up
	seen      int64 // until when its time is accounted for: see pass
	free      int64 // for how long none of its calls has waited, in all
	nextTurn  int64 // when the first period ends of what it asks for, or of an excess
	parts     []part

	nodes     map[string]nodeReport // what other nodes have reported
	nodesWait int64                 // until when the member wants its share there, by these
	nodesEnd  int64                 // when the first of these counts no longer
}

// part is what a member has of one quota. What every decision needs comes first, so that it is together
// in the processor's cache.
type part struct {
	share  float64
	weight float64 // of the member among its siblings, when shares were computed
	used   ring    // within the last period, or in the fixed window, here
	remote float64 // and on other nodes, by their reports
	carry  float64 // an excess of the period before, which counts as used: see exceed
	extra  int64   // by how much the member's calls use more than they ask for, on average
	served float64 // what it was served over its weight; a member that comes to wait is lifted to the least of those who do
	untold float64 // what it was served that its groups have not counted yet
	size   int64   // the amount that it asked for last

	unheardUntil int64 // when other nodes will have reported what is unheard
	asks         asks

	excess  float64 // by how much the member has exceeded its share at most
	before  float64 // the excess before the last charge
	since   int64   // when the period began in which there was an excess or a carry; 0: there was none
	part    float64 // what the member has by weight, when that was last read
	demand  float64 // how much of the quota the member is expected to use at most
	unheard float64 // used on other nodes too, as a store has counted; they will report it

	elsewhere PartReport // the sum of what other nodes have reported
}

// NewPool returns a pool of quotas without members. reserve is the part of every quota
// that only members have who have begun to call within the last period.
func NewPool(quotas []limit.Limit, reserve float64) *Pool {
	p := &Pool{reserve: reserve, members: map[string]*member{}, named: map[string]*group{}, shortest: math.MaxInt64}
	for _, l := range quotas {
		period := int64(l.Period())
		p.quotas = append(p.quotas, quota{limit: l, period: period, steady: period / steadyParts, count: float64(l.Count()), used: newRing(l)})
		p.shortest = min(p.shortest, period)
	}
	return p
}

// Empty reports whether the pool has no members.
func (p *Pool) Empty() bool { return p.joined.Load() == 0 && p.dedicated.empty() }

// Alone reports whether the pool has one member at most.
func (p *Pool) Alone() bool { return p.joined.Load() <= 1 }

// member returns the member of a name, which has its terms from now on and is not parked.
func (p *Pool) member(w *Who, t Terms, now int64) *member {
	name, in, t := p.single(w, t)
	m := p.find(w)
	switch {
	case m == nil:
		m = p.newMember(name)
		w.last[p.depth].Store(m)
	case m.terms == t && p.isIn(m, in):
		p.unpark(m, now)
		return m
	default:
		p.unpark(m, now)
		p.order = slices.DeleteFunc(p.order, func(o *member) bool { return o == m })
	}
	p.tell(m)
	m.terms, m.in, m.placed = t, p.group(in), false
	p.recounts++
	for i := range m.parts {
		m.parts[i].weight = t.weight()
	}
	p.enter(m)
	return m
}

// isIn reports whether a member is in a group; nil is none.
func (p *Pool) isIn(m *member, in *Group) bool {
	if m.in == nil || in == nil {
		return m.in == nil && in == nil
	}
	return m.in.Group == in
}

func (p *Pool) newMember(name string) *member {
	m := &member{pool: p, name: name, parts: make([]part, len(p.quotas)), called: longAgo, asked: longAgo, last: longAgo, nodesEnd: math.MaxInt64}
	for i := range m.parts {
		m.parts[i].used = newRing(p.quotas[i].limit)
	}
	p.members[name] = m
	p.joined.Add(1)
	return m
}

const longAgo = math.MinInt64 / 2

// enter gives a member its place in the order.
func (p *Pool) enter(m *member) {
	at, _ := slices.BinarySearchFunc(p.order, m.terms.Rank, func(o *member, rank int) int {
		if o.terms.Rank < rank {
			return 1
		}
		return -1
	})
	p.order = slices.Insert(p.order, at, m)
	for i := range p.quotas {
		q, t := &p.quotas[i], &m.parts[i]
		q.weights += m.terms.weight()
		t.share = min(q.count*(1-p.reserve)*m.terms.weight()/q.weights, p.most(m, i)) // until shares are computed
	}
	p.disturb()
}

// disturb lets the shares of all quotas be computed again.
func (p *Pool) disturb() {
	for i := range p.quotas {
		p.quotas[i].shares.dirty = true
	}
}
