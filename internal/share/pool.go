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
	"slices"
	"sync"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Pool is quotas that several members share. All of its methods may be called at a time.
// Times are Unix nanoseconds.
type Pool struct {
	reserve float64 // the part of every quota that is kept for newcomers

	mu      sync.Mutex
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
	Weight    int     // of the member among those of its rank, from 1
	Rank      int     // members of a higher rank have what they want before those of a lower one
	Min, Max  float64 // the parts of every quota that the member has at least and at most; a Max of 0 is all
	Dedicated bool    // Min is kept free even if the member has not called for long
}

// member is one of those who share a pool.
type member struct {
	name    string
	terms   Terms
	waiting int   // calls that wait
	last    int64 // when it asked last
	parts   []part
}

// part is what a member has of one quota.
type part struct {
	share  float64
	demand float64 // the most that the member is expected to use in the window
	used   int64   // in the window, and what is carried
	carry  int64   // the excess of the window before; below zero, what was due there
	excess int64   // by which the last call exceeds the share

	asked, askedBefore     int64 // the amounts that it asked for, in this window and in the one before
	calls, callsBefore     int64 // how often it asked
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

// Join lets a member have its terms from now on, before it has called.
func (p *Pool) Join(name string, t Terms) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.member(name, t)
}

// member returns the member of a name, which has its terms from now on.
func (p *Pool) member(name string, t Terms) *member {
	m := p.members[name]
	switch {
	case m == nil:
		m = &member{name: name, parts: make([]part, len(p.quotas))}
		p.members[name] = m
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
func (p *Pool) Take(name string, t Terms, now int64, amounts []int64) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(name, t)
	p.ask(m, now, amounts)
	for i, n := range amounts {
		if n > 0 && !p.admits(m, i, now) {
			return p.denial(m, i)
		}
	}
	m.charge(amounts)
	return Denial{}
}

// ask records that a member wants amounts.
func (p *Pool) ask(m *member, now int64, amounts []int64) {
	m.last = now
	for i, n := range amounts {
		if n == 0 {
			continue
		}
		q, t := &p.quotas[i], &m.parts[i]
		if !t.active() {
			q.dirty = true
		}
		q.decisions++
		t.asked += n
		t.calls++
	}
}

// admits reports whether the share of a quota lets a member begin a call.
func (p *Pool) admits(m *member, i int, now int64) bool {
	q, t := &p.quotas[i], &m.parts[i]
	if q.dirty {
		p.divide(i, now)
	}
	if t.hasLeft() {
		return true
	}
	if !t.pressed {
		t.pressed, q.dirty = true, true
	}
	p.divide(i, now)
	return t.hasLeft()
}

func (t *part) hasLeft() bool { return float64(t.used) < t.share }

// active reports whether the member has asked for any of the quota in this window or in
// the one before.
func (t *part) active() bool { return t.asked > 0 || t.askedBefore > 0 }

// charge charges a member for a call.
func (m *member) charge(amounts []int64) {
	for i, n := range amounts {
		t := &m.parts[i]
		within := t.hasLeft()
		if t.used += n; within && n > 0 {
			t.excess = max(0, t.used-int64(t.share))
		}
	}
}

func (p *Pool) denial(m *member, i int) Denial {
	t := &m.parts[i]
	d := Denial{Denied: true, Quota: i, Share: max(0, int64(t.share)-t.carry), Used: t.used - t.carry, End: p.quotas[i].end}
	for _, o := range p.order {
		if o.parts[i].active() {
			d.Members++
		}
	}
	return d
}

// Lend takes amounts for a member whose share has denied them, if no other member may
// want them: used is what is used of each quota by its own count.
func (p *Pool) Lend(name string, now int64, amounts, used []int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	if m == nil {
		return false
	}
	for i, n := range amounts {
		t := &m.parts[i]
		if n == 0 || t.hasLeft() {
			continue
		}
		if m.terms.Max > 0 && float64(t.used) >= m.terms.Max*p.quotas[i].count || float64(used[i]+n)+p.unmet(m, i) > p.room(t, i) {
			return false
		}
	}
	m.charge(amounts)
	return true
}

// unmet returns how much of a quota the other members still may want of their shares.
func (p *Pool) unmet(m *member, i int) (sum float64) {
	for _, o := range p.order {
		if t := &o.parts[i]; o != m {
			sum += max(0, min(t.share, t.demand)-float64(t.used))
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

// Correct corrects what a member has used by a call that was charged at a time: by what
// it has used more or, below zero, less.
func (p *Pool) Correct(name string, at, now int64, more []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	if m == nil {
		return
	}
	for i, n := range more {
		t := &m.parts[i]
		if at >= p.quotas[i].start {
			t.used += n
			if t.excess > 0 {
				t.excess = max(0, t.excess+n)
			}
			continue
		}
		n = max(n, -max(t.carry, 0)) // the window of the call is over: only its excess is left
		t.carry += n
		t.used += n
	}
}

// Wait says that one more call of a member waits from now on.
func (p *Pool) Wait(name string, t Terms, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(name, t)
	m.waiting++
	m.last = now
	for i := range m.parts {
		if t := &m.parts[i]; t.demand <= t.share {
			p.quotas[i].dirty = true
		}
	}
}

// Leave says that a call of a member waits no more.
func (p *Pool) Leave(name string, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.members[name]
	m.waiting--
	m.last = now
	for i := range m.parts {
		m.parts[i].pressed = true
	}
}
