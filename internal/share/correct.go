package share

// GiveBack gives back amounts that were taken at a time, for a call that was denied by
// something else. If it was not wanted either, it is as if the member had not asked.
func (p *Pool) GiveBack(w *Who, at int64, amounts []Amount, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	if m == nil {
		return
	}
	m.open = max(m.open-1, 0)
	for i := range amounts {
		if n := amounts[i].charged(); n > 0 {
			t := &m.parts[i]
			excess := t.excess
			p.correct(m, i, at, -n)
			t.excess = min(excess, max(t.before, t.counts(m.seen)-t.share)) // as if it had not been charged
		}
	}
	if !wanted {
		m.unask(amounts)
	}
}

// Unask lets it be as if a member had not asked for amounts that its share has denied.
func (p *Pool) Unask(w *Who, amounts []Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.find(w); m != nil {
		m.unask(amounts)
	}
}

func (m *member) unask(amounts []Amount) {
	m.asked, m.last = longAgo, longAgo
	for i := range amounts {
		m.parts[i].asks.takeBack(m.parts[i].expected(amounts[i].N))
	}
}

// Correct ends a call of a member that was charged at a time, and corrects what the member has used by it: by what
// it has used more or, below zero, less than it asked for. extra is what was charged beyond
// that; nil is nothing.
func (p *Pool) Correct(w *Who, at int64, more, extra []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.find(w)
	if m == nil {
		return
	}
	m.open = max(m.open-1, 0)
	for i, n := range more {
		t := &m.parts[i]
		if n == 0 && t.extra == 0 && extra == nil {
			continue
		}
		if extra == nil {
			p.correct(m, i, at, n)
		} else {
			p.correct(m, i, at, n-extra[i])
		}
		if at > m.seen-p.quotas[i].period {
			t.extra = max(0, t.extra+(n-t.extra)/learned)
		}
	}
}

// correct corrects what a member has used of a quota at a time. A fixed window that has ended since is not
// corrected.
func (p *Pool) correct(m *member, i int, at, more int64) {
	q, t, n := &p.quotas[i], &m.parts[i], float64(more)
	if more == 0 || at < q.began {
		return
	}
	q.used.correct(at, n)
	if m.parked {
		q.parked = max(0, q.parked+n)
	}
	p.serve(m, i, n)
	if t.used.used != nil && q.countedAt >= t.used.end {
		t.used.move(q.countedAt) // so that the member forgets what its groups have forgotten
	}
	before := t.used.sum
	t.used.correct(at, n)
	if p.addUsed(m, i, t.used.sum-before); n > 0 {
		p.exceed(m, i, m.seen)
	} else {
		t.excess = max(0, t.excess+n)
	}
}
