package fair

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
		n := amounts[i].charged()
		if n <= 0 {
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
		by := n
		if extra != nil {
			by -= extra[i]
		}
		p.correct(m, i, at, by)
		if at > m.seen-p.quotas[i].period {
			t.extra = max(0, t.extra+(n-t.extra)/learned)
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
	counts := m.parts[i].used.has(at)
	for x := m; x != nil; x = x.above {
		t := &x.parts[i]
		if counts {
			t.used.correct(at, by)
		}
		if x.above == nil {
			break
		}
		t.serve(q, x, by)
		if by > 0 {
			t.exceed(q, m.seen)
		} else {
			t.excess = max(0, t.excess+by)
		}
	}
}
