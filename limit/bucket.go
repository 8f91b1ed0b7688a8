package limit

import (
	"math/bits"
	"time"
)

// All three bucket algorithms keep a backlog, which grows by what passes and drains as
// time passes. GCRA's theoretical arrival time is now + backlog; the token bucket's
// tokens are burst - backlog; the leaky bucket's level is backlog.
//
// A backlog is measured in time: an amount of n drains in n*period/count. In general
// that is no whole number of nanoseconds, and rounding it would make 3 a second
// either deny the third or admit a fourth. So a backlog also counts parts of 1/count
// of a nanosecond, in which it is exact.

// backlog is NS + Parts/count nanoseconds, with 0 <= Parts < count.
type backlog struct{ NS, Parts int64 }

// backlogOf returns the backlog that an amount of n adds, at most maxCount nanoseconds.
func (l Limit) backlogOf(n int64) backlog {
	hi, lo := bits.Mul64(uint64(n), uint64(l.period))
	if hi >= uint64(l.count) {
		return backlog{NS: maxCount}
	}
	q, r := bits.Div64(hi, lo, uint64(l.count))
	return backlog{int64(min(q, maxCount)), int64(r)}
}

// amountOf returns the amount whose backlog is b, rounded down, and at most maxCount.
func (l Limit) amountOf(b backlog) int64 {
	hi, lo := bits.Mul64(uint64(b.NS), uint64(l.count))
	lo, carry := bits.Add64(lo, uint64(b.Parts), 0)
	hi += carry
	if hi >= uint64(l.period) {
		return maxCount
	}
	q, _ := bits.Div64(hi, lo, uint64(l.period))
	return int64(min(q, maxCount))
}

// amountUp returns the amount whose backlog is b, rounded up.
func (l Limit) amountUp(b backlog) int64 {
	n := l.amountOf(b)
	if l.backlogOf(n) != b {
		n = correct(n, 1)
	}
	return n
}

func (l Limit) sum(a, b backlog) backlog {
	ns, parts := correct(a.NS, b.NS), a.Parts+b.Parts
	if parts >= l.count {
		ns, parts = correct(ns, 1), parts-l.count
	}
	return backlog{ns, parts}
}

// difference returns a - b, or zero where b is larger.
func (l Limit) difference(a, b backlog) backlog {
	if a.NS < b.NS || a.NS == b.NS && a.Parts <= b.Parts {
		return backlog{}
	}
	ns, parts := a.NS-b.NS, a.Parts-b.Parts
	if parts < 0 {
		ns, parts = ns-1, parts+l.count
	}
	return backlog{ns, parts}
}

// drainsIn returns the time in which b drains, rounded up to whole nanoseconds.
func (b backlog) drainsIn() time.Duration {
	if b.Parts > 0 {
		b.NS++
	}
	return time.Duration(b.NS)
}

// backlogAt returns the backlog that is left of s at now.
func (l Limit) backlogAt(s state, now int64) backlog {
	return l.difference(backlog{s.a, s.b}, backlog{NS: max(now-s.at, 0)})
}

// takeBucket is take for GCRA, TokenBucket and LeakyBucket.
func (l Limit) takeBucket(s state, now, n int64) (state, Verdict) {
	before, room := l.backlogAt(s, now), l.backlogOf(l.burst)
	d := Verdict{
		Remaining:  l.amountOf(l.difference(room, before)),
		ResetAfter: before.drainsIn(),
	}
	d.Used = l.burst - d.Remaining
	if d.Remaining == 0 { // there may be a debt
		d.Used = l.amountUp(before)
	}
	if l.never(n) {
		d.RetryAfter = Never
		return s, d
	}
	after := l.sum(before, l.backlogOf(n))
	d.RetryAfter = l.difference(after, room).drainsIn()
	if d.RetryAfter > 0 {
		return s, d
	}
	d.Allowed = true
	if n == 0 {
		return s, d
	}
	d.Used += n
	d.Remaining -= n
	d.ResetAfter = after.drainsIn()
	return state{now, after.NS, after.Parts}, d
}

// settleBucket is settle for GCRA, TokenBucket and LeakyBucket. A debt counts as of the
// time of the take. A refund is at most what still counts of the take: a take has drained
// at the latest when the backlog after it has drained, so what counts is at most what
// is left of that backlog at now.
func (l Limit) settleBucket(s state, now int64, r receipt, actual int64) state {
	if actual > r.n {
		if s.at < r.at { // the counter was forgotten since, or the take was of zero
			left := l.larger(r.backlog, l.backlogAt(s, r.at))
			s = state{r.at, left.NS, left.Parts}
		}
		owed := l.sum(backlog{s.a, s.b}, l.backlogOf(actual-r.n))
		return state{s.at, owed.NS, owed.Parts}
	}
	counts := l.difference(r.backlog, backlog{NS: max(now, s.at) - r.at})
	freed := l.smaller(l.backlogOf(r.n-actual), l.smaller(counts, l.backlogAt(s, now)))
	left := l.difference(backlog{s.a, s.b}, freed)
	return state{s.at, left.NS, left.Parts}
}

func (l Limit) larger(a, b backlog) backlog { return l.sum(b, l.difference(a, b)) }

func (l Limit) smaller(a, b backlog) backlog { return l.difference(a, l.difference(a, b)) }
