package share

import "math"

// asks is how much and how fast a member has asked, in this period and in the one before.
type asks struct {
	end              int64 // of this period
	now, before      asked
	freeFrom         int64 // the member's free time when this period began
	pressed, hadToBe bool  // it had to wait, or asked for more than its share, in this period and in the one before
}

// asked is what a member has asked for in a period.
type asked struct {
	sum, calls int64
	free       int64 // for how long none of its calls waited, so that it might have asked for more; set at the end
}

// add records that a member asks.
func (a *asks) add(n int64) {
	a.now.sum += n
	a.now.calls++
}

// rate returns how much a member asks for in a nanosecond in which none of its calls waits. free is the
// member's free time.
func (a *asks) rate(free int64) float64 {
	return float64(a.now.sum+a.before.sum) / float64(max(free-a.freeFrom+a.before.free, 1))
}

// move begins a new period, if this one is over.
func (a *asks) move(now, period, free int64) {
	if now < a.end {
		return
	}
	a.now.free = free - a.freeFrom
	if a.before, a.hadToBe = a.now, a.pressed; now >= a.end+period {
		a.before, a.hadToBe = asked{}, false
	}
	a.now, a.pressed, a.end, a.freeFrom = asked{}, false, now+period, free
}

// takeBack lets it be as if the member had not asked.
func (a *asks) takeBack(n int64) {
	if n > 0 {
		a.now.sum, a.now.calls = max(0, a.now.sum-n), max(0, a.now.calls-1)
	}
}

// pass accounts for the time that has passed for a member since it was last looked at.
func (p *Pool) pass(m *member, now int64) {
	if now >= m.nodesEnd {
		p.sum(m, now)
	}
	if now >= m.nextTurn {
		p.turn(m, now)
	}
	if m.waiting == 0 && m.seen > 0 {
		m.free += now - m.seen
	}
	m.seen = now
}

// turn ends the periods of a member that are over.
func (p *Pool) turn(m *member, now int64) {
	m.nextTurn = math.MaxInt64
	for i := range m.parts {
		t, period := &m.parts[i], p.quotas[i].period
		t.asks.move(now, period, m.free)
		t.turn(period, now)
		if m.nextTurn = min(m.nextTurn, t.asks.end); t.since != 0 {
			m.nextTurn = min(m.nextTurn, t.since+period)
		}
	}
}
