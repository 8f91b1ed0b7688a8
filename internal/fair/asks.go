package fair

import "time"

// asks is how much and how fast a member has asked, in this period and in the one before.
type asks struct {
	end              int64 // of this period
	now, before      asked
	freeFrom         int64 // the member's free time when this period began
	pressed, hadToBe bool  // it had to wait, or asked for more than its share, in this period and in the one before
}

// asked is how much a member has asked for in one period, and in how many calls.
type asked struct {
	sum, calls int64
	free       int64 // for how long none of its calls waited, so that it might have asked for more; set at the end
}

// add records that a member asks.
func (a *asks) add(n int64) {
	a.now.sum += n
	a.now.calls++
}

// in returns how much a member asks for in a period in which none of its calls waits. free is the
// member's free time.
func (a *asks) in(period, free int64) int64 {
	return mulDiv(a.now.sum+a.before.sum, period, max(free-a.freeFrom+a.before.free, 1))
}

// calm reports whether none of the member's calls waited for half of the time in this period and in the one before.
func (a *asks) calm(now, period, free int64) bool {
	time := now - (a.end - period)
	if a.before.calls > 0 {
		time += period
	}
	return 2*(free-a.freeFrom+a.before.free) >= time
}

// move begins a new period, if this one is over.
func (a *asks) move(now, period, free int64) {
	if now < a.end {
		return
	}
	a.now.free = free - a.freeFrom
	a.before, a.hadToBe = a.now, a.pressed
	if now >= a.end+period {
		a.before, a.hadToBe = asked{}, false
	}
	a.now, a.pressed, a.end, a.freeFrom = asked{}, false, now+period, free
}

// pass accounts for the time that has passed for a member since it was last looked at.
func (p *Pool) pass(m *node, now int64) {
	if now >= m.nodesEnd {
		p.sum(m, now)
	}
	for i := range m.parts {
		m.parts[i].asks.move(now, p.quotas[i].period, m.free)
	}
	if m.waiting == 0 && m.seen > 0 {
		m.free += now - m.seen
	}
	m.seen = now
}

// active reports whether a member has asked within the period of a quota.
func (p *Pool) active(m *node, i int, now int64) bool {
	return now-m.last <= p.quotas[i].period || m.parts[i].used.sumAt(now) > 0
}

// isNew reports whether a member, or anybody in a group, has begun to call within the last period.
func (p *Pool) isNew(x *node, i int, now int64) bool {
	return now-x.since < p.quotas[i].period && p.active(x, i, now)
}

// present reports whether a member is likely to call again soon: if it has called within three times its usual pause, or
// within a minute while calls of it are under way, since all of its callers may wait for their answers, or if the last
// of its calls was turned away, since its caller may try again.
func (p *Pool) present(m *node, i int, now int64) bool {
	t, period := &m.parts[i], p.quotas[i].period
	pause := max(3*period/max(t.asks.now.calls, t.asks.before.calls, t.elsewhere.Calls, 1), period/parts)
	if m.open > 0 || m.turned == m.last {
		pause = max(pause, int64(time.Minute))
	}
	return now-m.last <= min(pause, period)
}

// wants reports whether calls of the node wait for its share, or for what is shared.
func (x *node) wants(now int64) bool { return x.wanting > 0 || now < x.waitsTo }

// asks returns how much of a quota a member, or all in a group, are expected to ask for: at once, which is what their
// waiting calls ask for, and in a period from now on, which is a quarter more than what they ask for when they are free
// to. A member that has not called for longer than it usually pauses asks for no more.
func (p *Pool) asks(x *node, i int, now int64) (atOnce, inPeriod int64) {
	t := &x.parts[i]
	switch {
	case x.group != nil:
		for _, o := range x.below {
			a, b := p.asks(o, i, now)
			atOnce, inPeriod = min(atOnce+a, endless), min(inPeriod+b, endless)
		}
		return atOnce, inPeriod
	case now < x.waitsTo:
		return endless, 0
	case x.wanting > 0:
		atOnce = int64(x.waiting) * t.size
	case !p.present(x, i, now):
		return 0, 0
	}
	inPeriod = t.asks.in(p.quotas[i].period, x.free) + t.elsewhere.Rate
	return atOnce, min(inPeriod+inPeriod/4, endless)
}

// want returns how much of a quota a member is expected to use within a period at most, in fine units.
func (p *Pool) want(m *node, i int, now int64) int64 {
	q, t := &p.quotas[i], &m.parts[i]
	want := int64(endless)
	if q.held {
		want = p.wantHeld(m, i, now)
	} else if !m.wants(now) && !(p.present(m, i, now) && (t.asks.pressed || t.asks.hadToBe || t.elsewhere.Pressed || p.isNew(m, i, now))) {
		atOnce, inPeriod := p.asks(m, i, now)
		want = q.fine(max(t.usedAt(now), atOnce+inPeriod, 0))
	}
	terms := m.terms()
	if m.dedicated || p.active(m, i, now) {
		want = max(want, q.part(terms.Min))
	}
	return min(want, q.most(terms.Max))
}
