package limit

import (
	"slices"
	"sync/atomic"
	"time"
)

// Plan is the limits of a key, made ready for accounts to be asked about them
// again and again. It does not change, and any number of accounts may share it.
type Plan struct {
	limits []Limit

	// at is where an account that is laid out for the plan has what was used of
	// each limit. For a sliding log it is the index of its window. For others it is
	// where their counter is likely to be, since counters are made in this order.
	at []int

	periods  []time.Duration // of the log's windows
	longest  int64           // of them
	counters []int           // the limits that have counters of their own, as indexes
	buckets  bool            // whether any limit is a bucket
}

// knownPlans are some that are in use, so that keys with the same limits share
// theirs. They are found by what they hash to, and the latest stays.
var knownPlans [64]atomic.Pointer[Plan]

// PlanOf returns the plan of limits, which must be valid. It keeps a copy.
func PlanOf(limits []Limit) *Plan {
	hash := uint64(len(limits))
	for i := range limits {
		hash = (hash ^ uint64(limits[i].period) ^ uint64(limits[i].count)<<20) * 0x9e3779b97f4a7c15
	}
	place := &knownPlans[hash>>58]
	if p := place.Load(); p != nil && slices.Equal(p.limits, limits) {
		return p
	}
	p := newPlan(limits)
	place.Store(p)
	return p
}

func newPlan(limits []Limit) *Plan {
	p := &Plan{limits: slices.Clone(limits), at: make([]int, len(limits))}
	for i, l := range limits {
		first := slices.Index(limits, l)
		switch {
		case l.algorithm == SlidingLog:
			if p.at[i] = slices.Index(p.periods, l.period); p.at[i] < 0 {
				p.at[i] = len(p.periods)
				p.periods = append(p.periods, l.period)
				p.longest = max(p.longest, int64(l.period))
			}
		case first < i:
			p.at[i] = p.at[first]
		default:
			p.at[i] = len(p.counters)
			p.counters = append(p.counters, i)
		}
		p.buckets = p.buckets || l.algorithm.bursts()
	}
	return p
}

// PlanOf returns the plan of limits: the one that the account is laid out for, if it
// is theirs.
func (a *Account) PlanOf(limits []Limit) *Plan {
	if a.plan != nil && slices.Equal(a.plan.limits, limits) {
		return a.plan
	}
	return PlanOf(limits)
}

// Limits returns the limits of the plan. Do not change them.
func (p *Plan) Limits() []Limit { return p.limits }

// logsAlone reports whether there are limits, and all are sliding logs.
func (p *Plan) logsAlone() bool { return len(p.periods) > 0 && len(p.counters) == 0 }

// Buckets reports whether any limit of the plan is a bucket: their settlement needs
// receipts, and the time.
func (p *Plan) Buckets() bool { return p.buckets }

// Mark is what Correct must know of a Charge.
type Mark struct {
	N     int64
	epoch uint64
	entry int64 // index of the log's entry
}

// Ask makes the account ready for the plan's limits, and fills in what each of
// them says to n. It reports whether all of them allow n. Either Charge or Deny comes
// next.
func (a *Account) Ask(p *Plan, now, n int64, decisions []Decision) (allowed bool) {
	a.enter(now)
	if a.plan != p {
		a.layOut(p, now)
	}
	log := a.logOf(p, now)
	allowed = true
	for i := range p.limits {
		a.answer(p, i, log, now, n, true, &decisions[i])
		allowed = allowed && decisions[i].Allowed
	}
	return allowed
}

// Deny corrects what Ask has filled in where a limit denies the request, be it
// another key's: the limits that allow n say what remains while nothing is taken.
func (a *Account) Deny(p *Plan, now, n int64, decisions []Decision) {
	log := a.logOf(p, now)
	for i := range p.limits {
		if decisions[i].Allowed {
			a.answer(p, i, log, now, n, false, &decisions[i])
		}
	}
}

// Peek fills in what each limit of the plan says to n while nothing is taken. It
// reports whether all of them allow n. The account stays ready for the limits that
// it had before.
func (a *Account) Peek(p *Plan, now, n int64, decisions []Decision) (allowed bool) {
	switch {
	case now >= a.FullAt():
		a = &Account{}
	case a.plan != p || now < a.seen:
		a.plan = nil // they may have a log in common
		a = a.Fork(now)
		a.layOut(p, now)
	}
	log := a.logOf(p, now)
	allowed = true
	for i := range p.limits {
		a.answer(p, i, log, now, n, false, &decisions[i])
		allowed = allowed && decisions[i].Allowed
	}
	return allowed
}

// answer fills in what a limit of the plan says to n: how much is left once n is
// taken, or while nothing is. log is that of logOf.
func (a *Account) answer(p *Plan, i int, log *history, now, n int64, taken bool, d *Decision) {
	l := &p.limits[i]
	var w *slidingWindow
	var c *counter
	var used, since int64
	var reset time.Duration // once n is taken
	switch {
	case l.algorithm == SlidingLog && log != nil:
		w = log.slid(p.at[i], now)
		used, reset = w.sum, l.period
	case l.algorithm == FixedWindow:
		if c = a.counterOf(p, i); c != nil && c.isOpen(now) {
			used, reset, since = c.state.b, time.Duration(c.state.a-now), c.state.at
			break
		}
		fallthrough
	default:
		v := a.says(p, i, log, now, n)
		if v.Allowed && n > 0 && !taken {
			v = a.says(p, i, log, now, 0)
		}
		*d = v.by(*l)
		return
	}
	left := l.count - used
	d.Limit = *l
	d.Allowed, d.RetryAfter = n <= left, 0
	if d.Allowed && n > 0 && taken {
		d.Used, d.Remaining, d.ResetAfter, d.Since = used+n, left-n, reset, since
		return
	}
	d.Used, d.Remaining, d.ResetAfter, d.Since = used, max(left, 0), 0, 0
	switch {
	case used == 0:
	case w != nil:
		d.ResetAfter = time.Duration(log.entry(log.next-1).at-now) + l.period
	default:
		d.ResetAfter, d.Since = reset, since
	}
	switch {
	case d.Allowed:
	case l.never(n):
		d.RetryAfter = Never
	case w != nil:
		d.RetryAfter = log.retry(w, now, n-left)
	default:
		d.RetryAfter = reset
	}
}

