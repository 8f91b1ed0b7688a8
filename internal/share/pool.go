// Package share divides quotas among those who use them, by weight.
//
// A [Pool] is the quotas of one model. Its members are the projects that use the model.
// Every member has a share of each quota. A member within its share passes. A member that
// has used its share passes too, as long as the others are expected to find theirs when
// they ask for it: so what they do not want is lent, and a member that is alone has
// everything.
//
// What is expected of a member is what it does: how much it asks for, and how fast. What
// is expected of a quota is known: what was used comes back a period later.
//
// A pool only denies. It does not know what the quotas themselves say.
package share

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Pool is quotas that several members share. All of its methods may be called at a time.
// Times are Unix nanoseconds.
type Pool struct {
	reserve float64      // the part of every quota that is kept for newcomers
	joined  atomic.Int32 // the number of members

	dedicated *Dedicated // nil: no members are dedicated

	mu      sync.Mutex
	seen    *map[string]Terms // the dedicated members that the pool has
	quotas  []quota
	members map[string]*member
	order   []*member // by rank, the highest first
	sorted  []*member // room for the computation of shares
	sweepAt int64     // when members that do not call any more are forgotten next
}

// quota is one of the quotas of a pool.
type quota struct {
	limit   limit.Limit
	period  int64
	count   float64
	used    ring               // by all members, here
	nodes   map[string]nodeUse // and on other nodes
	began   int64              // when a fixed window began
	resetAt int64              // when it ends; 0 for a quota that slides

	dirty     bool  // something has changed by which a share may become smaller
	divided   int64 // when the shares were computed last
	decisions int   // on calls, since then

	foreseen int64   // when spare was computed
	spare    float64 // how much more comes back than others are expected to want, at the worst time: see foresee
}

// Terms are the promises that a member has.
type Terms struct {
	Weight   int     // of the member among those of its rank, from 1
	Rank     int     // members of a higher rank have what they want before those of a lower one
	Min, Max float64 // the parts of every quota that the member has at least and at most; a Max of 0 is all
}

// member is one of those who share a pool.
type member struct {
	name      string
	terms     Terms
	dedicated bool  // the minimum is kept free even if the member has not called for long
	waiting   int   // calls that wait
	own       bool  // a limit of the member's own denies those that wait
	since     int64 // when it asked first, after it had not for a period
	called    int64 // when it asked last, here, even if that was not to count
	asked     int64 // when it asked last, here
	last      int64 // and on any node
	left      int64 // when the last of its calls that waited passed or gave up
	seen      int64 // until when its time is accounted for: see pass
	parts     []part

	nodes     map[string]nodeReport // what other nodes have reported
	nodesWait int64                 // until when the member wants its share there, by these
	nodesEnd  int64                 // when the first of these counts no longer
}

// part is what a member has of one quota.
type part struct {
	share  float64
	demand float64 // how much of the quota the member is expected to use at most
	used   ring    // within the last period, or in the fixed window, here
	remote float64 // and on other nodes, by their reports

	unheard      float64 // used on other nodes too, as a store has counted; they will report it
	unheardUntil int64   // when they will have

	// excess is by how much the member has exceeded its share at most. It counts as used in the next
	// period, as carry: so after a call of twice the share, the next one comes two periods later.
	excess, carry float64
	since         int64 // when the period began in which there was an excess or a carry; 0: there was none

	served    float64 // what it was served over its weight; a member that comes to wait is lifted to the least of those who do
	size      int64   // the amount that it asked for last
	extra     float64 // by how much its calls use more than they ask for, on average
	asks      asks
	elsewhere PartReport // the sum of what other nodes have reported
}

// NewPool returns a pool of quotas without members. reserve is the part of every quota
// that only members have who have begun to call within the last period.
func NewPool(quotas []limit.Limit, reserve float64) *Pool {
	p := &Pool{reserve: reserve, members: map[string]*member{}}
	for _, l := range quotas {
		p.quotas = append(p.quotas, quota{limit: l, period: int64(l.Period()), count: float64(l.Count()), used: newRing(l)})
	}
	return p
}

// Amount is what a call asks for of one quota.
type Amount struct {
	N     int64 // -1 if the call has no part in the quota
	Count int64 // of the quota, as it is now
	Extra int64 // what was charged beyond N, because such calls use more: set when the amount is taken
}

