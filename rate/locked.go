package rate

import "time"

// A moment is what a bucket looks like at a time. The limiter's mutex is held from look to settle, but Allow does not
// ask for it: when it has come between, settle fails, and one looks again.
type moment struct {
	*bucket
	t       time.Time
	elapsed int64  // t in nanoseconds since the origin, or the last time if that is later
	back    bool   // t turns the clock back
	found   uint64 // spent
	used    uint64 // what has been taken and not supplied again since
}

// look needs the mutex. A time that is earlier than the last but does not turn the clock back is taken for it.
func (lim *Limiter) look(t time.Time, by source) moment {
	b := lim.bucket.Load()
	if b == nil {
		b = newBucket(0, 0, t, 0)
		lim.bucket.Store(b)
	}
	elapsed, last := int64(t.Sub(b.origin)), b.last.Load()
	m := moment{bucket: b, t: t, elapsed: max(elapsed, last), found: b.spent.Load()}
	if m.found != b.left { // an event has been admitted without the mutex
		b.left = m.found
		lim.lastEvent = b.origin.Add(time.Duration(last))
	}
	if supply := b.supply(uint64(m.elapsed)); supply < m.found && !(b.endless && m.elapsed > 0) {
		m.used = m.found - supply
	}
	if elapsed < last {
		m.back = b.back(elapsed, last, m.found, by)
		if !m.back {
			m.t = t.Add(time.Duration(last - elapsed))
		}
	}
	return m
}

// settle makes used what has been taken by the moment, which becomes the last time.
func (lim *Limiter) settle(m *moment, used uint64) bool {
	if m.back || uint64(m.elapsed) > m.horizon {
		return lim.replace(m, m.next(m.limit, m.burst, used))
	}
	spent := m.line(m.elapsed) + used
	if !m.spent.CompareAndSwap(m.found, spent) {
		return false
	}
	m.left = spent
	m.last.Store(m.elapsed)
	return true
}

// next is a bucket that begins at the moment, with the tokens there are when used has been taken.
func (m *moment) next(limit Limit, burst int, used uint64) *bucket {
	b := newBucket(limit, burst, m.t, -m.tokens(used))
	if used <= m.size {
		tokens, _ := convert(m.size-used, m.unit, b.unit)
		b.left = b.size - min(b.size, tokens)
	} else {
		debt, more := convert(used-m.size, m.unit, b.unit)
		b.left = min(b.size+debt+min(more, 1), maxUsed)
	}
	b.spent.Store(b.left)
	return b
}

// replace puts b in the place of the moment's bucket.
func (lim *Limiter) replace(m *moment, b *bucket) bool {
	if !m.spent.CompareAndSwap(m.found, closed) {
		return false
	}
	lim.bucket.Store(b)
	return true
}

// reserve takes n tokens at t if they are due within wait. All doors that are told the time lead here.
func (lim *Limiter) reserve(t time.Time, by source, n int, wait time.Duration) Reservation {
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

// reserveLater is reserve for tokens that are not there yet, and for times that turn the clock back.
func (lim *Limiter) reserveLater(t time.Time, by source, n int, wait time.Duration) Reservation {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.look(t, by)
		if n > m.most() {
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
		if lim.settle(&m, used) {
			lim.lastEvent = m.t.Add(delay)
			return Reservation{ok: true, lim: lim, from: m.bucket, tokens: n, timeToAct: lim.lastEvent}
		}
	}
}

// coarsen makes room for more debt. Neither the tokens nor the last time change.
func (lim *Limiter) coarsen(b *bucket) {
	m := lim.look(b.origin.Add(time.Duration(b.last.Load())), told)
	lim.replace(&m, m.next(m.limit, m.burst, m.used))
}

// giveBack undoes a reservation at t, as far as no later one has been built on it.
func (lim *Limiter) giveBack(t time.Time, by source, r *Reservation) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.look(t, by)
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
		if !lim.settle(&m, m.used-min(m.used, back)) {
			continue
		}
		r.tokens = 0
		if r.timeToAct.Equal(lim.lastEvent) {
			lim.forget(r.from.wait(r.from.size+taken), m.t)
		}
		return
	}
}

// forget puts the last event earlier by the time that its tokens took, unless that were before t.
func (lim *Limiter) forget(took time.Duration, t time.Time) {
	if before := lim.lastEvent.Add(-took); took < InfDuration && !before.Before(t) {
		lim.lastEvent = before
	}
}

// set changes the parameters at t; the tokens stay, as far as the burst permits.
func (lim *Limiter) set(t time.Time, by source, change func(Limit, int) (Limit, int)) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	for {
		m := lim.look(t, by)
		limit, burst := change(m.limit, m.burst)
		if lim.replace(&m, m.next(limit, burst, m.used)) {
			return
		}
	}
}

// tokensAt is what Tokens and TokensAt return.
func (lim *Limiter) tokensAt(t time.Time, by source) float64 {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	m := lim.look(t, by)
	return m.tokens(m.used)
}
