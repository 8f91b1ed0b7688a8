// Package share divides quotas among those who use them, by weight and window by window.
//
// A [Pool] is the quotas of one model. Its members are the projects that use the model.
// In each window of a quota, every member has a share of it. A member that has used its
// share is denied while others may still want theirs. What a member does not want is
// divided among the others, so a member that is alone has everything.
//
// A member may begin a call as long as it has used less than its share, so its last call
// may exceed the share. The excess counts as used in the next window, and what a waiting
// member did not get of its share comes back to it there. So calls of any size keep to
// the weights over time.
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
	now     int64             // of the last decision
	quotas  []quota
	members map[string]*member
	order   []*member // by rank, the highest first
	sorted  []*member // room for the computation of shares
}

// quota is one of the quotas of a pool, with its window that is under way.
type quota struct {
	limit      limit.Limit
	count      float64
	opened     bool
	start, end int64 // of the window

	dirty     bool  // something has changed by which a share may become smaller
	divided   int64 // when the shares were computed last
	decisions int   // on calls, since then
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
	last      int64 // when it asked last
	parts     []part
}

// part is what a member has of one quota.
type part struct {
	share  float64
	demand float64 // the most that the member is expected to use in the window
	used   float64 // in the window, and what is carried
	carry  float64 // the excess of the window before; below zero, what was due there
	excess float64 // by which the last call exceeds the share

	asked, askedBefore     int64 // the amounts that it asked for, in this window and in the one before
	calls, callsBefore     int64 // how often it asked
	size                   int64 // the amount that it asked for last
	pressed, pressedBefore bool  // it had to wait, or asked for more than its share
}

// NewPool returns a pool of quotas without members. reserve is the part of every quota
// that only members have who did not call in the window before.
func NewPool(quotas []limit.Limit, reserve float64) *Pool {
	p := &Pool{reserve: reserve, members: map[string]*member{}}
	for _, l := range quotas {
		p.quotas = append(p.quotas, quota{limit: l, count: float64(l.Count())})
	}
	return p
}

// Amount is what a call asks for of one quota.
type Amount struct {
	N     int64
	Count int64 // of the quota, as it is now
}

// Empty reports whether the pool has no members.
func (p *Pool) Empty() bool { return p.joined.Load() == 0 && p.dedicated.empty() }

