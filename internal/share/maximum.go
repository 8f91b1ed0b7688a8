package share

import (
	"math"
	"sync/atomic"
)

// most returns how much of a quota a part of it is at most; a part of 0 is no maximum.
func (q *quota) most(part float64) float64 {
	if part == 0 {
		return math.Inf(1)
	}
	return math.Floor(part*q.count + 1e-6) // 29% of 100 are 29, and not 28.999
}

// maxima are the maxima of a member and of the groups that it is in.
type maxima struct {
	least  float64 // of those that are set, as a part of every quota; 0: none is
	groups bool    // that of a group is set
	asOf   uint64  // the number of termsSet when they were found, plus one; 0: they are to be found anew
}

// termsSet counts how often the terms of a group were set.
var termsSet atomic.Uint64

// maxima returns the maxima of a member as they are now.
func (p *Pool) maxima(m *member) *maxima {
	if now := termsSet.Load() + 1; m.maxima.asOf != now || !m.placed {
		m.maxima = maxima{least: m.terms.Max, asOf: now}
		for g := p.inside(m); g != nil; g = g.above {
			if most := g.Terms().Max; most > 0 {
				m.maxima.groups = true
				if m.maxima.least == 0 || most < m.maxima.least {
					m.maxima.least = most
				}
			}
		}
	}
	return &m.maxima
}

// most returns how much of a quota a member may ever have used, by its maximum and by those of the
// groups that it is in.
func (p *Pool) most(m *member, i int) float64 { return p.quotas[i].most(p.maxima(m).least) }

// capped reports whether the maximum of a member, or of a group that it is in, denies a call of an
// amount.
func (p *Pool) capped(m *member, i int, now, n int64) bool {
	q := &p.quotas[i]
	if m.terms.Max > 0 && m.parts[i].usedAt(now)+float64(n) > q.most(m.terms.Max) {
		return true
	}
	if !p.maxima(m).groups {
		return false
	}
	for g := p.inside(m); g != nil; g = g.above {
		if most := g.Terms().Max; most > 0 && p.usedIn(g, i, now)+float64(n) > q.most(most) {
			return true
		}
	}
	return false
}

// counted is the sum of what the members in a group have used. A new sum costs more the more members there are, so
// it is made only when a part of the period ends; charges and corrections are added to it meanwhile.
type counted struct {
	sum   float64
	until int64 // when time changes it next
	asOf  int64 // Pool.recounts when it was counted, plus one; 0: it was not
}

// usedIn returns what the members in a group have used of a quota.
func (p *Pool) usedIn(g *group, i int, now int64) float64 {
	c := &g.parts[i].used
	if c.asOf == p.recounts+1 && now < c.until {
		return c.sum
	}
	q := &p.quotas[i]
	q.countedAt = max(q.countedAt, now)
	*c = counted{until: q.changesAt(now), asOf: p.recounts + 1}
	for _, m := range p.members {
		if !p.inside(m).isIn(g) {
			continue
		}
		t := &m.parts[i]
		if c.sum += t.usedAt(now); now < t.unheardUntil {
			c.until = min(c.until, t.unheardUntil)
		}
	}
	return c.sum
}

// changesAt returns when time alone next changes what counts as used of a quota.
func (q *quota) changesAt(now int64) int64 {
	if q.used.part == 0 {
		return math.MaxInt64 // see clear
	}
	return now - modulo(now, q.used.part) + q.used.part
}

// addUsed adds what a member has used to what is counted of the groups that it is in.
func (p *Pool) addUsed(m *member, i int, n float64) {
	for g := p.inside(m); g != nil; g = g.above {
		g.parts[i].used.sum += n
	}
}

// groupsWait returns how long it takes until the maxima of the groups that a member is in let a call of
// an amount pass, of a quota that slides.
func (p *Pool) groupsWait(m *member, i int, now, n int64) (wait int64) {
	q := &p.quotas[i]
	for g := p.inside(m); g != nil; g = g.above {
		if most := g.Terms().Max; most > 0 {
			wait = max(wait, q.untilUsed(p.usedAhead(g, i, now), q.most(most)-float64(n)))
		}
	}
	return wait
}

// usedAhead returns what the members in a group have used of a quota from now on, if they use nothing
// else.
func (p *Pool) usedAhead(g *group, i int, now int64) (sum curve) {
	for _, m := range p.members {
		if !p.inside(m).isIn(g) {
			continue
		}
		var here curve
		m.parts[i].used.ahead(now, &here)
		elsewhere := m.parts[i].usedAt(now) - here[0]
		for k, n := range here {
			sum[k] += n + elsewhere
		}
	}
	return sum
}

// untilUsed returns how long it takes until no more than an amount is used: a period, if that is not
// known.
func (q *quota) untilUsed(ahead curve, most float64) int64 {
	for k, n := range ahead {
		if n <= most {
			return q.after(k)
		}
	}
	return q.period
}
