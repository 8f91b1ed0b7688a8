package limit

import (
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Account is what one key has used of each of its limits. It is a value without a
// clock or a lock, and is what a store keeps for a key; a [Limiter] keeps its
// counters itself. Times are Unix nanoseconds, and limits must be valid. The zero
// Account has used nothing.
//
// If the clock goes back, the account counts at least as much as used as before, for
// about as long as it would have counted it: at most until the end of the next window.
// Takes from before that are not refunded any more.
type Account struct {
	counters counters
	seen     int64 // the latest time at which the account was asked
	plan     *Plan // the plan that the account is laid out for, or nil

	// epoch is drawn at random when the account is first charged, and grows by one
	// whenever the clock goes back. It is 0 while nothing is in use.
	epoch uint64
}

// rewinds is the part of an epoch that counts how often the clock went back.
const rewinds = 1<<16 - 1

// Receipt is what [Account.Settle] must know of a take.
//
// A receipt with nothing but N and At settles a take from sliding logs and windows, if
// the account was not forgotten since and its clock has not gone back. With N = 0 it
// is valid for all limits: settling it charges the actual amount as a debt, whatever
// the limits say.
type Receipt struct {
	N, At int64
	Mark
	buckets *[]bucketReceipt // one for each limit, if any is a bucket; else nil, which takes less room than a slice
}

// Backlog returns the backlog that a take has left in the bucket of the i-th limit, as ns +
// parts/count nanoseconds. ok is false if the receipt has none.
func (r *Receipt) Backlog(i int) (ns, parts int64, ok bool) {
	if r.buckets == nil {
		return 0, 0, false
	}
	left := (*r.buckets)[i].left
	return left.NS, left.Parts, true
}

// Mark says where an account has counted a take.
type Mark struct {
	Epoch uint64 // of the account
	entry int64  // the index of the entry in the sliding log, of a charge by a plan
}

// bucketReceipt is what Settle must know of a take from a bucket.
type bucketReceipt struct {
	left     backlog // the backlog that the take left behind
	refunded backlog // everything that was refunded before the take
	changes  int64   // how often the limit's count had changed
}

// refunds is what a bucket must know to refund no more than a take still holds. A take
// has drained when the backlog that it left behind has drained. Refunds to earlier
// takes make that sooner. The bucket does not know which refunds went to earlier
// takes, so it counts all refunds since the take.
type refunds struct {
	total   backlog // everything that was refunded, modulo 2^64 ns
	changes int64   // how often the limit's count has changed; takes from before a change are not refunded
	beyond  int64   // the amount that the largest backlog could not hold when the limit's count changed
}

// enter moves the account to the time of a call. An account that is full by then
// becomes a zero account.
func (a *Account) enter(now int64) {
	if a.epoch == 0 {
		return
	}
	if now >= a.FullAt() {
		*a = Account{counters: counters{each: a.counters.each[:0]}} // the room of the counters is used again
		return
	}
	if now < a.seen {
		a.epoch++
	}
	a.seen = now
}

// begin draws an epoch if nothing of the account was in use.
func (a *Account) begin(now int64) {
	if a.epoch == 0 {
		a.epoch, a.seen = newEpoch(), now
	}
}

func newEpoch() uint64 { return (rand.Uint64() | 1<<63) &^ rewinds }

// Check returns the decision of l on a take of n at now, and takes nothing. What it
// says remains is what would remain after the take.
func (a *Account) Check(l Limit, now, n int64) Decision {
	a.enter(now)
	return a.counters.check(l, now, n).By(l)
}

// Take charges n to every limit. Call it only if [Account.Check] allows n for all of
// them.
func (a *Account) Take(limits []Limit, now, n int64) Receipt {
	a.enter(now)
	if n == 0 {
		return Receipt{At: now, Mark: Mark{Epoch: a.epoch}}
	}
	a.plan = nil
	a.begin(now)
	a.counters.take(limits, now, n)
	r := Receipt{N: n, At: now, Mark: Mark{Epoch: a.epoch}}
	if slices.ContainsFunc(limits, func(l Limit) bool { return l.algorithm.bursts() }) {
		r.buckets = a.bucketReceipts(limits, now)
	}
	return r
}

// bucketReceipts returns a receipt for each limit, right after a take. The receipt of a
// limit that is no bucket is empty.
func (a *Account) bucketReceipts(limits []Limit, now int64) *[]bucketReceipt {
	receipts := make([]bucketReceipt, len(limits))
	for i := range limits {
		l := &limits[i]
		if c := a.counters.find(l); c != nil && l.algorithm.bursts() { // nil if the limit did not allow the take
			receipts[i] = bucketReceipt{l.backlogAt(c.state, now), c.refunds.total, c.refunds.changes}
		}
	}
	return &receipts
}

// Settle corrects a take to the actual amount, in the windows that it was taken from:
// see [Reservation.Settle]. Call it at most once for each take, with the limits of the
// take, even if they have changed since.
func (a *Account) Settle(limits []Limit, r Receipt, now, actual int64) {
	if actual == r.N {
		return
	}
	a.enter(now)
	if r.Epoch != 0 && r.Epoch != a.epoch {
		if actual < r.N {
			return // the account was forgotten since, or its clock went back: there is nothing to refund
		}
		if r.Epoch&^rewinds == a.epoch&^rewinds { // after the clock went back, the time of the take says nothing
			actual -= r.N
			r = Receipt{At: now}
		}
	}
	a.plan = nil
	a.begin(now)
	r.At = min(r.At, now)
	for i, l := range counted(limits) {
		c := a.successor(limits, i, now)
		each := receipt{n: r.N, at: r.At}
		switch {
		case r.buckets == nil:
		case r.Epoch == a.epoch:
			each.backlog = c.leftBy(&(*r.buckets)[i])
		default: // the account was forgotten since, and its refunds with it
			each.backlog = (*r.buckets)[i].left
		}
		freed := a.settleOne(c, each, now, actual)
		c.refunds.total = wrap(l, c.refunds.total, freed)
	}
	a.counters.settleLog(limits, receipt{n: r.N, at: r.At}, now, actual)
}

// settleOne corrects a take of a limit in c, which is the counter of that limit or of
// the one that has replaced it. It returns what a bucket was refunded.
func (a *Account) settleOne(c *counter, r receipt, now, actual int64) (refunded backlog) {
	c.rewind(now) // a window that begins in the future would not count the debt
	refunded = a.counters.settleOne(c, r, now, actual)
	if c.limit.algorithm == FixedWindow && c.state.b == 0 {
		c.state = state{} // a take that was refunded as a whole has begun no window
	}
	return refunded
}

// successor returns the counter of the i-th limit, or of the limit that has replaced it
// since: the first limit without a counter was replaced by the first counter of the
// same shape whose limit is none of limits, the second by the second, and so on.
func (a *Account) successor(limits []Limit, i int, now int64) *counter {
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

// leftBy returns the backlog that a take left behind, less everything that was refunded
// since.
func (c *counter) leftBy(taken *bucketReceipt) backlog {
	if taken.changes != c.refunds.changes {
		return backlog{}
	}
	return c.limit.difference(taken.left, unwrap(&c.limit, c.refunds.total, taken.refunded))
}

// wrap returns a + b modulo 2^64 ns, and unwrap returns a - b modulo 2^64 ns.
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

// FullAt returns the time from which on nothing is in use. Then the account is the same
// as the zero Account, and may be forgotten.
func (a *Account) FullAt() int64 { return a.counters.fullAt }

// Entries returns the time and the amount of each take that the sliding log remembers,
// oldest first.
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

// Fit makes the account ready for limits that may have changed. A new limit takes over
// the usage of one that is gone if they differ only in their count or burst, or in
// when their hours, days, weeks or months begin. If the ring of the sliding log is full, Fit forgets the
// entries that have left all windows, or merges neighbours.
func (a *Account) Fit(limits []Limit, now int64) {
	a.enter(now)
	for k := range limits {
		l := &limits[k]
		if l.algorithm == SlidingLog || a.counters.find(l) != nil {
			continue
		}
		if c := a.replacedBy(l, limits); c != nil {
			a.plan = nil
			c.become(l, now)
			_, v := l.take(c.state, now, 0)
			a.counters.fullAt = max(a.counters.fullAt, now+int64(v.ResetAfter))
		}
	}
	if log := a.counters.log; log != nil && log.full() {
		a.counters.history(limits, now).tidy(now)
	}
}

// replacedBy returns the first counter whose usage l, a limit without a counter, takes over, or nil. It is the counter of
// a limit that has the shape of l and is none of limits.
func (a *Account) replacedBy(l *Limit, limits []Limit) *counter {
	for i := range a.counters.each {
		if c := &a.counters.each[i]; c.limit.shape() == l.shape() && !slices.Contains(limits, c.limit) {
			return c
		}
	}
	return nil
}

// Fork returns a copy for decisions that take nothing. They leave the account as it is, under
// whatever limits.
func (a *Account) Fork() *Account { return a.fork((*history).clone) }

func (a *Account) fork(copyLog func(*history) *history) *Account {
	fork := *a
	fork.counters.each = slices.Clone(a.counters.each)
	if log := a.counters.log; log != nil {
		fork.counters.log = copyLog(log)
	}
	return &fork
}

// shape returns the part of a limit that must stay for its usage to stay: everything
// but its counts. All days have one shape, whenever they begin, and also if they last
// up to a minute longer; so have all hours, all weeks and all months.
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

// become turns c into a counter of l. A bucket holds the same amount as before, and
// takes from before are not refunded any more. If windows begin at another time now,
// the open window ends when the new calendar says. Otherwise it ends when it would have,
// which can be a window later if the clock went back.
func (c *counter) become(l *Limit, now int64) {
	if l.algorithm == FixedWindow && c.state.b == 0 {
		c.state = state{} // a window is open only if something of it is used
	}
	if l.windowing == calendar && now < c.state.a && c.limit.WithCount(l.count) != *l {
		_, c.state.a = l.window(now)
	}
	if l.algorithm.bursts() && l.count != c.limit.count {
		b := c.limit.backlogAt(c.state, now)
		next, beyond := convert(&c.limit, l, b), int64(0)
		if c.refunds.beyond > 0 || next.NS == maxCount { // the backlog cannot hold everything, so the rest is kept as a whole amount
			used := correct(c.limit.amountUp(b), c.refunds.beyond)
			if next = l.backlogOf(used); next.NS == maxCount {
				beyond = used - l.amountOf(next)
			}
		}
		c.state = state{now, next.NS, next.Parts}
		c.refunds = refunds{changes: c.refunds.changes + 1, beyond: beyond}
	}
	c.limit = *l
}

// convert returns the backlog under limit is of the amount whose backlog is b under limit
// was; their periods are equal. It is exact, so that a limit that changes back and forth
// does not add up rounding errors. It stops at the largest number.
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
