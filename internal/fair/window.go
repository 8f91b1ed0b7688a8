package fair

import (
	"math"

	"dappco.re/go/core/go-ratelimit/limit"
)

// move begins new fixed windows where they have ended, and forgets members that do not call any more.
func (p *Pool) move(now int64) {
	if p.dedicated.terms.Load() != p.seen {
		p.dedicate(now)
	}
	if now < p.moveAt {
		return
	}
	p.moveAt = math.MaxInt64
	for i := range p.quotas {
		q := &p.quotas[i]
		if q.limit.Algorithm() != limit.FixedWindow {
			continue
		}
		if now >= q.resetAt {
			q.began, q.resetAt = q.limit.Window(now)
			p.clear(i)
		}
		p.moveAt = min(p.moveAt, q.resetAt)
	}
	if now >= p.sweepAt {
		p.sweepAt = now + p.shortest
		p.forget(now)
	}
	p.moveAt = min(p.moveAt, p.sweepAt)
}

// clear forgets what was used of a quota.
func (p *Pool) clear(i int) {
	p.quotas[i].shares.dirty = true
	p.quotas[i].others.clear()
	p.each(func(x *node) {
		t := &x.parts[i]
		t.used.clear()
		t.remote, t.unheard, t.carry, t.excess, t.since = 0, 0, 0, 0, 0
		for _, r := range x.nodes {
			r.Parts[i].Used = 0
		}
	})
}

// each calls do with every node of the tree.
func (p *Pool) each(do func(*node)) {
	do(p.top)
	for _, g := range p.groups {
		do(g)
	}
	for _, m := range p.members {
		do(m)
	}
}

// Reset forgets what members have used.
func (p *Pool) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.quotas {
		if !p.quotas[i].held { // otherwise the calls are still under way
			p.clear(i)
		}
	}
}

// Began enters when the window of a quota began and when it ends, by the quota's own count; a time of 0,
// that none has begun. The window of a pool that is younger than the count, or was not asked first,
// differs if windows begin with the first call. What was used before the quota's window is forgotten.
func (p *Pool) Began(i int, now, began, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.quotas[i]
	if q.limit.Algorithm() != limit.FixedWindow {
		return
	}
	if start, _ := q.limit.Window(now); start != now {
		return // the calendar decides when it begins
	}
	if began == 0 {
		began, end = now, now+q.period
	}
	if began-q.began > q.period/parts {
		p.clear(i)
	}
	q.began, q.resetAt, p.moveAt = began, end, min(p.moveAt, end)
}

// Seed gives the pool its first member, which has called before without the pool: used is what is used
// of each quota, all of it by this member. When it was used is not known, so it counts as used evenly over
// the last period.
func (p *Pool) Seed(w *Who, t Terms, now int64, used []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	if len(p.members) > 0 {
		return
	}
	for x := p.member(w, t, now); x != nil; x = x.above {
		x.called, x.asked, x.last = now, now, now
		for i := range p.quotas {
			if !p.quotas[i].held { // of what is held, nobody would report that it was given back
				x.parts[i].used.spread(now, used[i])
			}
		}
	}
}
