package limit

import (
	"iter"
	"slices"
)

// counters is what one key has used of each of its limits. It has no clock and no lock.
// Times are Unix nanoseconds.
type counters struct {
	each   []counter
	log    *history // the one log of all sliding logs; nil if none was used
	fullAt int64    // the time from which on nothing is in use
}

// counter is what a key has used of one limit. A limit that has changed has a new
// counter, unless [Account.Fit] moves the old one to it.
type counter struct {
	limit Limit
	state state

	refunds refunds // only of a bucket in an Account
}

// counted returns the limits that have a counter of their own, and their indexes: all but
// sliding logs, which share a history, and each limit once.
func counted(limits []Limit) iter.Seq2[int, *Limit] {
	return func(yield func(int, *Limit) bool) {
		for i := range limits {
			l := &limits[i]
			if l.algorithm != SlidingLog && !slices.Contains(limits[:i], *l) && !yield(i, l) {
				return
			}
		}
	}
}

func anyLog(limits []Limit) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l.algorithm == SlidingLog })
}

// find returns the counter of a limit, or nil if nothing of it was used.
func (c *counters) find(l *Limit) *counter {
	for i := range c.each {
		if c.each[i].limit == *l {
			return &c.each[i]
		}
	}
	return nil
}

// of returns the counter of a limit. If there is none, it makes one, in the place of a
// counter that is full again if there is such a one.
func (c *counters) of(l *Limit, now int64) *counter {
	if found := c.find(l); found != nil {
		return found
	}
	i := slices.IndexFunc(c.each, func(c counter) bool { return c.full(now) })
	if i < 0 {
		i = len(c.each)
		c.each = append(c.each, counter{})
	}
	c.each[i] = counter{limit: *l}
	return &c.each[i]
}

// full reports whether nothing of the counter is in use, so that it can be forgotten.
func (c *counter) full(now int64) bool {
	_, v := c.limit.take(c.state, now, 0)
	return v.ResetAfter == 0 && c.refunds == refunds{}
}

// rewind adapts the counter if the clock went back. The change is kept: otherwise the
// usage would count until the clock is where it was.
func (c *counter) rewind(now int64) {
	if now < c.state.at {
		c.state = c.limit.rewind(c.state, now)
	}
}

// check returns the verdict of a limit on a take of n, and takes nothing.
func (c *counters) check(l Limit, now, n int64) Verdict {
	if l.algorithm == SlidingLog {
		v := c.log.check(l, now, n)
		if c.log != nil {
			c.fullAt = max(c.fullAt, c.log.fullAt()) // the limit's window may be longer than all before
		}
		return v
	}
	var s state
	if found := c.find(&l); found != nil {
		found.rewind(now)
		s = found.state
	}
	_, v := l.take(s, now, n)
	return v
}

// history returns the log, with a window for each limit that is a sliding log.
func (c *counters) history(limits []Limit, now int64) *history {
	if c.log == nil {
		c.log = newHistory(now - 1)
	}
	for i := range limits {
		if l := &limits[i]; l.algorithm == SlidingLog {
			c.log.window(l.period, now)
		}
	}
	return c.log
}

// take charges n to every limit. All of them must have room for n.
func (c *counters) take(limits []Limit, now, n int64) {
	for _, l := range counted(limits) {
		counter := c.of(l, now)
		var v Verdict
		counter.state, v = l.take(counter.state, now, n)
		c.fullAt = max(c.fullAt, now+int64(v.ResetAfter))
	}
	if anyLog(limits) {
		c.history(limits, now).add(now, n)
		c.fullAt = max(c.fullAt, c.log.fullAt())
	}
}

// receipts returns what settle must know of a take of n at now, for each limit.
func (c *counters) receipts(limits []Limit, now, n int64) []receipt {
	receipts := make([]receipt, len(limits))
	for i, l := range limits {
		receipts[i] = receipt{n: n, at: now}
		if found := c.find(&l); found != nil && l.algorithm.bursts() {
			receipts[i].backlog = l.backlogAt(found.state, now)
		}
	}
	return receipts
}

// settle corrects a take to the actual amount, by the receipt of each limit. It calls
// refunded with what each bucket was refunded.
func (c *counters) settle(limits []Limit, receipts []receipt, now, actual int64, refunded func(l Limit, b backlog)) {
	for i, l := range counted(limits) {
		if freed := c.settleOne(c.of(l, now), receipts[i], now, actual); l.algorithm.bursts() {
			refunded(*l, freed)
		}
	}
	if len(limits) > 0 {
		c.settleLog(limits, receipts[0], now, actual)
	}
}

// settleLog corrects a take in the log, if any limit is a sliding log.
func (c *counters) settleLog(limits []Limit, r receipt, now, actual int64) {
	if anyLog(limits) {
		c.history(limits, now).settle(now, r, actual)
		c.fullAt = max(c.fullAt, c.log.fullAt())
	}
}

// settleOne corrects a take in one counter. It returns what a bucket was refunded.
func (c *counters) settleOne(of *counter, r receipt, now, actual int64) (refunded backlog) {
	l := &of.limit
	before := of.state
	of.state = l.settle(before, now, r, actual)
	_, v := l.take(of.state, now, 0)
	c.fullAt = max(c.fullAt, now+int64(v.ResetAfter))
	if !l.algorithm.bursts() {
		return backlog{}
	}
	return l.difference(l.backlogAt(before, now), l.backlogAt(of.state, now))
}
