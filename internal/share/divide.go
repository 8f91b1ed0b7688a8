package share

import (
	"cmp"
	"math"
	"slices"
)

// growth is how much more a member is expected to ask for than in the period before.
const growth = 1.25

// divide computes the shares of a quota, if they may differ from those computed last.
func (p *Pool) divide(i int, now int64) {
	if q := &p.quotas[i]; q.shares.due(now, len(p.order), q.steady) {
		p.compute(i, now)
	}
}

// compute computes the shares of a quota. Every member has its minimum, those of a higher
// rank have what they want before those of a lower one, and the members of one rank have
// what is left by their weights: none has more than it wants while another wants more.
// What nobody wants is divided by weight, in case somebody does.
func (p *Pool) compute(i int, now int64) {
	q := &p.quotas[i]
	q.shares, q.lending.dirty = outdated{at: now}, true
	left := max(0, q.count*(1-p.reserve)-q.parked)
	weights, newcomers := p.weights(i, now)
	q.weights = weights
	floors := 0.0
	for _, m := range p.order {
		p.pass(m, now)
		m.parts[i].demand = p.demand(m, i, now)
		floors += p.floor(m, i)
	}
	for from, to := 0, 0; from < len(p.order); from = to {
		for to = from; to < len(p.order) && p.order[to].terms.Rank == p.order[from].terms.Rank; to++ {
			floors -= p.floor(p.order[to], i)
		}
		left -= p.level(p.order[from:to], i, max(left-floors, 0))
	}
	for _, m := range p.order {
		t := &m.parts[i]
		if left > 0 && p.active(m, i, now) {
			t.share += left * m.weight() / weights
		}
		if p.isNew(m, i, now) {
			t.share += p.reserve * q.count * m.weight() / newcomers
		}
		if m.terms.Max > 0 {
			t.share = min(t.share, m.terms.Max*q.count)
		}
	}
}

// weights returns the sum of the weights of the members that are active, and of those that are new.
func (p *Pool) weights(i int, now int64) (active, newcomers float64) {
	p.quotas[i].active = 0
	for _, m := range p.order {
		if p.active(m, i, now) {
			active += m.weight()
			p.quotas[i].active++
		}
		if p.isNew(m, i, now) {
			newcomers += m.weight()
		}
	}
	return active, newcomers
}

func (m *member) weight() float64 { return float64(max(m.terms.Weight, 1)) }

// isNew reports whether the member has begun to call within the last period.
func (p *Pool) isNew(m *member, i int, now int64) bool {
	return now-m.since < p.quotas[i].period && p.active(m, i, now)
}

// floor returns what a member has of a quota whatever others want.
func (p *Pool) floor(m *member, i int) float64 {
	return min(m.terms.Min*p.quotas[i].count, m.parts[i].demand)
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

// present reports whether a member is likely to call again soon, by how often it has called.
func (p *Pool) present(m *member, i int, now int64) bool {
	t, period := &m.parts[i], p.quotas[i].period
	pause := 3 * period / max(t.asks.now.calls, t.asks.before.calls, t.elsewhere.Calls, 1)
	return now-m.last <= min(max(pause, period/parts), period)
}

// level divides an amount of a quota among members of one rank. It returns how much of it
// they have.
func (p *Pool) level(members []*member, i int, amount float64) (sum float64) {
	p.sorted = append(p.sorted[:0], members...)
	slices.SortFunc(p.sorted, func(a, b *member) int {
		return cmp.Compare(a.parts[i].demand/a.weight(), b.parts[i].demand/b.weight())
	})
	todo := p.sorted
	for raised := true; raised; { // until everybody has its floor
		left, weights := max(amount, 0), 0.0
		for _, m := range todo {
			weights += m.weight()
		}
		for _, m := range todo {
			t := &m.parts[i]
			if t.share = left / weights * m.weight(); t.demand <= t.share {
				t.share = t.demand
				left -= t.demand
				weights -= m.weight()
			}
		}
		raised = false
		todo = slices.DeleteFunc(todo, func(m *member) bool {
			t, floor := &m.parts[i], p.floor(m, i)
			if t.share >= floor {
				return false
			}
			t.share, raised = floor, true
			amount -= floor
			return true
		})
	}
	for _, m := range members {
		sum += m.parts[i].share
	}
	return sum
}
