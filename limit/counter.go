package limit

import (
	"math/bits"
	"time"
)

// slide returns s for the window of now: the window that has just ended becomes the one
// before, and older ones are forgotten.
func (l Limit) slide(s state, now int64) state {
	period := int64(l.period)
	switch start := floor(now, period); start {
	case s.at:
		return s
	case s.at + period:
		return state{start, s.b, 0}
	default:
		return state{start, 0, 0}
	}
}

// takeCounter admits n if n requests, one after the other, would each find the estimate below
// the limit: used, and previous in proportion to what is left of this window. Since the limit
// and used are whole, previous counts rounded down.
func (l Limit) takeCounter(s state, now, n int64) (state, Verdict) {
	slid := l.slide(s, now)
	previous, used := slid.a, slid.b
	period := int64(l.period)
	left := period - (now - slid.at) // the rest of this window, in proportion to which the previous one weighs
	room := l.count - used           // what this window leaves to the previous one and to n
	weighted := scale(previous, left, period, 0)
	d := Verdict{
		Used:       correct(used, weighted),
		Remaining:  max(room-weighted, 0),
		ResetAfter: l.slidOut(slid, now),
	}
	switch {
	case l.never(n):
		d.RetryAfter = Never
	case n == 0 && room >= weighted:
		d.Allowed = true
	case n <= room-weighted:
		d.Allowed = true
		d.Used += n
		d.Remaining -= n
		slid.b += n
		d.ResetAfter = l.slidOut(slid, now)
		return slid, d
	case n <= room: // passes when the previous window weighs less than room-n+1
		d.RetryAfter = time.Duration(left - scale(period, room-n+1, previous, 1) + 1)
	default: // passes when this window is the previous one and weighs less than count-n+1
		d.RetryAfter = time.Duration(left + period - scale(period, l.count-n+1, used, 1) + 1)
	}
	return s, d
}

// slidOut returns the time until nothing of s counts any more.
func (l Limit) slidOut(s state, now int64) time.Duration {
	switch ends := s.at + int64(l.period) - now; {
	case s.b > 0:
		return time.Duration(ends) + l.period
	case s.a > 0:
		return time.Duration(ends)
	default:
		return 0
	}
}

func (l Limit) settleCounter(s state, r receipt, actual int64) state {
	start := floor(r.at, int64(l.period))
	if start > s.at { // the counter was forgotten since, or the take was of zero
		s = l.slide(s, r.at)
	}
	switch start {
	case s.at:
		s.b = correct(s.b, actual-r.n)
	case s.at - int64(l.period):
		s.a = correct(s.a, actual-r.n)
	}
	return s
}

// scale returns n*numerator/denominator for numerator <= denominator, rounded
// up if up is 1 and down if it is 0.
func scale(n, numerator, denominator, up int64) int64 {
	if n == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(numerator))
	q, r := bits.Div64(hi, lo, uint64(denominator))
	if up == 1 && r > 0 {
		q++
	}
	return int64(q)
}
