package share

import "math"

// Waiting is a call that waits: see [Pool.Wait]. It counts for one member until it leaves, even if
// other calls of the same caller count for another one meanwhile.
type Waiting struct {
	member *member
	here   bool // it counts in member.here
}

// Wait says that one more call of a member, which asks for amounts, waits from now on.
func (p *Pool) Wait(w *Who, t Terms, now int64, amounts []Amount) Waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.member(w, t, now)
	p.pass(m, now)
	if !m.wants(now) && now-m.left > p.shortest/parts {
		p.lift(m, now)
	}
	m.waiting++
	for i := range amounts {
		if t := &m.parts[i]; t.size == 0 { // none of its calls has had the turn yet
			t.size = max(amounts[i].N, 0)
		}
	}
	if p.root != nil {
		m.own = m.here == 0
	}
	p.wantsMore(m)
	return Waiting{member: m}
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

// lift lets a member that begins to wait be served no sooner than those who wait already. So it does
// with the groups that the member is in, if nobody in them waits.
func (p *Pool) lift(m *member, now int64) {
	for i := range p.quotas {
		p.tellAll(i)
		for in, below := p.inside(m), (*group)(nil); ; in, below = in.above, in {
			served := &m.parts[i].served
			if below != nil {
				served = &below.parts[i].served
			}
			least, waits := math.Inf(1), false
			for _, o := range p.order {
				if o == m || !o.wants(now) || !p.inside(o).isIn(in) {
					continue
				}
				if below != nil && p.inside(o).isIn(below) {
					waits = true
					break
				}
				_, other := p.rivals(i, m, o)
				least = min(least, other.served)
			}
			if !waits && !math.IsInf(least, 1) {
				*served = max(*served, least)
			}
			if in == nil {
				break
			}
		}
	}
}

// Turn says what a waiting call of a member has found when it asked: whether something else than the
// pool's quotas denies it. Then the member does not want its share until a call of it finds otherwise.
// Calls of one member wait for many models, so in a pool with a root the member wants its share as long as
// any of them waits for that.
func (w *Waiting) Turn(own bool) {
	m, p := w.member, w.member.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.root != nil {
		w.waitsHere(!own)
		own = m.here == 0
	}
	if m.own = own; own {
		p.endGathering(m, m.seen)
	} else {
		p.gather(m)
		p.wantsMore(m)
	}
}

// waitsHere says whether nothing but the quotas of a pool with a root denies the call.
func (w *Waiting) waitsHere(here bool) {
	if w.here == here {
		return
	}
	if w.here = here; here {
		w.member.here++
	} else {
		w.member.here--
	}
}

// wantsMore lets shares be computed again if a member may want more than was expected.
func (p *Pool) wantsMore(m *member) {
	for i := range m.parts {
		p.quotas[i].lending.dirty = true
		if t := &m.parts[i]; t.demand <= t.share {
			p.quotas[i].shares.dirty = true
		}
	}
}

// wants reports whether calls of the member wait for its share, or for what is shared.
func (m *member) wants(now int64) bool { return m.waiting > 0 && !m.own || now < m.nodesWait }

// Leave says that the call waits no more.
func (w *Waiting) Leave(now int64) {
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
	if p.root != nil {
		m.own = m.here == 0
	}
	if m.waiting--; m.waiting == 0 {
		m.own, m.left = false, now
	}
}
