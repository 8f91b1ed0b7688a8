package share

// exceed records by how much a member exceeds its share of a quota now. That counts as used in the next
// period, as carry: so after a call of twice the share, the next one comes two periods later.
func (p *Pool) exceed(m *member, i int, now int64) {
	q, t := &p.quotas[i], &m.parts[i]
	by := t.counts(now) - t.share
	if by <= 0 || q.resetAt > 0 {
		return
	}
	if t.excess = max(t.excess, by); t.since == 0 {
		t.since = now
		m.nextTurn = min(m.nextTurn, now+q.period)
	}
}

// turn lets the excess count as used, when the period is over in which it was.
func (t *part) turn(period, now int64) {
	switch {
	case t.since == 0 || now < t.since+period:
		return
	case now >= t.since+2*period:
		t.carry, t.excess = 0, 0
	default:
		t.carry, t.excess = max(0, t.excess, t.carry-t.share), 0
	}
	if t.since += period; t.carry == 0 {
		t.since = 0
	}
}
