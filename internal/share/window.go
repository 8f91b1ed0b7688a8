package share

import "slices"

// move opens the windows that hold now, in place of those that have ended.
func (p *Pool) move(now int64) {
	p.now = now
	p.dedicate()
	moved := false
	for i := range p.quotas {
		if q := &p.quotas[i]; !q.opened || now >= q.end {
			p.open(i, now)
			moved = true
		}
	}
	if moved {
		p.forget()
	}
}

// open opens the window of a quota that holds now.
func (p *Pool) open(i int, now int64) {
	q := &p.quotas[i]
	follows := false
	if q.opened {
		p.compute(i, q.end) // the shares at the end decide what is carried
		follows = now-q.end < int64(q.limit.Period())
	}
	q.opened, q.dirty = true, true
	q.start, q.end = q.limit.Window(now)
	for _, m := range p.order {
		m.parts[i].open(m.wants(), follows, q.count)
	}
}

// open lets a part begin a new window. If it does not follow the one before, what the
// member had there does not count any more.
func (t *part) open(waiting, follows bool, count float64) {
	before := *t
	*t = part{size: t.size}
	if follows {
		due := min(before.share-before.used, count)
		t.carry = max(0, min(before.excess, -due))
		if waiting && due > 0 && before.askedBefore > 0 {
			t.carry = -due
		}
		t.used, t.excess = t.carry, max(t.carry, 0)
		t.askedBefore, t.callsBefore, t.pressedBefore = before.asked, before.calls, before.pressed
	}
	if waiting {
		t.asked, t.calls = 1, 1
	}
}

// forget forgets the members that have asked for nothing in the last two windows.
func (p *Pool) forget() {
	p.order = slices.DeleteFunc(p.order, func(m *member) bool {
		idle := m.waiting == 0 && !m.dedicated && !slices.ContainsFunc(m.parts, func(t part) bool { return t.active() })
		if idle {
			delete(p.members, m.name)
			p.joined.Add(-1)
		}
		return idle
	})
}
