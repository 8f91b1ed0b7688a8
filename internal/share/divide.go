package share

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// growth is how much more a member is expected to ask for than in the period before.
const growth = 1.25

// divide computes the shares of a quota, if they may differ from those computed last.
func (p *Pool) divide(i int, now int64) {
	if q := &p.quotas[i]; q.shares.due(now, len(p.order), q.steady) {
		p.compute(i, now)
	}
}

// compute computes the shares of a quota.
func (p *Pool) compute(i int, now int64) {
	p.tellAll(i)
	q := &p.quotas[i]
	q.shares, q.lending.dirty = outdated{at: now}, true
	p.among(p.tree(i, now), max(0, q.count*(1-p.reserve)-q.parked), i)
	newcomers := p.newcomers(i, now)
	for _, m := range p.order {
		t := &m.parts[i]
		if p.isNew(m, i, now) {
			t.share += p.reserve * q.count * m.terms.weight() / newcomers
		}
		if m.terms.Max > 0 {
			t.share = min(t.share, m.terms.Max*q.count)
		}
	}
}

// among divides an amount of a quota among members and groups. Each has its minimum, those of a
// higher rank have what they want before those of a lower one, and those of one rank have what is
// left by their weights: none has more than it wants while another wants more. What nobody wants is
// divided by weight, in case somebody does. What a group has is divided among those in it.
func (p *Pool) among(nodes []*node, amount float64, i int) {
	count, left, floors, weights := p.quotas[i].count, amount, 0.0, 0.0
	for _, n := range nodes {
		floors += n.floor
		if n.active {
			weights += n.weight()
		}
	}
	slices.SortStableFunc(nodes, func(a, b *node) int { return cmp.Compare(b.terms.Rank, a.terms.Rank) })
	for from, to := 0, 0; from < len(nodes); from = to {
		for to = from; to < len(nodes) && nodes[to].terms.Rank == nodes[from].terms.Rank; to++ {
			floors -= nodes[to].floor
		}
		left -= p.level(nodes[from:to], max(left-floors, 0))
	}
	for _, n := range nodes {
		if left > 0 && n.active {
			n.share += left * n.weight() / weights
		}
		if n.member != nil {
			n.member.parts[i].share, n.member.parts[i].weight = n.share, n.weight()
			continue
		}
		if n.terms.Max > 0 {
			n.share = min(n.share, n.terms.Max*count)
		}
		n.group.parts[i].share, n.group.parts[i].weight = n.share, n.weight()
		p.among(n.inside, n.share, i)
	}
}

// newcomers returns the sum of the weights of the members that are new.
func (p *Pool) newcomers(i int, now int64) (sum float64) {
	for _, m := range p.order {
		if p.isNew(m, i, now) {
			sum += m.terms.weight()
		}
	}
	return sum
}

// isNew reports whether the member has begun to call within the last period.
func (p *Pool) isNew(m *member, i int, now int64) bool {
	return now-m.since < p.quotas[i].period && p.active(m, i, now)
}

// floor returns what a member has of a quota whatever others want.
func (p *Pool) floor(m *member, i int) float64 {
	return min(max(m.terms.Min*p.quotas[i].count, p.gathers(m, i)), m.parts[i].demand)
}

// demand returns how much of a quota a member is expected to use within a period at most.
func (p *Pool) demand(m *member, i int, now int64) float64 {
	q, t := &p.quotas[i], &m.parts[i]
	atOnce, rate := p.asks(m, i, now)
	want := max(t.usedAt(now), atOnce+rate*float64(q.period))
	if m.wants(now) || p.present(m, i, now) && (t.asks.pressed || t.asks.hadToBe || p.isNew(m, i, now)) {
		want = math.Inf(1)
	}
	if m.dedicated || p.active(m, i, now) {
		want = max(want, m.terms.Min*q.count)
	}
	if m.terms.Max > 0 {
		want = min(want, m.terms.Max*q.count)
	}
	return want
}

// asks returns how much of a quota a member is expected to ask for: at once, which is what its waiting
// calls ask for, and in each nanosecond from now on, which is what it asks for when it is free to. One
// that has not called for longer than it usually pauses asks for no more.
func (p *Pool) asks(m *member, i int, now int64) (atOnce, rate float64) {
	t := &m.parts[i]
	switch {
	case now < m.nodesWait:
		return math.Inf(1), 0
	case m.waiting > 0 && !m.own:
		atOnce = float64(m.waiting) * float64(t.size)
	case !p.present(m, i, now):
		return 0, 0
	}
	return atOnce, growth * (t.asks.rate(m.free) + t.elsewhere.Rate)
}

// present reports whether a member is likely to call again soon: if it has called within three times its usual pause, or
// within a minute while calls of it are under way, since all of its callers may wait for their answers, or if the last
// of its calls was turned away, since its caller may try again.
func (p *Pool) present(m *member, i int, now int64) bool {
	t, period := &m.parts[i], p.quotas[i].period
	pause := max(3*period/max(t.asks.now.calls, t.asks.before.calls, t.elsewhere.Calls, 1), period/parts)
	if m.open > 0 || m.turned == m.last {
		pause = max(pause, int64(time.Minute))
	}
	return now-m.last <= min(pause, period)
}

// level divides an amount among members and groups of one rank. It returns how much of it they have.
func (p *Pool) level(nodes []*node, amount float64) (sum float64) {
	p.sorted = append(p.sorted[:0], nodes...)
	slices.SortFunc(p.sorted, func(a, b *node) int {
		return cmp.Compare(a.demand/a.weight(), b.demand/b.weight())
	})
	todo := p.sorted
	for raised := true; raised; { // until everybody has its floor
		left, weights := max(amount, 0), 0.0
		for _, n := range todo {
			weights += n.weight()
		}
		for _, n := range todo {
			if n.share = left / weights * n.weight(); n.demand <= n.share {
				n.share = n.demand
				left -= n.demand
				weights -= n.weight()
			}
		}
		raised = false
		todo = slices.DeleteFunc(todo, func(n *node) bool {
			if n.share >= n.floor {
				return false
			}
			n.share, raised = n.floor, true
			amount -= n.floor
			return true
		})
	}
	for _, n := range nodes {
		sum += n.share
	}
	return sum
}
