package limit

// state is what a counter of one limit stores. Times are Unix nanoseconds. The zero state
// is a counter that was never used, which is the same as a counter that is full again.
//
//	                at                     a                           b
//	buckets         time of the last take  NS of the backlog then      Parts of the backlog then
//	FixedWindow     start of the window    end of the window           used in the window
//	SlidingCounter  start of the window    used in the window before   used in the window
//
// A SlidingLog has a history in place of a state: one for all windows of a key.
type state struct{ at, a, b int64 }

// take is the step of every decision: it maps a counter's state, a time and an amount to
// the next state and the verdict. A denial leaves the state as it is, unless the clock
// went back.
func (l Limit) take(s state, now, n int64) (state, Verdict) {
	if now < s.at {
		s = l.rewind(s, now)
	}
	switch l.algorithm {
	case FixedWindow:
		return l.takeWindow(s, now, n)
	case SlidingCounter:
		return l.takeCounter(s, now, n)
	default:
		return l.takeBucket(s, now, n)
	}
}

// rewind returns s for a clock that went back to now. As much counts as used as before, or
// more, for about as long as it would have counted, but not beyond the end of the next
// window.
func (l Limit) rewind(s state, now int64) state {
	switch l.algorithm {
	case FixedWindow:
		if s.b == 0 {
			s.at, s.a = l.window(now)
			return s
		}
		_, end := l.window(now)
		if l.windowing != anchored { // a step back over a boundary must not open the next window twice
			_, end = l.window(end)
		}
		s.at, s.a = now, min(s.a, end)
	case SlidingCounter: // what was used in the window before counts in this one, where it keeps all of its weight
		s = state{floor(now, int64(l.period)), 0, correct(s.a, s.b)}
	default:
		s.at = now
	}
	return s
}

// receipt is what settle must know of a take.
type receipt struct {
	n  int64
	at int64 // the time of the take

	backlog backlog // the backlog that the take left in a bucket, less refunds to earlier takes since
}

// settle turns the state that a take of r.n has led to into the one that a take of actual
// would have led to. It refunds no more than what still counts of the take at now, so a
// refund never becomes headroom in a later window.
func (l Limit) settle(s state, now int64, r receipt, actual int64) state {
	switch l.algorithm {
	case FixedWindow:
		return l.settleWindow(s, r, actual)
	case SlidingCounter:
		return l.settleCounter(s, r, actual)
	default:
		return l.settleBucket(s, now, r, actual)
	}
}

// never reports whether an amount of n can never pass.
func (l Limit) never(n int64) bool { return n < 0 || n > l.burst }

// correct adds delta to a used amount. The result is at least zero, and at most maxCount,
// so that sums of two such numbers do not overflow.
func correct(used, delta int64) int64 {
	if delta > 0 && used > maxCount-delta {
		return maxCount
	}
	return max(used+delta, 0)
}
