package fair

import (
	"cmp"
	"slices"
)

// Amount is what a call asks for of one quota.
type Amount struct {
	N      int64 // -1 if the call has no part in the quota
	Count  int64 // of the quota, as it is now
	Extra  int64 // what was charged beyond N, because such calls use more: set when the amount is taken
	Alone  bool  // no other call of the member is under way: set when the amount is taken
	remote int64 // what the member was known to have used on other nodes: set when the amount is taken
	of     *node // that holds it: set when an amount of what calls hold is taken
}

// ForCorrect reports whether [Pool.Correct] needs the amount, because it is not what the call asked for, or is held.
func (a *Amount) ForCorrect() bool { return a.Extra != 0 || a.of != nil }

// Denial is the answer of a share that denies a call. The zero Denial denies nothing.
type Denial struct {
	Denied  bool
	Never   bool   // the call is larger than a maximum
	Large   bool   // the call is larger than the share, or than a thirty-second of what it and others share by time
	Of      string // whose share it is: the member's, or that of a group that the member is in
	Group   bool   // it is that of a group
	Quota   int    // the index of the quota
	Share   int64
	Used    int64
	Members int   // that share the quota, or the share of the group above, now
	Until   int64 // when enough of what was used of the share has come back
}

// Take takes amounts, one of each quota, of a member's shares, or nothing if a share
// denies. again is whether the call has asked before.
func (p *Pool) Take(w *Who, t Terms, now int64, amounts []Amount, again bool) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(w, t, now)
	p.ask(m, now, amounts, again)
	if d := p.denies(m, now, amounts); d.Denied {
		return d
	}
	p.charge(m, now, amounts, false)
	return Denial{}
}

// Peek returns what Take would, and takes nothing.
func (p *Pool) Peek(w *Who, now int64, amounts []Amount) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, d := p.peek(w, now, amounts)
	return d
}

func (p *Pool) peek(w *Who, now int64, amounts []Amount) (m *node, d Denial) {
	p.move(now)
	if m = p.find(w); m != nil {
		p.unpark(m)
		d = p.denies(m, now, amounts)
	}
	return m, d
}

// ask records that a member wants amounts.
func (p *Pool) ask(m *node, now int64, amounts []Amount, again bool) {
	m.changed = true
	p.pass(m, now)
	for x := m; x != nil; x = x.above {
		if now-max(x.last, x.called) > p.shortest {
			x.since = now
			p.disturb()
		}
		x.called, x.asked, x.last = now, now, now
	}
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		if count := amounts[i].Count; q.count != count {
			q.setCount(count)
		}
		n := t.expected(amounts[i].N)
		if n < 0 {
			continue
		}
		for x := m; x != nil; x = x.above {
			of := &x.parts[i]
			of.size, of.large = n, max(n, of.large-of.large/largeCalls)
		}
		if !again {
			t.asks.add(n)
		}
	}
}

// largeCalls is over how many calls it is forgotten that one was large.
const largeCalls = 256

// denies returns which share denies a call of a member, if one does: the outermost that does.
func (p *Pool) denies(m *node, now int64, amounts []Amount) Denial {
	for i := range amounts {
		q, most := &p.quotas[i], m.most(i)
		if q.fine(amounts[i].N) > most {
			d := p.denial(m, m, i, now, amounts[i].N) // before a share that denies it only for now
			d.Never, d.Share = true, most>>q.scale
			return d
		}
	}
	for i := range amounts {
		n := amounts[i].N
		if n < 0 {
			continue
		}
		if x := p.denier(m, i, now, n); x != nil {
			return p.denial(m, x, i, now, n)
		}
	}
	return Denial{}
}

// denier returns the outermost of a member and those above it whose share of a quota or whose maximum a call does not
// fit into; nil: it fits into all.
func (p *Pool) denier(m *node, i int, now, n int64) *node {
	q, t := &p.quotas[i], &m.parts[i]
	p.divide(i, now)
	q.shares.uses++
	if q.held {
		return p.heldBy(m, i, now, n)
	}
	x := p.beyond(m, i, now, t.expected(n))
	if x != nil && !t.asks.pressed {
		t.asks.pressed, q.shares.dirty = true, true
		p.divide(i, now)
		x = p.beyond(m, i, now, t.expected(n))
	}
	return cmp.Or(x, p.capped(m, i, now, n), p.pacedBy(m, i, now))
}

// beyond returns the outermost of a member and those above it whose share of a quota a call does not fit into, or nil.
func (p *Pool) beyond(m *node, i int, now, n int64) *node {
	return m.outermost(func(x *node) bool { return !p.admits(x, i, now, n) })
}

// mostCompared is among how many siblings a large call waits for those who were served less.
const mostCompared = 64

// admits reports whether the share of a node lets a call of an amount begin. Beside siblings that want more than they
// have, a call that is larger than the share begins when none of them was served less, by weight, or when nothing of the
// share was used for a whole period. So it does not gather the quota for itself before the others have had as much.
func (p *Pool) admits(x *node, i int, now, n int64) bool {
	q, t := &p.quotas[i], &x.parts[i]
	contended := false
	if q.fine(n) > t.share && t.share > 0 && q.slides() && p.takesTurns(x.above, i) {
		late := t.unused > 0 && now-t.unused >= q.period
		for _, o := range x.above.below {
			if o == x || o.terms().Rank != x.terms().Rank || !p.lacks(o, i, now) {
				continue
			}
			if contended = true; o.parts[i].served < t.served && !late {
				return false
			}
		}
	}
	return contended || t.fits(q, t.counts(now), n)
}

