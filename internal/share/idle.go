package share

import "slices"

// active reports whether a member has asked within the period of a quota.
func (p *Pool) active(m *member, i int, now int64) bool {
	return now-m.last <= p.quotas[i].period || m.parts[i].used.sumAt(now) > 0
}

// forget forgets the members that have asked for nothing within any period, and parks those that have
// not within the shortest.
func (p *Pool) forget(now int64) {
	for i := range p.quotas {
		p.quotas[i].parked = 0
	}
	for _, m := range p.members {
		p.pass(m, now)
		p.tell(m)
		idle := !m.wants(now) && m.waiting == 0 && !m.dedicated && now-m.called > p.shortest
		if idle && !p.activeInAny(m, now) {
			delete(p.members, m.name)
			p.joined.Add(-1)
			m.parked, m.forgotten = true, true
		} else if m.parked = idle && m.terms.Min == 0 && now-m.last > p.shortest; m.parked {
			p.addParked(m, now, 1)
		}
	}
	before := len(p.order)
	if p.order = slices.DeleteFunc(p.order, func(m *member) bool { return m.parked }); len(p.order) < before {
		p.disturb()
	}
	p.dropGroups()
}

func (p *Pool) activeInAny(m *member, now int64) bool {
	for i := range p.quotas {
		if p.active(m, i, now) {
			return true
		}
	}
	return false
}

// unpark lets a member have its shares again. While it was parked, what it has used counted, and it
// was expected to want no more: so those that have called once in a day cost nothing for the rest of
// it.
func (p *Pool) unpark(m *member, now int64) {
	if m.parked {
		m.parked = false
		p.addParked(m, now, -1)
		p.enter(m)
	}
}

// addParked adds what a member has used to what those that are parked have, or takes it from that.
func (p *Pool) addParked(m *member, now int64, sign float64) {
	for i := range m.parts {
		p.quotas[i].parked = max(0, p.quotas[i].parked+sign*m.parts[i].usedAt(now))
	}
}
