package fair

// GiveBack gives back amounts that were taken at a time, for a call that was denied by
// something else. If it was not wanted either, it is as if the member had not asked.
func (p *Pool) GiveBack(w *Who, at int64, amounts []Amount, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(amounts, at)
	m := p.find(w)
	if m == nil {
		return
	}
	m.open = max(m.open-1, 0)
	for i := range amounts {
		n := amounts[i].N + amounts[i].Extra
		if n <= 0 || p.quotas[i].held {
			continue
		}
		p.correct(m, i, at, -n)
		for x := m; x != nil; x = x.above {
			t := &x.parts[i]
			t.excess = min(t.excess+n, max(t.before, t.over(&p.quotas[i], m.seen))) // as if it had not been charged
		}
	}
	if !wanted {
		m.unask(amounts)
	}
}

// Unask undoes that a member has asked for amounts that its share has denied.
func (p *Pool) Unask(w *Who, amounts []Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.find(w); m != nil {
		m.unask(amounts)
	}
}

func (m *node) unask(amounts []Amount) {
	m.asked, m.last, m.changed = longAgo, longAgo, true
	for i := range amounts {
		a, n := &m.parts[i].asks.now, m.parts[i].expected(amounts[i].N)
		if n > 0 {
			a.sum, a.calls = max(0, a.sum-n), max(0, a.calls-1)
		}
	}
}

// Correct ends a call of a member that was charged at a time, and corrects what the member has used by it: by what
// it has used more or, below zero, less than it asked for. taken is what was charged; nil is what it asked for, and
// nothing that it holds.
func (p *Pool) Correct(w *Who, at int64, more []int64, taken []Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(taken, at)
	m := p.find(w)
	if m == nil {
		return
	}
	m.open = max(m.open-1, 0)
	for i, n := range more {
		t := &m.parts[i]
		if p.quotas[i].held || n == 0 && t.extra == 0 && taken == nil {
			continue
		}
		by := n
		if taken != nil {
			by -= taken[i].Extra
		}
		p.correct(m, i, at, by)
		if at > m.seen-p.quotas[i].period {
			t.extra = max(0, t.extra+(n-t.extra)/learned)
		}
	}
}

// Release gives back what a call holds of amounts that were taken at a time. What it uses stays: see [Pool.Correct].
func (p *Pool) Release(at int64, taken []Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(taken, at)
}

// release gives back what a call holds of amounts that were taken.
func (p *Pool) release(taken []Amount, at int64) {
	for i := range taken {
		if a := &taken[i]; p.quotas[i].held && a.of != nil {
			p.correct(a.of, i, at, -a.N)
			p.quotas[i].shares.dirty, a.of = true, nil
		}
	}
}

// correct corrects what a member, and so those above it, have used of a quota at a time, if that still counts.
func (p *Pool) correct(m *node, i int, at, by int64) {
	m.changed = true
	q := &p.quotas[i]
	if by == 0 || at < q.began {
		return // a fixed window that has ended since is not corrected
	}
	m.parts[i].taken += by
	m.serve(i, by)
	counts := m.parts[i].used.has(at)
	for x := m; x != nil; x = x.above {
		t := &x.parts[i]
		if counts {
			t.used.correct(at, by)
		}
		if x.above == nil {
			break
		}
		if by > 0 {
			t.exceed(q, m.seen)
		} else {
			t.excess = max(0, t.excess+by)
		}
	}
}