// charged returns what was charged for the amount.
func (a *Amount) charged() int64 {
	if a.N < 0 {
		return a.N
	}
	return a.N + a.Extra
}

// Empty reports whether the pool has no members.
func (p *Pool) Empty() bool { return p.joined.Load() == 0 && p.dedicated.empty() }

// Alone reports whether the pool has one member at most.
func (p *Pool) Alone() bool { return p.joined.Load() <= 1 }

// member returns the member of a name, which has its terms from now on.
func (p *Pool) member(name string, t Terms) *member {
	m := p.members[name]
	switch {
	case m == nil:
		m = &member{name: name, parts: make([]part, len(p.quotas)), called: longAgo, asked: longAgo, last: longAgo}
		for i := range m.parts {
			m.parts[i].used = newRing(p.quotas[i].limit)
		}
		p.members[name] = m
		p.joined.Add(1)
	case m.terms == t:
		return m
	default:
		p.order = slices.DeleteFunc(p.order, func(o *member) bool { return o == m })
	}
	m.terms = t
	at := slices.IndexFunc(p.order, func(o *member) bool { return o.terms.Rank < t.Rank })
	if at < 0 {
		at = len(p.order)
	}
	p.order = slices.Insert(p.order, at, m)
	p.disturb()
	return m
}

const longAgo = math.MinInt64 / 2

// disturb lets the shares of all quotas be computed again.
func (p *Pool) disturb() {
	for i := range p.quotas {
		p.quotas[i].dirty = true
	}
}

// Denial says which share denies a call. The zero Denial denies nothing.
type Denial struct {
	Denied  bool
	Quota   int   // the index of the quota
	Share   int64 // of the member
	Used    int64 // by the member
	Members int   // that share the quota now
	Until   int64 // when enough of what the member has used has come back
}

// Take takes amounts, one of each quota, of a member's shares, or nothing if a share
// denies. again says that the call has asked before.
func (p *Pool) Take(name string, t Terms, now int64, amounts []Amount, again bool) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(name, t)
	p.ask(m, now, amounts, again)
	d := p.decide(m, now, amounts)
	if !d.Denied {
		p.charge(m, now, amounts, false)
	}
	return d
}

// Peek says what Take would, and takes nothing.
func (p *Pool) Peek(name string, now int64, amounts []Amount) (d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	if m := p.members[name]; m != nil {
		d = p.decide(m, now, amounts)
	}
	return d
}

// move lets fixed windows that have ended be followed by new ones, and forgets members
// that do not call any more.
func (p *Pool) move(now int64) {
	p.dedicate()
	for i := range p.quotas {
		q := &p.quotas[i]
		if q.limit.Algorithm() != limit.FixedWindow || now < q.resetAt {
			continue
		}
		q.began, q.resetAt = q.limit.Window(now)
		p.clear(i)
	}
	if now >= p.sweepAt {
		p.sweepAt = now + p.shortest()
		p.forget(now)
	}
}

// clear forgets what was used in a fixed window.
func (p *Pool) clear(i int) {
	q := &p.quotas[i]
	q.used.clear()
	q.dirty = true
	for _, m := range p.order {
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
	q.began, q.resetAt = began, end
}

// shortest returns the shortest period of a quota.
func (p *Pool) shortest() int64 {
	period := int64(math.MaxInt64)
	for i := range p.quotas {
		period = min(period, p.quotas[i].period)
	}
	return period
}

// forget forgets the members that have not asked for anything within a period.
func (p *Pool) forget(now int64) {
	p.order = slices.DeleteFunc(p.order, func(m *member) bool {
		idle := !m.wants(now) && m.waiting == 0 && !m.dedicated && now-m.called > p.shortest()
		for i := range p.quotas {
			idle = idle && !p.active(m, i, now)
		}
		if idle {
			delete(p.members, m.name)
			p.joined.Add(-1)
		}
		return idle
	})
}

// active reports whether a member has asked within the period of a quota.
func (p *Pool) active(m *member, i int, now int64) bool {
	return now-m.last <= p.quotas[i].period || m.parts[i].used.sumAt(now) > 0
}

// ask records that a member wants amounts.
func (p *Pool) ask(m *member, now int64, amounts []Amount, again bool) {
	p.pass(m, now)
	if now-max(m.last, m.called) > p.shortest() {
		m.since = now
		p.disturb()
	}
	m.called, m.asked, m.last = now, now, now
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		n := t.expected(amounts[i].N)
		if count := float64(amounts[i].Count); q.count != count {
			q.count, q.dirty = count, true
		}
		if n < 0 {
			continue
		}
		q.decisions++
		t.size = n
		if !again {
			t.asks.add(now, q.period, n)
		}
	}
}

