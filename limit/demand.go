package limit

// demand is one limiter's part in a decision: an amount n of one key.
type demand struct {
	book   *book
	hash   uint64
	limits []Limit
	n      int64
	index  int // the index of the limiter among those that were combined

	// The counter while it is locked: a word or a cell, or neither if the key has no
	// counter.
	word lockedSlot[struct{}]
	cell lockedSlot[*counters]
}

// asks reports whether the demand is for an amount other than zero, under any limit.
func (d *demand) asks() bool { return d.n != 0 && len(d.limits) > 0 }

// lock locks the counter. If the key has none and create is set, lock creates one.
func (d *demand) lock(create bool) {
	if d.book.words != nil {
		d.word = d.book.words.lock(d.hash, create)
		return
	}
	d.cell = d.book.cells.lock(d.hash, create)
	if s := d.cell.slot; s != nil && s.value == nil {
		s.value = new(counters)
	}
}

func (d *demand) unlock() {
	d.word.unlock()
	d.cell.unlock()
}

// current reports whether the words of the counter's segment can express now: see
// table.current.
func (d *demand) current(now int64, past bool) bool {
	return d.book.words.current(d.word, now, past) && d.book.cells.current(d.cell, now, past)
}

// rebase makes the words of an unlocked counter's segment count from now.
func (d *demand) rebase(now int64) {
	d.book.words.rebase(d.word.segment, now)
	d.book.cells.rebase(d.cell.segment, now)
}

// awaited reports whether a call waits for the counter.
func (d *demand) awaited() bool { return (d.word.word|d.cell.word)&awaited != 0 }

// setAwaited records whether a call waits for the counter.
func (d *demand) setAwaited(yes bool) {
	d.lock(true)
	d.word.setAwaited(yes)
	d.cell.setAwaited(yes)
	d.unlock()
}

// check adds the verdict of every limit on a take of n to r.
func (d *demand) check(r *ruling, now, n int64) {
	if d.book.words != nil {
		_, v := d.book.gcra.check(d.backlog(now), n)
		r.add(v, &d.book.gcra.limit)
		return
	}
	var unused counters
	c := &unused
	if d.cell.slot != nil {
		c = d.cell.slot.value
	}
	for i := range d.limits {
		r.add(c.check(d.limits[i], now+d.book.offset, n), &d.limits[i])
	}
}

// backlog returns the backlog of a counter of one word, in the word's units.
func (d *demand) backlog(now int64) uint64 {
	if d.word.slot == nil {
		return 0
	}
	word, ticks := d.word.word&until, d.book.words.ticks(d.word.segment, now)
	return word - min(word, ticks)
}

// take charges what check has allowed.
func (d *demand) take(now int64) {
	if d.n == 0 {
		return
	}
	if d.book.words != nil {
		backlog, _ := d.book.gcra.check(d.backlog(now), d.n)
		d.word.set(d.book.words.ticks(d.word.segment, now) + backlog)
		return
	}
	c := d.cell.slot.value
	c.take(d.limits, now+d.book.offset, d.n)
	d.setUse(c)
}

// setUse writes the time until which the counters of a cell are in use into its word.
func (d *demand) setUse(c *counters) {
	d.cell.set(d.book.cells.ticks(d.cell.segment, c.fullAt-d.book.offset))
}

// receipts returns what settle must know of a take at now.
func (d *demand) receipts(now int64) []receipt {
	if d.book.words == nil {
		return d.cell.slot.value.receipts(d.limits, now+d.book.offset, d.n)
	}
	return []receipt{{n: d.n, at: now, backlog: d.book.gcra.backlog(d.backlog(now))}}
}

// settle corrects the take of a claim to the actual amount, and lowers later claims by
// what it refunds.
func (d *demand) settle(c *claim, now, actual int64) {
	claims := &d.book.claims
	if d.book.words != nil {
		units := d.settleWord(c.receipts[0], now, actual)
		claims.refund(c, d.book.gcra.limit, d.book.gcra.backlog(units))
		claims.settle(c, now)
		return
	}
	cell := d.cell.slot.value
	cell.settle(d.limits, c.receipts, now+d.book.offset, actual, func(l Limit, b backlog) { claims.refund(c, l, b) })
	d.setUse(cell)
	claims.settle(c, now+d.book.offset)
}

// settleWord does for a counter of one word what Limit.settleBucket does for a state. It
// returns what it has refunded, in the word's units.
func (d *demand) settleWord(r receipt, now, actual int64) (refunded uint64) {
	t, g, base := d.book.words, &d.book.gcra, d.word.segment.base
	word, left := int64(d.word.word&until), g.units(r.backlog)
	if actual > r.n {
		taken := max(r.at-base, -int64(t.horizon)) * int64(g.unit)
		if word < taken || word == 0 { // the counter was forgotten since, or the take was of zero
			word = taken + left
		}
		owed := word + int64(g.debt(actual-r.n))
		most := int64(t.ticks(d.word.segment, now)) + maxBacklog
		d.word.set(uint64(max(min(owed, most), int64(d.word.word&until))))
		return 0
	}
	passed := min(max(now-r.at, 0), r.backlog.NS+1) * int64(g.unit)
	refund := min(uint64(r.n-actual)*g.each, uint64(max(left-passed, 0)), d.backlog(now))
	d.word.set(uint64(word) - refund)
	return refund
}
