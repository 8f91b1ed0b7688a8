package fair

// over returns by how much more than the share is used at a time.
func (t *part) over(q *quota, at int64) int64 { return t.counts(at) - t.share>>q.scale }

// exceed records by how much a share is exceeded now. That counts as used in the next
// period, as carry: so after a call of twice the share, the next one comes two periods later.
func (t *part) exceed(q *quota, now int64) {
	by := t.over(q, now)
	if by <= 0 || !q.slides() {
		return
	}
	t.excess = max(t.excess, by)
	if t.since == 0 {
		t.since = now
	}
}

// turn makes the excess count as used, when the period is over in which it was.
func (t *part) turn(q *quota, now int64) {
	switch {
	case t.counts(now) > 0: // also by calls on other nodes
		t.unused = 0
	case t.unused == 0:
		t.unused = now
	}
	switch {
	case t.since == 0 || now < t.since+q.period:
		return
	case now >= t.since+2*q.period:
		t.carry, t.excess = 0, 0
	default:
		t.carry, t.excess = max(0, t.excess, t.carry-t.share>>q.scale), 0
	}
	t.since += q.period
	if t.carry == 0 {
		t.since = 0
	}
}