// takesTurns reports whether large calls of those in a group take turns. Beside a minimum share they do not, because that
// comes before all turns, and not among more than mostCompared: any call may be larger than its share there, and to
// compare them for every call would cost too much.
func (p *Pool) takesTurns(g *node, i int) bool {
	return len(g.below) <= mostCompared && !slices.ContainsFunc(g.below, func(o *node) bool { return o.terms().Min > 0 && o.parts[i].active })
}

// lacks reports whether a node wants more of a quota than it has. If its call waits here although there has been room for
// it, in its share too, it waits for something else.
func (p *Pool) lacks(x *node, i int, now int64) bool {
	q, t, top := &p.quotas[i], &x.parts[i], &p.top.parts[i]
	room := top.used.longAt(now)+top.remote+t.size <= q.count && t.fits(q, t.counts(now), t.size)
	return t.want > t.share && !(x.wanting > 0 && room)
}

// capped returns the outermost of a member and those above it whose maximum denies a call of an amount, or nil.
func (p *Pool) capped(m *node, i int, now, n int64) *node {
	q := &p.quotas[i]
	return m.outermost(func(x *node) bool {
		return q.fine(x.parts[i].used.longAt(now)+x.parts[i].remote+n) > q.most(x.maximum())
	})
}

// learned is over how many calls it is learned by how much they use more than they ask for.
const learned = 4

// expected returns what a call is expected to use that asks for an amount; -1 if it has no part in
// the quota.
func (t *part) expected(n int64) int64 {
	if n < 0 {
		return n
	}
	return n + t.extra
}

// fits reports whether a share of which so much is used lets a call of an amount begin: if at least half of the amount
// is within the share, or nothing of the share is used.
func (t *part) fits(q *quota, used, n int64) bool {
	return q.fine(max(used, 0))+q.fine(n)/2 <= t.share || used <= 0 && t.share > 0
}

// charge charges a member, and those above it, for a call.
func (p *Pool) charge(m *node, now int64, amounts []Amount, lent bool) {
	m.changed = true
	m.open++
	for i := range amounts {
		q, extra := &p.quotas[i], m.parts[i].extra
		n := m.parts[i].expected(amounts[i].N)
		if n <= 0 {
			continue
		}
		amounts[i].Extra, amounts[i].Alone, amounts[i].remote = extra, m.open == 1, m.parts[i].remote
		if q.held {
			amounts[i].of, q.shares.dirty = m, q.shares.dirty || q.isWanted(now) || p.top.parts[i].floor > 0
		}
		m.parts[i].taken += n
		m.serve(i, n)
		for x := m; x != nil; x = x.above {
			t := &x.parts[i]
			t.before, t.unused = t.excess, 0
			t.used.add(now, n)
			if x.above == nil {
				break
			}
			if !lent {
				t.exceed(q, now)
			}
		}
		for x := m; x.above != nil; x = x.above {
			p.pay(x, i, now, n)
		}
	}
}

// serve counts what a member was served, or gives back if that is below zero, over its weight and over those of all above
// it.
func (m *node) serve(i int, n int64) {
	for x := m; x.above != nil; x = x.above {
		x.parts[i].served += (n << m.pool.quotas[i].scale) / x.terms().weight()
	}
}

// denial describes that the share of a node on the way of a member denies a call.
func (p *Pool) denial(m, by *node, i int, now, n int64) Denial {
	q, t := &p.quotas[i], &by.parts[i]
	d := Denial{Denied: true, Of: by.name, Group: by.group != nil, Quota: i, Share: t.share >> q.scale, Used: t.usedAt(now), Members: by.above.parts[i].actives, Until: now + max(q.steady, 1)}
	d.Large = !q.held && d.Members > 1 && n > min(d.Share, max(p.whole(by.above, i)/largest, 1))
	for x := m; x.above != nil; x = x.above {
		d.Until = max(d.Until, p.until(x, i, now, n, m.parts[i].expected(n)))
	}
	return d
}

// until returns when enough of what a node of the tree has used has come back for a call of an amount to fit into its
// share, if it is expected to use another amount, and into its maximum.
func (p *Pool) until(x *node, i int, now, amount, expected int64) int64 {
	q, t := &p.quotas[i], &x.parts[i]
	most := q.most(x.maximum())
	long := t.used.longAt(now) + t.remote // what counts for the maximum
	switch fits := t.fits(q, t.counts(now), expected) && q.fine(long+amount) <= most; {
	case fits && p.admits(x, i, now, expected):
		return now
	case fits: // others that were served less come first
		return cmp.Or(t.unused, now) + q.period
	case q.resetAt > 0:
		return q.resetAt
	case q.held: // when a call ends, nobody knows
		return now + q.steady
	}
	var here curve
	t.used.ahead(now, &here)
	for k, n := range here {
		used := t.counts(now) - here[0] + n
		if t.fits(q, used, expected) && q.fine(long+amount) <= most {
			return now + q.after(k)
		}
		long = used - t.carry // a part later
	}
	return now + q.period
}
