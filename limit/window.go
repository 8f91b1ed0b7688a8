package limit

import "time"

// takeWindow is take for a FixedWindow.
func (l Limit) takeWindow(s state, now, n int64) (state, Verdict) {
	current := s
	if now >= s.a {
		current = state{}
		current.at, current.a = l.window(now)
	}
	left := time.Duration(current.a - now)
	d := Verdict{Used: current.b, Remaining: max(l.count-current.b, 0)}
	if current.b > 0 {
		d.ResetAfter, d.Since = left, current.at
	}
	switch {
	case l.never(n):
		d.RetryAfter = Never
	case n > l.count-current.b:
		d.RetryAfter = left
	case n == 0:
		d.Allowed = true
	default:
		d.Allowed = true
		d.Used += n
		d.Remaining -= n
		d.ResetAfter, d.Since = left, current.at
		current.b += n
		return current, d
	}
	return s, d
}

// settleWindow is settle for a FixedWindow.
func (l Limit) settleWindow(s state, r receipt, actual int64) state {
	// The counter was forgotten since, or the take was of zero. The start of an
	// anchored window that was forgotten is not known, but the window has ended.
	if r.at >= s.a && actual > r.n && (l.windowing != anchored || r.n == 0) {
		s = state{}
		s.at, s.a = l.window(r.at)
	}
	began := s.at
	if l.windowing == anchored && r.n == 0 {
		began = s.at - int64(l.period) + 1 // a take of zero begins no window: its debt counts in a window that began within a period after it
	}
	if began <= r.at && r.at < s.a {
		s.b = correct(s.b, actual-r.n)
	}
	return s
}

// window returns the start and the end of the window that now falls into. An anchored
// window begins now.
func (l Limit) window(now int64) (start, end int64) {
	switch l.windowing {
	case anchored:
		return now, now + int64(l.period)
	case calendar:
		return l.calendarWindow(now)
	default:
		start = floor(now, int64(l.period))
		return start, start + int64(l.period)
	}
}

// floor rounds t down to a multiple of period, also if t is negative.
func floor(t, period int64) int64 {
	past := t % period
	if past < 0 {
		past += period
	}
	return t - past
}

// Window returns the start and the end, in Unix nanoseconds, of the window that holds a time: the
// calendar's hour, day, week or month, where the limit has such, and otherwise a period that begins then.
func (l Limit) Window(now int64) (start, end int64) {
	if l.windowing == calendar {
		return l.calendarWindow(now)
	}
	return now, now + int64(l.period)
}
