package rate

import "time"

// A snapshot is the state of a bucket at a time. The limiter's mutex is held from Limiter.snapshot to commit. Allow
// does not take the mutex: if it changes the bucket in between, commit fails, and the caller takes another snapshot.
type snapshot struct {
	*bucket
	t         time.Time
	elapsed   int64  // t in nanoseconds since the origin, or the last time if that is later
	turnsBack bool   // t turns the clock back
	seen      uint64 // the bucket's spent
	used      uint64 // the units that have been taken and not been supplied again since
}

// snapshot returns the state of the bucket at t. The caller holds the mutex. A time that is earlier than the last one
// and does not turn the clock back counts as the last one.
func (lim *Limiter) snapshot(t time.Time, by timeSource) snapshot {
	b := lim.bucket.Load()
	if b == nil {
		b = newBucket(0, 0, t, 0)
		lim.bucket.Store(b)
	}
	elapsed, last := int64(t.Sub(b.origin)), b.last.Load()
	m := snapshot{bucket: b, t: t, elapsed: max(elapsed, last), seen: b.spent.Load()}
	if m.seen != b.lockedSpent { // an event has been admitted without the mutex
		b.lockedSpent = m.seen
		lim.lastEvent = b.origin.Add(time.Duration(last))
	}
	if supply := b.supply(uint64(m.elapsed)); supply < m.seen && !(b.endless && m.elapsed > 0) {
		m.used = m.seen - supply
	}
	if elapsed < last {
		m.turnsBack = b.turnsBack(elapsed, last, m.seen, by)
		if !m.turnsBack {
			m.t = t.Add(time.Duration(last - elapsed))
		}
	}
	return m
}

// commit changes the bucket so that used units have been taken at the time of the snapshot, which becomes the last
// time. It returns false if the bucket has changed since the snapshot.
func (lim *Limiter) commit(m *snapshot, used uint64) bool {
	if m.turnsBack || uint64(m.elapsed) > m.horizon {
		return lim.replace(m, m.next(m.limit, m.burst, used))
	}
	spent := m.line(m.elapsed) + used
	if !m.spent.CompareAndSwap(m.seen, spent) {
		return false
	}
	m.lockedSpent = spent
	m.last.Store(m.elapsed)
	return true
}

// next returns a bucket with other parameters that begins at the time of the snapshot, with the tokens that are left
// when used units have been taken.
func (m *snapshot) next(limit Limit, burst int, used uint64) *bucket {
	b := newBucket(limit, burst, m.t, -m.tokens(used))
	if used <= m.size {
		tokens, _ := convert(m.size-used, m.unit, b.unit)
		b.lockedSpent = b.size - min(b.size, tokens)
	} else {
		debt, remainder := convert(used-m.size, m.unit, b.unit)
		b.lockedSpent = min(b.size+debt+min(remainder, 1), maxUsed)
	}
	b.spent.Store(b.lockedSpent)
	return b
}

// replace makes b the limiter's bucket, in place of that of the snapshot. It returns false if the bucket has changed
// since the snapshot.
func (lim *Limiter) replace(m *snapshot, b *bucket) bool {
	if !m.spent.CompareAndSwap(m.seen, spentClosed) {
		return false
	}
	lim.bucket.Store(b)
	return true
}

// reserve takes n tokens at t if they are due within wait. All methods that take tokens end here.
func (lim *Limiter) reserve(t time.Time, by timeSource, n int, wait time.Duration) Reservation {
	if b := lim.bucket.Load(); b != nil && wait >= 0 {
		ok, sure := b.take(int64(t.Sub(b.origin)), n, by)
		if ok {
			return Reservation{ok: true, lim: lim, from: b, tokens: n, timeToAct: t}
		}
		if sure && wait == 0 {
			return Reservation{}
		}
	}
	return lim.reserveLater(t, by, n, wait)
}

// reserveLater is reserve for tokens that the bucket does not have yet, and for times that turn the clock back.
func (lim *Limiter) reserveLater(t time.Time, by timeSource, n int, wait time.Duration) Reservation {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.snapshot(t, by)
		if n > m.maxTokens() {
			return Reservation{}
		}
		if m.endless {
			return Reservation{ok: true, timeToAct: t}
		}
		used := m.charge(m.used, n)
		if used == maxUsed && m.unit > 1 {
			lim.coarsen(m.bucket)
			continue
		}
		delay := m.wait(used)
		if delay > wait {
			return Reservation{}
		}
		if lim.commit(&m, used) {
			lim.lastEvent = m.t.Add(delay)
			return Reservation{ok: true, lim: lim, from: m.bucket, tokens: n, timeToAct: lim.lastEvent}
		}
	}
}

// coarsen replaces the bucket by one with a coarser unit, whose word has room for more debt. It changes neither the
// tokens nor the last time.
func (lim *Limiter) coarsen(b *bucket) {
	m := lim.snapshot(b.origin.Add(time.Duration(b.last.Load())), givenTime)
	lim.replace(&m, m.next(m.limit, m.burst, m.used))
}

// refund gives the tokens of a reservation back at t, except those that the delay of a later reservation depends on.
func (lim *Limiter) refund(t time.Time, by timeSource, r *Reservation) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.snapshot(t, by)
		if m.endless || r.from.endless || r.tokens <= 0 || r.timeToAct.Before(m.t) {
			return
		}
		taken, later := r.from.charge(0, r.tokens), uint64(0)
		if after := lim.lastEvent.Sub(r.timeToAct); after > 0 {
			later = r.from.supply(uint64(after))
		}
		if later >= taken {
			return
		}
		back, _ := convert(taken-later, r.from.unit, m.unit)
		if !lim.commit(&m, m.used-min(m.used, back)) {
			continue
		}
		r.tokens = 0
		if r.timeToAct.Equal(lim.lastEvent) {
			lim.moveLastEvent(r.from.wait(r.from.size+taken), m.t)
		}
		return
	}
}

// moveLastEvent moves the last event back by the time in which its tokens were supplied, but not to before t.
func (lim *Limiter) moveLastEvent(took time.Duration, t time.Time) {
	if before := lim.lastEvent.Add(-took); took < InfDuration && !before.Before(t) {
		lim.lastEvent = before
	}
}

// set changes the parameters at t. The tokens stay, up to the burst.
func (lim *Limiter) set(t time.Time, by timeSource, change func(Limit, int) (Limit, int)) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.snapshot(t, by)
		limit, burst := change(m.limit, m.burst)
		if lim.replace(&m, m.next(limit, burst, m.used)) {
			return
		}
	}
}

// tokensAt returns how many tokens there are at t.
func (lim *Limiter) tokensAt(t time.Time, by timeSource) float64 {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	m := lim.snapshot(t, by)
	return m.tokens(m.used)
}
