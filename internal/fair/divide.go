package fair

import (
	"cmp"
	"slices"
)

// divide computes the shares of a quota, if they may differ from those computed last.
func (p *Pool) divide(i int, now int64) {
	if q := &p.quotas[i]; q.shares.due(now, p.awake, q.steady) {
		p.compute(i, now)
	}
}

// compute computes the shares of a quota: of the outermost, and of those below them.
func (p *Pool) compute(i int, now int64) {
	q := &p.quotas[i]
	q.shares = outdated{at: now}
	p.measure(p.top, i, now)
	p.top.parts[i].share = q.part(Whole - p.reserve)
	p.among(p.top, i, now)
}

// measure finds how much of a quota everybody in a group is expected to want.
func (p *Pool) measure(g *node, i int, now int64) {
	q, sum := &p.quotas[i], &g.parts[i]
	sum.calm, sum.actives, sum.newcomers = false, 0, 0
	sum.active, sum.want, sum.floor, sum.waits, sum.lending.dirty = false, 0, 0, 0, true
	sum.turn(q, now)
	g.weights = 0
	dedicated := false
	for _, x := range g.below {
		t := &x.parts[i]
		if x.group != nil {
			p.measure(x, i, now)
		} else {
			p.pass(x, now)
			t.turn(q, now)
			t.waits = t.waiting + t.elsewhere.Waiting
			t.active, t.want = p.active(x, i, now), p.want(x, i, now)
			t.floor = min(max(q.part(x.terms().Min), q.fine(p.gathers(x, i))), t.want)
			t.calm = t.active && p.present(x, i, now) && t.asks.calm(now, q.period, x.free)
		}
		sum.calm = sum.calm || t.calm
		sum.waits += t.waits
		dedicated = dedicated || x.dedicated && x.name == g.name
		if t.active {
			g.weights += x.terms().weight()
			sum.actives++
		}
		if p.reserve > 0 && p.isNew(x, i, now) {
			sum.newcomers += x.terms().weight()
		}
		sum.active = sum.active || t.active
		sum.want = min(sum.want+t.want, endless)
		sum.floor = min(sum.floor+t.floor, endless)
	}
	if g.group == nil {
		return
	}
	terms := g.group.Terms()
	if sum.active || dedicated {
		sum.want = max(sum.want, q.part(terms.Min))
	}
	sum.floor = max(sum.floor, min(q.part(terms.Min), sum.want))
	sum.want = max(min(sum.want, q.most(terms.Max)), sum.floor)
}

// among divides the share of a group among those in it, but for what was used by those that are parked. Each has its
// minimum, those of a higher rank have what they want before those of a lower one, and those of one rank have what is
// left by their weights: none has more than it wants while another wants more. What nobody wants is divided by weight,
// in case somebody does. The reserve of the whole quota is divided among those that have just come.
func (p *Pool) among(g *node, i int, now int64) {
	q := &p.quotas[i]
	parked, floors := g.parts[i].usedAt(now), int64(0)
	for _, x := range g.below {
		parked -= x.parts[i].usedAt(now)
		floors += x.parts[i].floor
	}
	left := max(g.parts[i].share-q.fine(max(parked, 0)), 0)
	slices.SortStableFunc(g.below, func(a, b *node) int { return cmp.Compare(b.terms().Rank, a.terms().Rank) })
	for from, to := 0, 0; from < len(g.below); from = to {
		for to = from; to < len(g.below) && g.below[to].terms().Rank == g.below[from].terms().Rank; to++ {
			floors -= g.below[to].parts[i].floor
		}
		left -= p.level(g.below[from:to], i, max(left-floors, 0))
	}
	for _, x := range g.below {
		t, terms := &x.parts[i], x.terms()
		if left > 0 && t.active {
			t.share += mulDiv(left, terms.weight(), g.weights)
		}
		if g == p.top {
			t.share += p.newcomer(x, i, now)
		}
		t.share = min(t.share, q.most(terms.Max))
		if x.group != nil {
			p.among(x, i, now)
		}
	}
}

// newcomer returns what one of the outermost has of the reserve of a quota: its part among those that have begun to call
// within the last period.
func (p *Pool) newcomer(x *node, i int, now int64) int64 {
	if p.reserve == 0 || !p.isNew(x, i, now) {
		return 0
	}
	weight := x.terms().weight()
	return mulDiv(p.quotas[i].part(p.reserve), weight, max(p.top.parts[i].newcomers, weight)) // it may have come since they were counted
}

// level divides an amount among siblings of one rank. It returns how much of it they have.
func (p *Pool) level(nodes []*node, i int, amount int64) (sum int64) {
	todo := append(p.sorted[:0], nodes...)
	p.sorted = todo
	slices.SortFunc(todo, func(a, b *node) int {
		return cmp.Compare(a.parts[i].want/a.terms().weight(), b.parts[i].want/b.terms().weight())
	})
	for raised := true; raised; { // until everybody has its floor
		left, weights := max(amount, 0), int64(0)
		for _, x := range todo {
			weights += x.terms().weight()
		}
		for _, x := range todo {
			t, weight := &x.parts[i], x.terms().weight()
			t.share = mulDiv(left, weight, weights)
			if t.want <= t.share {
				t.share = t.want
				left -= t.want
				weights -= weight
			}
		}
		raised = false
		todo = slices.DeleteFunc(todo, func(x *node) bool {
			t := &x.parts[i]
			if t.share >= t.floor {
				return false
			}
			t.share, raised = t.floor, true
			amount -= t.floor
			return true
		})
	}
	for _, x := range nodes {
		sum += x.parts[i].share
	}
	return sum
}
