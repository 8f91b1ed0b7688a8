package share

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

// Denial says which share denies a call. The zero Denial denies nothing.
type Denial struct {
	Denied  bool
	Never   bool  // the call is larger than the member's maximum
	Quota   int   // the index of the quota
	Share   int64 // of the member
	Used    int64 // by the member
	Members int   // that share the quota now
	Until   int64 // when enough of what the member has used has come back
}

// Take takes amounts, one of each quota, of a member's shares, or nothing if a share
// denies. again says that the call has asked before.
func (p *Pool) Take(w *Who, t Terms, now int64, amounts []Amount, again bool) Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	m := p.member(w, t, now)
	p.ask(m, now, amounts, again)
	if i := p.denies(m, now, amounts); i >= 0 {
		return p.denial(m, i, now, amounts[i].N)
	}
	p.charge(m, now, amounts, false)
	return Denial{}
}

// Peek says what Take would, and takes nothing.
func (p *Pool) Peek(w *Who, now int64, amounts []Amount) (d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(now)
	if m := p.find(w); m != nil {
		p.unpark(m, now)
		if i := p.denies(m, now, amounts); i >= 0 {
			d = p.denial(m, i, now, amounts[i].N)
		}
	}
	return d
}

// ask records that a member wants amounts.
func (p *Pool) ask(m *member, now int64, amounts []Amount, again bool) {
	p.pass(m, now)
	if now-max(m.last, m.called) > p.shortest {
		m.since = now
		p.disturb()
	}
	m.called, m.asked, m.last = now, now, now
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		if count := float64(amounts[i].Count); q.count != count {
			q.count, q.shares.dirty = count, true
		}
		n := t.expected(amounts[i].N)
		if n < 0 {
			continue
		}
		if t.size = n; !again {
			t.asks.add(n)
		}
	}
}

// denies returns of which quota a share denies a call of a member, or -1.
func (p *Pool) denies(m *member, now int64, amounts []Amount) int {
	for i := range amounts {
		if float64(amounts[i].N) > p.most(m, i) {
			return i // before a share that only says later
		}
	}
	for i := range amounts {
		n := amounts[i].N
		if n >= 0 && (!p.admits(m, i, now, m.parts[i].expected(n)) || p.capped(m, i, now, n)) {
			return i
		}
	}
	return -1
}

// admits reports whether the share of a quota lets a call of a member begin.
func (p *Pool) admits(m *member, i int, now, n int64) bool {
	q, t := &p.quotas[i], &m.parts[i]
	p.divide(i, now)
	q.shares.uses++
	if t.fits(now, n) {
		return true
	}
	if !t.asks.pressed {
		t.asks.pressed, q.shares.dirty = true, true
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
	return n + t.extra
}

// fits reports whether the share lets a call of an amount begin: if at least half of the amount
// is within the share, or nothing of the share is used.
func (t *part) fits(now, n int64) bool { return t.fitsWith(t.counts(now), n) }

// fitsWith is fits of a member that has used so much.
func (t *part) fitsWith(used float64, n int64) bool {
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
	m.open++
	for i := range amounts {
		q, t := &p.quotas[i], &m.parts[i]
		n := float64(t.expected(amounts[i].N))
		if n <= 0 {
			continue
		}
		amounts[i].Extra, t.before = t.extra, t.excess
		q.used.add(now, n)
		p.serve(m, i, n)
		p.addUsed(m, i, n)
		if t.used.add(now, n); !lent && t.counts(now) > t.share {
			p.exceed(m, i, now)
		}
	}
}

func (p *Pool) denial(m *member, i int, now, n int64) Denial {
	t := &m.parts[i]
	d := Denial{Denied: true, Quota: i, Share: int64(t.share), Used: int64(t.usedAt(now)), Members: p.quotas[i].active, Until: p.until(m, i, now, n)}
	if most := p.most(m, i); float64(n) > most {
		d.Never, d.Share = true, int64(most)
	}
	return d
}

// until returns when enough of what the member, and the groups that it is in, have used here has come
// back for a call of an amount to fit.
func (p *Pool) until(m *member, i int, now, amount int64) int64 {
	q, t := &p.quotas[i], &m.parts[i]
	if q.resetAt > 0 {
		return q.resetAt
	}
	var here curve
	t.used.ahead(now, &here)
	for k, n := range here {
		used := t.counts(now) - here[0] + n
		if t.fitsWith(used, t.expected(amount)) && used-t.carry+float64(amount) <= q.most(m.terms.Max) {
			return now + max(q.after(k), p.groupsWait(m, i, now, amount))
		}
	}
	return now + q.period
}
