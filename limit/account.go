package limit

import (
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Account is all that one key has used, under each of its limits. It is what a
// store keeps for a key, where a [Limiter] does not: a value with no clock and
// no lock. Times are Unix nanoseconds, and limits must be valid. The zero
// Account has used nothing.
//
// Where the clock went back, at least as much is used as was, and it lasts about as
// long from then on as it would have: until the end of the next window at most.
// What was taken before is not given back any more.
type Account struct {
	counters counters
	seen     int64 // the last time that it was told
	plan     *Plan // that it is laid out for, or nil

	// epoch is drawn when the account is first charged, and one more whenever
	// its clock has gone back since. 0 is that of an account which was never
	// charged, or forgotten.
	epoch uint64
}

// rewinds is the part of an epoch that counts how often the clock went back.
const rewinds = 1<<16 - 1

// Receipt is what Settle must know of a Take.
//
// A receipt of nothing but N and At is right for limits that are logs or windows, if
// the account was not forgotten since and its clock has not gone back. One of zero
// is right for all limits: settling it charges what was used whatever they say, as
// a debt.
type Receipt struct {
	N, At   int64
	Epoch   uint64          // of the account that it was taken from
	Buckets []BucketReceipt // one for each limit, if any is a bucket
}

// BucketReceipt is what Settle must know of a take from a bucket.
type BucketReceipt struct {
	left     backlog // that it left behind
	refunded backlog // by then
	changes  int64   // of the limit, by then
}

// refunds is what a bucket must know to refund no more than is held. The part
// of a take has drained when the backlog that it left behind has: earlier by
// what was refunded to takes before it. Which of them came before it is not
// known, so every refund since counts.
type refunds struct {
	total   backlog // modulo 2^64 ns
	changes int64   // of the limit; what was taken before one is not given back
	beyond  int64   // used, and more than the backlog could hold when the limit changed
}

// enter tells the account the time. What is full by then is forgotten.
func (a *Account) enter(now int64) {
	if a.epoch == 0 {
		return
	}
	if now >= a.counters.fullAt && now >= a.FullAt() {
		*a = Account{counters: counters{each: a.counters.each[:0]}} // whose room is needed again
		return
	}
	if now < a.seen {
		a.epoch++
	}
	a.seen = now
}

// bear makes an account of one that was never charged.
func (a *Account) bear(now int64) {
	if a.epoch == 0 {
		a.epoch, a.seen = newEpoch(), now
	}
}

func newEpoch() uint64 { return (rand.Uint64() | 1<<63) &^ rewinds }

// Check says what Take would, if it was asked before it took: whether l lets n
// pass at now, what is left of l, and when to come back.
func (a *Account) Check(l Limit, now, n int64) Decision {
	a.enter(now)
	return a.counters.check(l, now, n).by(l)
}

// Take charges n to every limit. All of them have room for it: [Account.Check]
// has said so.
func (a *Account) Take(limits []Limit, now, n int64) Receipt {
	a.enter(now)
	if n == 0 {
		return Receipt{At: now, Epoch: a.epoch}
	}
	a.charge(limits, now, n)
	r := Receipt{N: n, At: now, Epoch: a.epoch}
	if slices.ContainsFunc(limits, func(l Limit) bool { return l.algorithm.bursts() }) {
		r.Buckets = a.appendBuckets(nil, limits, now)
	}
	return r
}

// appendBuckets appends the receipt of what was just taken of each limit. That of a
// limit which is no bucket is empty.
func (a *Account) appendBuckets(receipts []BucketReceipt, limits []Limit, now int64) []BucketReceipt {
	receipts = slices.Grow(receipts, len(limits))
	for i := range limits {
		var r BucketReceipt
		if l := &limits[i]; l.algorithm.bursts() {
			c := a.counters.find(l)
			r = BucketReceipt{l.backlogAt(c.state, now), c.refunds.total, c.refunds.changes}
		}
		receipts = append(receipts, r)
	}
	return receipts
}

func (a *Account) charge(limits []Limit, now, n int64) {
	a.plan = nil
	a.bear(now)
	a.counters.take(limits, now, n)
}

// Settle corrects what was taken to what was used, in the windows that it was
// taken from: see [Reservation.Settle]. It must be called at most once. The
// limits are those of the Take, whatever they have become since.
func (a *Account) Settle(limits []Limit, r Receipt, now, actual int64) {
	if actual == r.N {
		return
	}
	a.enter(now)
	if r.Epoch != 0 && r.Epoch != a.epoch {
		if actual < r.N {
			return // what it has taken is not there any more
		}
		if r.Epoch&^rewinds == a.epoch&^rewinds { // and when that was, its clock does not say
			actual -= r.N
			r = Receipt{At: now}
		}
	}
	a.plan = nil
	a.bear(now)
	r.At = min(r.At, now) // as far as its clock went back
	logged := false
	for i := range limits {
		l := &limits[i]
		if l.algorithm == SlidingLog {
			if !logged {
				a.counters.settleLog(limits, receipt{n: r.N, at: r.At}, now, actual)
			}
			logged = true
			continue
		}
		if i > 0 && slices.Contains(limits[:i], *l) {
			continue
		}
		c := a.heir(limits, i, now)
		each := receipt{n: r.N, at: r.At}
		switch {
		case r.Buckets == nil:
		case r.Epoch == a.epoch:
			each.backlog = c.held(&r.Buckets[i])
		default: // of refunds in another life this one does not know
			each.backlog = r.Buckets[i].left
		}
		freed := a.settleOne(l, c, each, now, actual)
		c.refunds.total = wrap(l, c.refunds.total, freed)
	}
}

// settleOne corrects a take of a limit in its counter, or that of the limit which it
// has become. It returns what a bucket was refunded.
func (a *Account) settleOne(l *Limit, c *counter, r receipt, now, actual int64) (refunded backlog) {
	c.rewind(now) // or a window that is yet to begin would not take in what is owed
	refunded = a.counters.settleOne(c, r, now, actual)
	if l.windowing == anchored && c.state.b == 0 {
		c.state = state{} // what was given back has begun no window
	}
	return refunded
}

// heir returns the counter of a limit, or of the one that it has become: of those
// of its shape that are none of limits the first, if it is the first limit
// without a counter, and so on.
func (a *Account) heir(limits []Limit, i int, now int64) *counter {
	l := &limits[i]
	if found := a.counters.find(l); found != nil {
		return found
	}
	before := 0
	for k := range limits[:i] {
		if limits[k].shape() == l.shape() && a.counters.find(&limits[k]) == nil {
			before++
		}
	}
	for k := range a.counters.each {
		c := &a.counters.each[k]
		if c.limit.shape() != l.shape() || slices.Contains(limits, c.limit) {
			continue
		}
		if before == 0 {
			return c
		}
		before--
	}
	return a.counters.of(l, now)
}

// held returns the backlog that a take left behind, less what was refunded
// since.
func (c *counter) held(taken *BucketReceipt) backlog {
	if taken.changes != c.refunds.changes {
		return backlog{}
	}
	return c.limit.difference(taken.left, unwrap(&c.limit, c.refunds.total, taken.refunded))
}

// wrap returns a + b, modulo 2^64 ns, and unwrap a - b.
func wrap(l *Limit, a, b backlog) backlog {
	ns, parts := a.NS+b.NS, a.Parts+b.Parts
	if parts >= l.count {
		ns, parts = ns+1, parts-l.count
	}
	return backlog{ns, parts}
}

func unwrap(l *Limit, a, b backlog) backlog {
	ns, parts := a.NS-b.NS, a.Parts-b.Parts
	if parts < 0 {
		ns, parts = ns-1, parts+l.count
	}
	return backlog{ns, parts}
}

// FullAt returns from when on nothing is in use: then the account is the same
// as the zero Account, and may be forgotten.
func (a *Account) FullAt() int64 {
	if log := a.counters.log; log != nil { // a fork may have asked it for a longer window
		return max(a.counters.fullAt, log.fullAt())
	}
	return a.counters.fullAt
}

// Entries returns when how much was taken, oldest first, as far as a sliding
// log remembers it.
func (a *Account) Entries() iter.Seq2[int64, int64] {
	return func(yield func(at, n int64) bool) {
		h := a.counters.log
		if h == nil {
			return
		}
		for i := h.oldest; i < h.next; i++ {
			if e := h.entry(i); e.n > 0 && !yield(e.at, e.n) {
				return
			}
		}
	}
}

// Fit makes room for limits that have changed: one that differs from a limit
// that is none of them any more in nothing but its count or burst, or in when its
// days begin, takes over what was used of that. Of a sliding log that is full it
// forgets the entries that no window holds, or merges neighbours.
func (a *Account) Fit(limits []Limit, now int64) {
	a.enter(now)
	for k := range limits {
		l := &limits[k]
		if l.algorithm == SlidingLog || a.counters.find(l) != nil {
			continue
		}
		for i := range a.counters.each {
			c := &a.counters.each[i]
			if c.limit.shape() == l.shape() && !slices.Contains(limits, c.limit) {
				a.plan = nil
				c.become(l, now)
				_, v := l.take(c.state, now, 0)
				a.counters.fullAt = max(a.counters.fullAt, now+int64(v.ResetAfter))
				break
			}
		}
	}
	if log := a.counters.log; log != nil && log.full() {
		a.counters.history(limits, now).tidy(now)
	}
}

// Fork returns a copy to look at as of now: fitting it to other limits leaves a
// as it is.
func (a *Account) Fork(now int64) *Account {
	fork := *a
	fork.counters.each = slices.Clone(a.counters.each)
	if log := a.counters.log; log != nil && now < a.seen { // it will move entries
		fork.counters.log = log.clone()
	}
	return &fork
}

// shape is what makes what was used of one limit comparable with another's. Days
// are days, whenever they begin, and also if they last up to a minute longer.
func (l *Limit) shape() Limit {
	shape := *l
	shape.count, shape.burst = 0, 0
	if l.windowing == calendar {
		shape.windowing, shape.minute, shape.zone = anchored, 0, nil
	}
	if l.windowing == anchored && l.period.Truncate(time.Minute) == day {
		shape.period = day
	}
	return shape
}

// become turns c into a counter of l. A bucket's backlog is that of as much as
// before; what was taken before is not refunded any more. A window that is open
// ends when the calendar says, if days begin otherwise now, and when it would have
// if they do not: that can be a day later, where the clock went back.
func (c *counter) become(l *Limit, now int64) {
	if l.algorithm == FixedWindow && c.state.b == 0 {
		c.state = state{} // a window of which nothing is used is none
	}
	if l.windowing == calendar && now < c.state.a && c.limit.WithCount(l.count) != *l {
		_, c.state.a = l.window(now)
	}
	if l.algorithm.bursts() && l.count != c.limit.count {
		b := c.limit.backlogAt(c.state, now)
		next, beyond := convert(&c.limit, l, b), int64(0)
		if c.refunds.beyond > 0 || next.NS == maxCount { // more than it can hold is kept in whole amounts
			used := correct(c.limit.heldBy(b), c.refunds.beyond)
			if next = l.backlogOf(used); next.NS == maxCount {
				beyond = used - l.amountOf(next)
			}
		}
		c.state = state{now, next.NS, next.Parts}
		c.refunds = refunds{changes: c.refunds.changes + 1, beyond: beyond}
	}
	c.limit = *l
}

// convert returns the backlog under another limit of the same period of what b is
// under the one that it was: exactly, so that limits which take turns do not add up
// what is rounded. It stops at the largest number.
func convert(was, is *Limit, b backlog) backlog {
	hi, lo := bits.Mul64(uint64(b.NS), uint64(was.count))
	lo, carry := bits.Add64(lo, uint64(b.Parts), 0)
	if hi += carry; hi >= uint64(is.count) {
		return backlog{NS: maxCount}
	}
	ns, parts := bits.Div64(hi, lo, uint64(is.count))
	if ns >= maxCount {
		return backlog{NS: maxCount}
	}
	return backlog{int64(ns), int64(parts)}
}
