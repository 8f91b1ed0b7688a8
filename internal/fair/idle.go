package fair

// forget forgets the members that have asked for nothing within any period, and parks those that have
// not within the shortest. A member that is parked wants nothing, and what it has used counts as used by the group that
// it is in: so those that have called once in a day cost nothing for the rest of it.
func (p *Pool) forget(now int64) {
	for name, m := range p.members {
		p.pass(m, now)
		idle := !m.wants(now) && m.waiting == 0 && !m.dedicated && !p.holds(m) && now-m.called > p.shortest
		active := !idle
		for i := range p.quotas {
			active = active || p.active(m, i, now)
		}
		if !active {
			p.takeOut(m)
			delete(p.members, name)
			p.joined.Add(-1)
			m.parked, m.forgotten = true, true
		} else if idle && !m.parked && m.own.Min == 0 && now-m.last > p.shortest {
			p.leave(m)
			m.parked = true
		}
	}
	for dropped := true; dropped; { // groups that nobody is in
		dropped = false
		for name, g := range p.groups {
			if g.inside == 0 {
				p.takeOut(g)
				delete(p.groups, name)
				dropped = true
			}
		}
	}
}

// unpark gives a member its shares again.
func (p *Pool) unpark(m *node) {
	if m.parked {
		m.parked = false
		p.enter(m)
	}
}
