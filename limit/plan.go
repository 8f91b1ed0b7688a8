package limit

import (
	"slices"
	"sync/atomic"
	"time"
)

// Plan is the limits of a key, prepared once for an [Account] that is asked about them
// again and again. A plan never changes, and accounts with the same limits may share
// one.
type Plan struct {
	limits []Limit

	// at says for each limit where an account that is laid out for the plan counts it:
	// for a sliding log, the index of its window in the history; for any other limit,
	// the index of its counter.
	at []int

	periods  []time.Duration // of the sliding logs, each once, in the order of the windows
	longest  int64           // the longest of the periods
	counters []int           // the indexes of the limits that are no logs, each limit once
	buckets  bool            // whether any limit is a bucket
}

// knownPlans holds plans that are in use, by a hash of their limits, so that keys with
// the same limits share a plan. Of two plans with the same hash, the later stays.
var knownPlans [64]atomic.Pointer[Plan]

// PlanOf returns the plan of limits. They must be valid; the plan has a copy of them.
func PlanOf(limits []Limit) *Plan {
	hash := uint64(len(limits))
	for i := range limits {
		hash = (hash ^ uint64(limits[i].period) ^ uint64(limits[i].count)<<20) * 0x9e3779b97f4a7c15
	}
	known := &knownPlans[hash>>58]
	if p := known.Load(); p != nil && slices.Equal(p.limits, limits) {
		return p
	}
	p := newPlan(limits)
	known.Store(p)
	return p
}

