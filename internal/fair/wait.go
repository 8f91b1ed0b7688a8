package fair

import "math"

// Waiting is a call that waits: see [Pool.Wait]. It counts for one member until it leaves, even if
// other calls of the same caller count for another one meanwhile.
type Waiting struct {
	member *node
	here   bool // it counts in caller.here
	quota  int  // the quota for which it counts in part.waiting, from 1; 0: none
}

// Wait enters one more call of a member, which waits from now on.
func (p *Pool) Wait(w *Who, t Terms, now int64) Waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.member(w, t, now)
	p.pass(m, now)
	p.lift(m, now)
	m.waiting++
	m.setWanting()
	p.wantsMore(m)
	return Waiting{member: m}
}

// setWanting counts whether the member's calls that wait do so for its share, for all above it too. Calls of one member
// wait for many models, so in a pool with a root the member wants its share as long as any of them waits for that.
func (m *node) setWanting() {
	switch {
	case m.waiting == 0:
		m.byOwn = false
	case m.pool.root != nil:
		m.byOwn = m.here == 0
	}
	wanting := m.waiting
	if m.byOwn {
		wanting = 0
	}
	by := wanting - m.wanting
	m.changed = m.changed || by != 0
	for x := m; x != nil; x = x.above {
		x.wanting += by
	}
}

// Want records that a call which does not wait was denied, so that the share of its member is not lent to others. asked
// is true if Take has counted the call already.
func (p *Pool) Want(w *Who, t Terms, now int64, amounts []Amount, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(w, t, now)
	if !asked {
		p.ask(m, now, amounts, false)
	}
	for i := range amounts {
		if a := &m.parts[i].asks; amounts[i].N >= 0 && !a.pressed {
			a.pressed, p.quotas[i].shares.dirty = true, true
		}
	}
	m.turned = m.last
	p.wantsMore(m)
}

// lift makes those of a member and above it that begin to wait be served no sooner than their siblings that wait
// already, or than a large call of these if calls of it have waited within the last period.
func (p *Pool) lift(m *node, now int64) {
	for x := m; x.above != nil; x = x.above {
		if x.wants(now) || now-x.left <= p.shortest/parts {
			continue
		}
		for i := range p.quotas {
			if p.quotas[i].held {
				continue // nothing of it is lent
			}
			least := int64(math.MaxInt64)
			for _, o := range x.above.below {
				if o != x && o.wants(now) {
					least = min(least, o.parts[i].served)
				}
			}
			if least == math.MaxInt64 {
				continue
			}
			if q := &p.quotas[i]; now-x.left <= p.shortest {
				least -= q.fine(min(x.above.parts[i].large, q.count))
			}
			x.parts[i].served = max(x.parts[i].served, least)
		}
	}
}

// Turn enters what a waiting call of a member has found when it asked: whether something else than the pool's quotas
// denies it, and which quota of what calls hold does, if nothing else does, or -1. If something else does, the member
// does not want its share until a call of it finds otherwise. It reports whether other nodes should know of it at once,
// because calls wait for what others hold or do so no more.
func (w *Waiting) Turn(own bool, held int) (tell bool) {
	m, p := w.member, w.member.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	tell = w.waitFor(held)
	w.waitsHere(!own)
	m.byOwn = own
	m.setWanting()
	if m.byOwn {
		p.endGathering(m, m.seen)
	} else {
		p.gather(m)
		p.wantsMore(m)
	}
	return tell
}

// waitsHere records whether nothing but the quotas of the pool denies the call.
func (w *Waiting) waitsHere(here bool) {
	if w.here == here {
		return
	}
	w.here = here
	if here {
		w.member.here++
	} else {
		w.member.here--
	}
}

// wantsMore has shares computed again if a member may want more than was expected.
func (p *Pool) wantsMore(m *node) {
	for i := range m.parts {
		for g := m.above; g != nil; g = g.above {
			g.parts[i].lending.dirty = true
		}
		if t := &m.parts[i]; t.want <= t.share {
			p.quotas[i].shares.dirty = true
		}
	}
}

// Leave takes out the call, because it waits no more. It reports whether other nodes should know, as Turn does.
func (w *Waiting) Leave(now int64) (tell bool) {
	m, p := w.member, w.member.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass(m, now)
	if m.wants(now) {
		for i := range m.parts {
			m.parts[i].asks.pressed = true
		}
	}
	if w.here {
		p.endGathering(m, now) // another call of the member may begin anew
	}
	w.waitsHere(false)
	tell = w.waitFor(-1)
	m.waiting--
	m.setWanting()
	for x := m; x != nil && x.wanting == 0; x = x.above {
		x.left = now
	}
	return tell
}