// pass accounts for the time that has passed for a member since it was last looked at.
func (p *Pool) pass(m *member, now int64) {
	if len(m.nodes) > 0 && now >= m.nodesEnd {
		p.sum(m, now)
	}
	for i := range m.parts {
		a := &m.parts[i].asks
		a.move(now, p.quotas[i].period)
		m.parts[i].turn(&p.quotas[i], now)
		if m.waiting == 0 && m.seen > 0 {
			a.now.free += now - m.seen
		}
	}
	m.seen = now
}

// decide returns which share denies a call of a member.
func (p *Pool) decide(m *member, now int64, amounts []Amount) Denial {
	for i := range amounts {
		if n := m.parts[i].expected(amounts[i].N); n >= 0 && !p.admits(m, i, now, n) {
			return p.denial(m, i, now, n)
		}
	}
	return Denial{}
}

// admits reports whether the share of a quota lets a call of a member begin.
func (p *Pool) admits(m *member, i int, now, n int64) bool {
	q, t := &p.quotas[i], &m.parts[i]
	p.divide(i, now)
	if t.fits(now, n) {
		return true
	}
	if !t.asks.pressed {
		t.asks.pressed, q.dirty = true, true
	}
	p.divide(i, now)
	return t.fits(now, n)
}

// learned is over how many calls it is learned by how much they use more than they ask for.
const learned = 4

// expected returns what a call is expected to use that asks for an amount; -1 if it has no part in
// the quota.
func (t *part) expected(n int64) int64 {
	if n < 0 {
		return n
	}
	return n + int64(t.extra)
}

// fits reports whether the share lets a call of an amount begin: if at least half of the amount
// is within the share, or nothing of the share is used.
func (t *part) fits(now, n int64) bool {
	used := t.counts(now)
	return used+float64(n)/2 <= t.share || used <= 0 && t.share > 0
}

// counts returns how much of its share the member has used at a time.
func (t *part) counts(at int64) float64 { return t.usedAt(at) + t.carry }

// usedAt returns what the member has used at a time, on all nodes.
func (t *part) usedAt(now int64) float64 {
	used := t.used.sumAt(now) + t.remote
	if now < t.unheardUntil {
		used += t.unheard
	}
	return used
}

// charge charges a member for a call.
func (p *Pool) charge(m *member, now int64, amounts []Amount, lent bool) {
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		n := float64(t.expected(amounts[i].N))
		if n <= 0 {
			continue
		}
		amounts[i].Extra = int64(t.extra)
		q.used.add(now, n)
		t.served += n / m.weight()
		if t.used.add(now, n); !lent {
			t.exceed(q, now)
		}
	}
}

// exceed records by how much the member exceeds its share now.
func (t *part) exceed(q *quota, now int64) {
	if by := t.counts(now) - t.share; by > 0 && q.resetAt == 0 {
		if t.excess = max(t.excess, by); t.since == 0 {
			t.since = now
		}
	}
}

// turn lets the excess count as used, when the period is over in which it was.
func (t *part) turn(q *quota, now int64) {
	switch {
	case t.since == 0 || now < t.since+q.period:
		return
	case now >= t.since+2*q.period:
		t.carry, t.excess = 0, 0
	default:
		t.carry, t.excess = max(0, t.excess, t.carry-t.share), 0
	}
	if t.since += q.period; t.carry == 0 {
		t.since = 0
	}
}

func (p *Pool) denial(m *member, i int, now, n int64) Denial {
	t := &m.parts[i]
	d := Denial{Denied: true, Quota: i, Share: int64(t.share), Used: int64(t.usedAt(now)), Until: p.until(t, i, now, n)}
	for _, o := range p.order {
		if p.active(o, i, now) {
			d.Members++
		}
	}
	return d
}

