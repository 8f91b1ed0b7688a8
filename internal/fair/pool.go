// Package fair divides quotas among those who use them, by weight, and decides which of the calls that wait has the turn.
//
// A [Pool] is the quotas of one model, or the limits of one project. Those who share it are a tree: projects, those
// below them, and users below these. The whole quota is divided among the outermost, what each of them has is divided
// among those below it, and so on, by the same rule at every level. So a project has its share however many users it
// has.
//
// A call that is within the share of everyone on its way up the tree passes. One that is not passes too, as long as
// the others are expected to find their shares when they ask for them: so what they do not want is lent, and one that
// is alone has everything.
//
// What is expected of a member is what it does: how much it asks for, and how fast. One that waits, or was turned away
// lately, wants its whole share. What is expected of a quota is known: what was used comes back a period later.
//
// A pool only denies. It does not know whether the quotas themselves admit a call. It decides by whole numbers.
//
// Calls that do not pass at once wait in a [Line], in which projects have turns by weight.
package fair

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Pool is quotas that several members share. All of its methods may be called at a time.
// Times are Unix nanoseconds.
type Pool struct {
	reserve  int64        // the part of every quota that is kept for newcomers, in millionths
	shortest int64        // the shortest period of a quota
	joined   atomic.Int32 // the number of members

	dedicated *Dedicated // the members that are dedicated
	root      *Group     // whose limits the quotas are; nil: they are a model's
	depth     int        // the number of groups that root is in, plus one; 0 without a root

	mu        sync.Mutex
	seen      *map[string]Terms // the dedicated members that the pool has
	quotas    []quota
	top       *node             // that all others are below
	members   map[string]*node  // those that call, by their names
	groups    map[string]*node  // those that others are in, by their names
	heard     map[string]*Group // that other nodes have reported
	awake     int               // the number of members that are not parked
	gathering *node             // the member that gathers what its call asks for; nil: none does
	sorted    []*node           // room for the computation of shares
	sweepAt   int64             // when members that do not call any more are parked or forgotten next
	moveAt    int64             // when time next changes something: see move
}

// quota is one of the quotas of a pool.
type quota struct {
	limit   limit.Limit
	held    bool // it is of what calls hold until they end: see Hold
	period  int64
	steady  int64 // for how long time alone does not change what members want much
	count   int64
	scale   uint     // see fine
	others  ring     // what other nodes have taken, when they reported that: see comesBack
	began   int64    // when a fixed window began
	resetAt int64    // when it ends; 0 for a quota that slides
	shares  outdated // the shares of all nodes of the tree

	waiting int64 // of a quota that is held, the calls that wait for it here
	waitsTo int64 // until when calls wait for it on other nodes, by their reports
}

// Terms are the promises that a member or a group has.
type Terms struct {
	Weight   int   // among its siblings of the same rank, from 1
	Rank     int   // siblings of a higher rank have what they want before those of a lower one
	Min, Max int64 // what it has at least and at most of every quota, in millionths of it; a Max of 0 is all
}

// Whole is all of a quota, in millionths.
const Whole = 1_000_000

func (t Terms) weight() int64 { return int64(max(t.Weight, 1)) }

// NewPool returns a pool of quotas without members. reserve is the part of every quota, in millionths, that only those
// have who have begun to call within the last period.
func NewPool(quotas []limit.Limit, reserve int64) *Pool {
	p := &Pool{reserve: reserve, dedicated: new(Dedicated), members: map[string]*node{}, groups: map[string]*node{}, shortest: math.MaxInt64}
	for _, l := range quotas {
		period := int64(l.Period())
		p.quotas = append(p.quotas, quota{limit: l, period: period, steady: period / steadyParts, others: newRing(l, false)})
		p.quotas[len(p.quotas)-1].setCount(l.Count())
		p.shortest = min(p.shortest, period)
	}
	p.top = p.newNode("")
	for i := range p.quotas {
		p.top.parts[i].share = p.quotas[i].part(Whole - reserve) // until shares are computed
	}
	return p
}

// Empty reports whether the pool has no members.
func (p *Pool) Empty() bool { return p.joined.Load() == 0 && p.dedicated.empty() }

// Alone reports whether the pool has one member at most.
func (p *Pool) Alone() bool { return p.joined.Load() <= 1 }

// setCount sets the count of the quota.
func (q *quota) setCount(n int64) {
	q.count, q.shares.dirty = n, true
	q.scale = uint(min(max(40-bits.Len64(uint64(n)), 0), 20))
}

// fine returns an amount in the units in which shares are counted: of a small quota they are parts of its own unit, so
// that a hundred members can share ten requests.
func (q *quota) fine(n int64) int64 { return min(n, endless>>q.scale) << q.scale }

// part returns so many millionths of the quota, as shares are counted.
func (q *quota) part(millionths int64) int64 { return mulDiv(q.fine(q.count), millionths, Whole) }

// most returns a maximum of so many millionths of the quota, as shares are counted; one of 0 is none.
func (q *quota) most(millionths int64) int64 {
	if millionths == 0 {
		return endless
	}
	return q.part(millionths)
}

// endless is more than anybody can use. Sums of a few such amounts do not overflow.
const endless = 1 << 60

// mulDiv returns a times b over c. a and b are not below zero, and c is above. A quotient beyond endless is endless.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return endless
	}
	n, _ := bits.Div64(high, low, uint64(c))
	return int64(min(n, endless))
}

// disturb has the shares of all quotas computed again.
func (p *Pool) disturb() {
	for i := range p.quotas {
		p.quotas[i].shares.dirty = true
	}
}
