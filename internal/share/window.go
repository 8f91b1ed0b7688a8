package share

import (
	"math"

	"dappco.re/go/core/go-ratelimit/limit"
)

// move lets fixed windows that have ended be followed by new ones, and forgets members
// that do not call any more.
func (p *Pool) move(now int64) {
	if p.dedicated != nil && p.dedicated.terms.Load() != p.seen {
		p.dedicate(now)
	}
	if now >= p.moveAt {
		p.moveOn(now)
	}
}

// moveOn is move once it is time.
func (p *Pool) moveOn(now int64) {
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

// clear forgets what was used in a fixed window.
func (p *Pool) clear(i int) {
	q := &p.quotas[i]
	q.used.clear()
	q.parked, q.shares.dirty = 0, true
	p.recounts++
	for _, m := range p.members {
		m.parts[i].used.clear()
		m.parts[i].remote = 0
		for _, r := range m.nodes {
			r.Parts[i].Used = 0
		}
	}
}

// Began says when the window of a quota began and when it ends, by the quota's own count; a time of 0,
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
		return // the calendar says it
	}
	if began == 0 {
		began, end = now, now+q.period
	}
	if began-q.began > q.period/parts {
		p.clear(i)
	}
	q.began, q.resetAt, p.moveAt = began, end, min(p.moveAt, end)
}