// until returns when enough of what the member has used here has come back for a call of an
// amount to fit.
func (p *Pool) until(t *part, i int, now, n int64) int64 {
	q := &p.quotas[i]
	if q.resetAt > 0 {
		return q.resetAt
	}
	for k := range int64(parts) {
		if at := now + k*q.period/parts; t.fits(at, n) {
			return at
		}
	}
	return now + q.period
}

// GiveBack gives back amounts that were taken at a time, for a call that was denied by
// something else. If it was not wanted either, it is as if the member had not asked.
func (p *Pool) GiveBack(name string, at int64, amounts []Amount, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m == nil {
		return
	}
	for i := range amounts {
		if n := amounts[i].charged(); n > 0 {
			p.correct(m, i, at, -n)
		}
	}
	if !wanted {
		m.unask(amounts)
	}
}

// Unask lets it be as if a member had not asked for amounts that its share has denied.
func (p *Pool) Unask(name string, amounts []Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[name]; m != nil {
		m.unask(amounts)
	}
}

func (m *member) unask(amounts []Amount) {
	m.asked, m.last = longAgo, longAgo
	for i := range amounts {
		m.parts[i].asks.takeBack(m.parts[i].expected(amounts[i].N))
	}
}

// Correct corrects what a member has used by a call that was charged at a time: by what
// it has used more or, below zero, less than it asked for. extra is what was charged beyond
// that; nil is nothing.
func (p *Pool) Correct(name string, at int64, more, extra []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m == nil {
		return
	}
	for i, n := range more {
		t := &m.parts[i]
		if extra == nil {
			p.correct(m, i, at, n)
		} else {
			p.correct(m, i, at, n-extra[i])
		}
		if at > m.seen-p.quotas[i].period {
			t.extra = max(0, t.extra+(float64(n)-t.extra)/learned)
		}
	}
}

func (p *Pool) correct(m *member, i int, at, more int64) {
	if more == 0 {
		return
	}
	q, t, n := &p.quotas[i], &m.parts[i], float64(more)
	q.used.correct(at, n)
	t.served += n / m.weight()
	if t.used.correct(at, n); n > 0 {
		t.exceed(q, m.seen)
	} else {
		t.excess = max(0, t.excess+n)
	}
}

// Wait says that one more call of a member waits from now on.
func (p *Pool) Wait(name string, t Terms, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.member(name, t)
	p.pass(m, now)
	if !m.wants(now) && now-m.left > p.shortest()/parts {
		p.lift(m, now)
	}
	m.waiting++
	p.wantsMore(m)
}

// lift lets a member that begins to wait be served no sooner than those who wait already.
func (p *Pool) lift(m *member, now int64) {
	for i := range p.quotas {
		least := math.Inf(1)
		for _, o := range p.order {
			if o != m && o.wants(now) {
				least = min(least, o.parts[i].served)
			}
		}
		if t := &m.parts[i]; !math.IsInf(least, 1) {
			t.served = max(t.served, least)
		}
	}
}

// Turn says what a waiting call of a member has found when it asked: whether a limit of the
// member's own denies it. Then the member does not want its share until a call of it finds
// otherwise.
func (p *Pool) Turn(name string, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m.own = own; !own {
		p.wantsMore(m)
	}
}

// wantsMore lets shares be computed again if a member may want more than was expected.
func (p *Pool) wantsMore(m *member) {
	for i := range m.parts {
		p.quotas[i].foreseen = 0
		if t := &m.parts[i]; t.demand <= t.share {
			p.quotas[i].dirty = true
		}
	}
}

// wants reports whether calls of the member wait for its share, or for what is shared.
func (m *member) wants(now int64) bool { return m.waiting > 0 && !m.own || now < m.nodesWait }

// Leave says that a call of a member waits no more.
func (p *Pool) Leave(name string, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	p.pass(m, now)
	if m.wants(now) {
		for i := range m.parts {
			m.parts[i].asks.pressed = true
		}
	}
	if m.waiting--; m.waiting == 0 {
		m.own, m.left = false, now
	}
}