func newPlan(limits []Limit) *Plan {
	p := &Plan{limits: slices.Clone(limits), at: make([]int, len(limits))}
	for i, l := range limits {
		first := slices.Index(limits, l)
		switch {
		case l.algorithm == SlidingLog:
			p.at[i] = slices.Index(p.periods, l.period)
			if p.at[i] < 0 {
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

// PlanOf returns the plan of limits. If the account is laid out for that plan, it costs
// nothing to make.
func (a *Account) PlanOf(limits []Limit) *Plan {
	if a.plan != nil && slices.Equal(a.plan.limits, limits) {
		return a.plan
	}
	return PlanOf(limits)
}

// Limits returns the limits of the plan. Do not change them.
func (p *Plan) Limits() []Limit { return p.limits }

// Buckets reports whether any limit of the plan is a bucket. The settlement of a bucket
// depends on the time.
func (p *Plan) Buckets() bool { return p.buckets }

// Ask fills in the verdict of each limit of the plan about n, as if n was charged if
// the limit allows it. It reports whether all limits allow n. If all limits of all
// keys allow the request, Charge must come next, and otherwise Deny.
func (a *Account) Ask(p *Plan, now, n int64, verdicts []Verdict) (allowed bool) {
	if a.plan == p && a.seen <= now && now < a.counters.fullAt { // nearly always
		a.seen = now
	} else {
		a.enter(now)
		if a.plan != p {
			a.layOut(p, now)
		}
	}
	log := a.logOf(p, now)
	allowed = true
	for i := range p.limits {
		if d := &verdicts[i]; !a.allow(p, i, log, now, n, d) {
			a.answer(p, i, log, now, n, true, d)
			allowed = allowed && d.Allowed
		}
	}
	return allowed
}

// Deny corrects the verdicts of Ask after a limit of this key or of another key has
// denied the request: the verdicts that allow n say what remains while nothing is
// charged.
func (a *Account) Deny(p *Plan, now, n int64, verdicts []Verdict) {
	log := a.logOf(p, now)
	for i := range p.limits {
		if verdicts[i].Allowed {
			a.answer(p, i, log, now, n, false, &verdicts[i])
		}
	}
}

// Peek fills in the verdict of each limit of the plan about n, and charges nothing:
// the verdicts that allow n say what remains now. It reports whether all limits allow
// n. The limits that the account has been charged under stay as they are.
func (a *Account) Peek(p *Plan, now, n int64, verdicts []Verdict) (allowed bool) {
	switch {
	case now >= a.FullAt():
		a = &Account{}
	case a.plan != p || now < a.seen:
		a = a.fork(func(log *history) *history { return log.view(now) })
		a.layOut(p, now)
	}
	log := a.logOf(p, now)
	allowed = true
	for i := range p.limits {
		a.answer(p, i, log, now, n, false, &verdicts[i])
		allowed = allowed && verdicts[i].Allowed
	}
	return allowed
}

// allow fills in the verdict of the i-th limit if it is a sliding log or an open window and
// allows n, as nearly always. It reports whether it has. log is the result of logOf.
func (a *Account) allow(p *Plan, i int, log *history, now, n int64, d *Verdict) bool {
	l := &p.limits[i]
	var used, since int64
	var reset time.Duration
	switch {
	case l.algorithm == SlidingLog && log != nil:
		used, reset = log.slid(p.at[i], now).sum, l.period
	case l.algorithm == FixedWindow && a.plan == p && a.counters.each[p.at[i]].isOpen(now):
		s := &a.counters.each[p.at[i]].state
		used, since, reset = s.b, s.at, time.Duration(s.a-now)
	default:
		return false
	}
	if n <= 0 || n > l.count-used {
		return false
	}
	d.Allowed, d.Used, d.Remaining, d.RetryAfter, d.ResetAfter, d.Since = true, used+n, l.count-used-n, 0, reset, since
	return true
}

// answer fills in the verdict of the i-th limit about n. If the limit allows n, the
// verdict says what remains once n is charged, or, if charged is false, while nothing
// is. log is the result of logOf.
func (a *Account) answer(p *Plan, i int, log *history, now, n int64, charged bool, d *Verdict) {
	l := &p.limits[i]
	var w *slidingWindow
	var used, since int64
	var reset time.Duration // after a charge
	switch {
	case l.algorithm == SlidingLog && log != nil:
		w = log.slid(p.at[i], now)
		used, reset = w.sum, l.period
	case l.algorithm == FixedWindow:
		if c := a.counterOf(p, i); c != nil && c.isOpen(now) {
			used, reset, since = c.state.b, time.Duration(c.state.a-now), c.state.at
			break
		}
		fallthrough
	default: // the general way, which is slower
		v := a.counters.check(*l, now, n)
		if v.Allowed && n > 0 && !charged {
			v = a.counters.check(*l, now, 0)
		}
		*d = v
		return
	}
	left := l.count - used
	d.Allowed, d.RetryAfter = n <= left, 0
	if d.Allowed && n > 0 && charged {
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

// isOpen reports whether the counter is one of a fixed window that is open at now.
func (c *counter) isOpen(now int64) bool {
	return c.limit.algorithm == FixedWindow && c.state.at <= now && now < c.state.a
}

// layOut fits the account to the limits of a plan. Its windows are where the plan says from
// then on, and its counters too if it has all of them. Then it need not be fitted again until
// it is charged under other limits.
func (a *Account) layOut(p *Plan, now int64) {
	a.Fit(p.limits, now)
	a.plan = nil
	if log := a.counters.log; log != nil && len(p.periods) > 0 {
		log.layOut(p.periods, now)
		a.counters.fullAt = max(a.counters.fullAt, log.fullAt())
	}
	if a.epoch != 0 && a.arrange(p) {
		a.plan = p
	}
}

// arrange moves the counters to where the plan says. It reports whether the account has all of
// them, and a history if the plan has a sliding log.
func (a *Account) arrange(p *Plan) bool {
	for at, i := range p.counters {
		each := a.counters.each[at:]
		k := slices.IndexFunc(each, func(c counter) bool { return c.limit == p.limits[i] })
		if k < 0 {
			return false
		}
		each[0], each[k] = each[k], each[0]
	}
	return len(p.periods) == 0 || a.counters.log != nil
}

// logOf returns the history as of now of an account that is laid out for a plan. It is
// nil if the plan has no sliding log, or the account was never charged under one.
func (a *Account) logOf(p *Plan, now int64) *history {
	log := a.counters.log
	if log == nil {
		return nil
	}
	if len(p.periods) > 0 {
		log.rewind(now)
	}
	if log.full() {
		log.tidy(now)
	}
	if len(p.periods) == 0 {
		return nil
	}
	return log
}

// counterOf returns the counter of the i-th limit of the plan, or nil if the account has
// used nothing of it.
func (a *Account) counterOf(p *Plan, i int) *counter {
	if a.plan == p {
		return &a.counters.each[p.at[i]]
	}
	return a.counters.find(&p.limits[i])
}

// Charge charges n to every limit of the plan. Ask has answered that all of them allow it.
// It fills in r, which is empty, for Correct or Settle. r is nil if nothing will be settled.
func (a *Account) Charge(p *Plan, now, n int64, r *Receipt) {
	if n > 0 {
		a.begin(now)
	}
	if r != nil {
		r.N, r.At, r.Mark = n, now, Mark{Epoch: a.epoch}
	}
	if n == 0 {
		return
	}
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
		var v Verdict
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
		if r != nil {
			r.entry = log.next - 1
		}
	}
	if r != nil && p.buckets {
		r.buckets = a.bucketReceipts(p.limits, now)
	}
	if a.plan != p && a.arrange(p) {
		a.plan = p
	}
}

// Correct is [Account.Settle] of what Charge has charged. If the plan has no buckets, now
// may be any time from the charge to the present.
func (a *Account) Correct(p *Plan, r *Receipt, now, actual int64) {
	if a.plan != p || a.epoch != r.Epoch || now < a.seen || p.buckets || !a.holds(p, r, now) {
		a.Settle(p.limits, *r, now, actual)
		return
	}
	a.seen = now
	for _, i := range p.counters {
		c := a.counterOf(p, i)
		if c.isOpen(r.At) && now < c.state.a && c.state.b > r.N {
			c.state.b = correct(c.state.b, actual-r.N)
		} else {
			a.settleOne(c, receipt{n: r.N, at: r.At}, now, actual)
		}
	}
	if len(p.periods) > 0 {
		a.counters.log.amend(r.entry, actual-r.N)
	}
}

// holds reports whether the account, which is laid out for the plan, still has the entry that
// a charge has added to its history.
func (a *Account) holds(p *Plan, r *Receipt, now int64) bool {
	log := a.counters.log
	return len(p.periods) == 0 || r.At > now-p.longestOf(log) && log.isLastAt(r.entry, r.At)
}

// longestOf returns the longest period of the windows of a history, which is laid out
// for the plan and may have windows of other limits too.
func (p *Plan) longestOf(log *history) int64 {
	if len(log.windows) > len(p.periods) {
		return log.longestPeriod()
	}
	return p.longest
}