// isOpen reports whether the window of a fixed window is open at now.
func (c *counter) isOpen(now int64) bool {
	return c.limit.algorithm == FixedWindow && c.state.at <= now && now < c.state.a
}

// layOut makes an account ready for the limits of a plan. Then it need not compare
// them with what it has, until it meets other limits.
func (a *Account) layOut(p *Plan, now int64) {
	a.Fit(p.limits, now)
	a.plan = nil
	if log := a.counters.log; log != nil && len(p.periods) > 0 {
		log.layOut(p.periods, now)
		a.counters.fullAt = max(a.counters.fullAt, log.fullAt())
	}
	if a.epoch != 0 {
		a.plan = p
	}
}

// logOf returns the log as of now of an account that is laid out for a plan, or nil
// if the plan needs none or nothing was charged yet.
func (a *Account) logOf(p *Plan, now int64) *history {
	log := a.counters.log
	if log == nil || len(p.periods) == 0 {
		return nil
	}
	log.rewind(now)
	return log
}

// says is what a limit of the plan says to n. log is that of logOf.
func (a *Account) says(p *Plan, i int, log *history, now, n int64) verdict {
	l := &p.limits[i]
	if l.algorithm == SlidingLog {
		if log == nil {
			return log.says(l, &slidingWindow{}, now, n)
		}
		return log.says(l, log.slid(p.at[i], now), now, n)
	}
	var s state
	if c := a.counterOf(p, i); c != nil {
		c.rewind(now)
		s = c.state
	}
	_, v := l.take(s, now, n)
	return v
}

// counterOf returns the counter of a limit of the plan, or nil if nothing of it was
// used.
func (a *Account) counterOf(p *Plan, i int) *counter {
	l, each := &p.limits[i], a.counters.each
	if at := p.at[i]; at < len(each) && each[at].limit == *l {
		return &each[at]
	}
	return a.counters.find(l)
}

// Charge charges n to every limit of the plan, all of which have allowed it when
// they were asked.
func (a *Account) Charge(p *Plan, now, n int64) Mark {
	if n == 0 {
		return Mark{epoch: a.epoch}
	}
	a.begin(now)
	m := Mark{N: n, epoch: a.epoch}
	c := &a.counters
	for _, i := range p.counters {
		l, each := &p.limits[i], a.counterOf(p, i)
		if each == nil {
			each = c.of(l, now)
		}
		if each.isOpen(now) {
			each.state.b += n
			c.fullAt = max(c.fullAt, each.state.a)
			continue
		}
		var v verdict
		each.state, v = l.take(each.state, now, n)
		c.fullAt = max(c.fullAt, now+int64(v.ResetAfter))
	}
	if len(p.periods) > 0 {
		log := c.log
		if log == nil {
			log = c.history(p.limits, now)
		}
		log.add(now, n)
		c.fullAt = max(c.fullAt, now+p.longestOf(log))
		m.entry = log.next - 1
	}
	a.plan = p
	return m
}

// AppendReceipts appends the receipts that the buckets of the plan need for the
// settlement of n, which was just charged: one for each limit.
func (a *Account) AppendReceipts(p *Plan, now, n int64, receipts []BucketReceipt) []BucketReceipt {
	if n == 0 {
		return append(receipts, make([]BucketReceipt, len(p.limits))...)
	}
	return a.appendBuckets(receipts, p.limits, now)
}

// Correct is Settle of what Charge has taken at a time. receipts are those of
// AppendReceipts, or none if the plan has no buckets. Where the plan has no buckets, now may be any time since.
func (a *Account) Correct(p *Plan, m Mark, receipts []BucketReceipt, at, now, actual int64) {
	if a.plan != p || a.epoch != m.epoch || now < a.seen || p.buckets || !a.holds(p, m, at, now) {
		a.Settle(p.limits, Receipt{N: m.N, At: at, Epoch: m.epoch, Buckets: receipts}, now, actual)
		return
	}
	a.seen = now
	for _, i := range p.counters {
		a.settleOne(&p.limits[i], a.counterOf(p, i), receipt{n: m.N, at: at}, now, actual)
	}
	if len(p.periods) > 0 {
		a.counters.log.amend(m.entry, actual-m.N)
	}
}

// holds reports whether the account still has what a charge has made.
func (a *Account) holds(p *Plan, m Mark, at, now int64) bool {
	for _, i := range p.counters {
		if a.counterOf(p, i) == nil {
			return false
		}
	}
	log := a.counters.log
	return len(p.periods) == 0 || log != nil && at > now-p.longestOf(log) && log.holds(m.entry, at)
}

// longestOf returns the longest period of a log's windows. The log is laid out for the
// plan, and may have windows of other limits too.
func (p *Plan) longestOf(log *history) int64 {
	if len(log.windows) > len(p.periods) {
		return log.longest()
	}
	return p.longest
}
