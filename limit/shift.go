package limit

// Shift adapts the account to a clock that shows now, and is set by d at this moment, forward or back.
// Sliding logs, buckets and anchored windows keep the ages of what they count. What is used of an
// open window of the calendar, and of other windows that begin at fixed times, counts in the window
// that the new time falls into: a clock that is set forward opens no second window. If it is set
// back to before the window was opened, the usage counts to the end of the next window, so that it is
// not opened twice. Takes from before are not refunded any more.
func (a *Account) Shift(now, d int64) {
	a.enter(now)
	if a.epoch == 0 || d == 0 {
		return
	}
	a.epoch++
	a.plan = nil
	a.seen = now + d
	a.counters.fullAt = 0
	for i := range a.counters.each {
		c := &a.counters.each[i]
		c.rewind(now)
		c.state = c.limit.shift(c.state, now, d)
		_, v := c.limit.take(c.state, now+d, 0)
		a.counters.fullAt = max(a.counters.fullAt, now+d+int64(v.ResetAfter))
	}
	if log := a.counters.log; log != nil {
		log.shift(now, d)
		a.counters.fullAt = max(a.counters.fullAt, log.fullAt())
	}
}

// shift returns s for a clock that shows now and is set by d: see [Account.Shift].
func (l Limit) shift(s state, now, d int64) state {
	switch {
	case l.algorithm == SlidingCounter: // what was used in the window before counts in this one, as after a step back
		s = l.slide(s, now)
		return state{floor(now+d, int64(l.period)), 0, correct(s.a, s.b)}
	case l.algorithm != FixedWindow:
		s.at += d
		return s
	case s.b == 0 || now >= s.a:
		return state{}
	case l.windowing == anchored:
		return state{s.at + d, s.a + d, s.b}
	}
	start, end := l.window(now + d)
	opened := s.at + d
	if d < 0 && opened > start { // it was opened while the window before it is still open by the new time
		_, end = l.window(end)
	}
	return state{max(opened, end-3*int64(l.period)), end, s.b}
}

// shift moves all entries by d.
func (h *history) shift(now, d int64) {
	h.rewind(now)
	h.changedAll()
	for i := h.oldest; i < h.next; i++ {
		h.entry(i).at += d
	}
	h.dropped += d
}