// member returns the member of a name, which has its terms from now on.
func (p *Pool) member(name string, t Terms) *member {
	m := p.members[name]
	switch {
	case m == nil:
		m = &member{name: name, parts: make([]part, len(p.quotas))}
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
	for i := range p.quotas {
		p.quotas[i].dirty = true
	}
	return m
}

// Denial says which share denies a call. The zero Denial denies nothing.
type Denial struct {
	Denied  bool
	Quota   int   // the index of the quota
	Share   int64 // of the member, in this window
	Used    int64 // by the member, in this window
	Members int   // that share the quota now
	End     int64 // of the window
}

// Take takes amounts, one of each quota, of a member's shares, or nothing if a share
// denies. No share denies an amount of zero.
func (p *Pool) Take(name string, t Terms, now int64, amounts []Amount) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(name, t)
	p.ask(m, now, amounts)
	d := p.decide(m, now, amounts)
	if !d.Denied {
		m.charge(amounts)
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

// decide returns which share denies a call of a member.
func (p *Pool) decide(m *member, now int64, amounts []Amount) Denial {
	for i := range amounts {
		if n := amounts[i].N; n > 0 && !p.admits(m, i, now, n) {
			return p.denial(m, i)
		}
	}
	return Denial{}
}

// ask records that a member wants amounts.
func (p *Pool) ask(m *member, now int64, amounts []Amount) {
	m.last = now
	for i := range amounts {
		q, t, n := &p.quotas[i], &m.parts[i], amounts[i].N
		if count := float64(amounts[i].Count); q.count != count {
			q.count, q.dirty = count, true
		}
		if n == 0 {
			continue
		}
		if !t.active() {
			q.dirty = true
		}
		q.decisions++
		t.asked += n
		t.calls++
		t.size = n
	}
}

// admits reports whether the share of a quota lets a member begin a call.
func (p *Pool) admits(m *member, i int, now, n int64) bool {
	q, t := &p.quotas[i], &m.parts[i]
	if q.dirty {
		p.divide(i, now)
	}
	if t.fits(n) {
		return true
	}
	if !t.pressed {
		t.pressed, q.dirty = true, true
	}
	p.divide(i, now)
	return t.fits(n)
}

// fits reports whether the share lets a call of an amount begin: if at least half of the amount
// is within the share, or nothing of the share is used.
func (t *part) fits(n int64) bool {
	return t.used+float64(n)/2 <= t.share || t.used <= 0 && t.share > 0
}

// active reports whether the member has asked for any of the quota in this window or in
// the one before.
func (t *part) active() bool { return t.asked > 0 || t.askedBefore > 0 }

// charge charges a member for a call.
func (m *member) charge(amounts []Amount) {
	for i := range amounts {
		t, n := &m.parts[i], float64(amounts[i].N)
		within := t.fits(amounts[i].N)
		if t.used += n; within && n > 0 {
			t.excess = max(0, t.used-t.share)
		}
	}
}

func (p *Pool) denial(m *member, i int) Denial {
	t := &m.parts[i]
	d := Denial{Denied: true, Quota: i, Share: int64(max(0, t.share-t.carry)), Used: int64(t.used - t.carry), End: p.quotas[i].end}
	for _, o := range p.order {
		if o.parts[i].active() {
			d.Members++
		}
	}
	return d
}

// Lend takes amounts for a member whose share has denied them, if no other member may
// want them: used is what is used of each quota by its own count.
func (p *Pool) Lend(name string, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m == nil || !p.lends(m, now, amounts, used) {
		return false
	}
	m.charge(amounts)
	return true
}

// WouldLend says what Lend would, and takes nothing.
func (p *Pool) WouldLend(name string, now int64, amounts []Amount, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	return m != nil && p.lends(m, now, amounts, used)
}

func (p *Pool) lends(m *member, now int64, amounts []Amount, used []int64) bool {
	p.move(now)
	for i := range amounts {
		t, n := &m.parts[i], amounts[i].N
		if n == 0 || t.fits(n) {
			continue
		}
		if m.terms.Max > 0 && t.used >= m.terms.Max*p.quotas[i].count || float64(used[i]+n)+p.unmet(m, i) > p.room(t, i) {
			return false
		}
	}
	return true
}

// unmet returns how much of a quota the other members still may want of their shares.
func (p *Pool) unmet(m *member, i int) (sum float64) {
	for _, o := range p.order {
		if t := &o.parts[i]; o != m && t.fits(t.size) {
			sum += max(0, min(t.share, t.demand)-t.used)
		}
	}
	return sum
}

// room returns how much of a quota may be used in all when a member takes the last of it.
func (p *Pool) room(t *part, i int) float64 {
	if t.askedBefore == 0 {
		return p.quotas[i].count
	}
	return p.quotas[i].count * (1 - p.reserve)
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
		p.correct(m, i, at, -amounts[i].N)
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
	m.last = math.MinInt64 / 2
	for i := range amounts {
		if t, n := &m.parts[i], amounts[i].N; n > 0 {
			t.asked, t.calls = max(0, t.asked-n), max(0, t.calls-1)
		}
	}
}

// Correct corrects what a member has used by a call that was charged at a time: by what
// it has used more or, below zero, less. It needs no more precise time than that of the
// last decision.
func (p *Pool) Correct(name string, at int64, more []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[name]
	if m == nil {
		return
	}
	for i, n := range more {
		p.correct(m, i, at, n)
	}
}

func (p *Pool) correct(m *member, i int, at, more int64) {
	t, n := &m.parts[i], float64(more)
	if q := &p.quotas[i]; at < q.start { // the window of the call is over: only its excess is left
		if n = max(n, -max(t.carry, 0)); at <= p.now-int64(q.limit.Period()) {
			n = min(n, 0) // the quota does not count the call any more either
		}
		t.carry += n
	}
	t.used += n
	t.excess = max(0, t.excess+n)
}

// Wait says that one more call of a member waits from now on.
func (p *Pool) Wait(name string, t Terms, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(name, t)
	m.waiting++
	p.wantsMore(m)
}

// Turn says what a waiting call of a member has found when it asked: whether a limit of the
// member's own denies it. Then the member does not want its share until a call of it finds
// otherwise.
func (p *Pool) Turn(name string, now int64, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	if m.own = own; !own {
		p.wantsMore(m)
	}
}

// wantsMore lets shares be computed again if a member may want more than was expected.
func (p *Pool) wantsMore(m *member) {
	for i := range m.parts {
		if t := &m.parts[i]; t.demand <= t.share {
			p.quotas[i].dirty = true
		}
	}
}

// wants reports whether calls of the member wait for its share, or for what is shared.
func (m *member) wants() bool { return m.waiting > 0 && !m.own }

// Leave says that a call of a member waits no more.
func (p *Pool) Leave(name string, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	if m.wants() {
		for i := range m.parts {
			m.parts[i].pressed = true
		}
	}
	if m.waiting--; m.waiting == 0 {
		m.own = false
	}
}
