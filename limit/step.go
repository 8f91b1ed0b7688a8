package limit

// state is what one limit remembers of one key. Times are Unix nanoseconds.
// The zero state is a counter that was never used, which is the same as one
// that is full again.
//
//	                at                a                        b
//	buckets         of the last take  its backlog, in ns       and 1/count parts of one more
//	FixedWindow     window's start    window's end             used in it
//	SlidingCounter  window's start    used in the one before   used in it
//
// SlidingLog keeps a history instead, one for all windows of a key.
type state struct{ at, a, b int64 }

// take is the step that every decision consists of: from a counter's state, a
// time and an amount to the state after it and the answer. A denial leaves the
// state as it is, but for a clock that went back.
func (l Limit) take(s state, now, n int64) (state, verdict) {
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

// rewind returns s for a clock that went back to now: at least as much is used as
// was, and it lasts about as long from now on as it would have then: until the end
// of the next window at most.
func (l Limit) rewind(s state, now int64) state {
	switch l.algorithm {
	case FixedWindow:
		if s.b == 0 {
			s.at, s.a = l.window(now)
			return s
		}
		end := now + int64(l.period)
		if l.windowing != anchored { // a step back over a boundary must not open the next window twice
			_, end = l.window(end - 1)
		}
		s.at, s.a = now, min(s.a, end)
	case SlidingCounter: // late in this window the one before weighs less than it did, so it counts as part of this
		s = state{floor(now, int64(l.period)), 0, correct(s.a, s.b)}
	default:
		s.at = now
	}
	return s
}

// receipt is what settling must know of a take.
type receipt struct {
	n  int64
	at int64 // when it was taken

	backlog backlog // of a bucket, that it left behind, less what was refunded to earlier takes since
}

// settle turns what a take left behind into what taking actual would have
// left. It frees no more than the take still holds at now, so a refund never
// becomes headroom in a later window.
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

// never says that n cannot pass, whatever the time.
func (l Limit) never(n int64) bool { return n < 0 || n > l.burst }

// correct adds delta to what is counted as used: not below zero, and not past
// maxCount, so that sums of two such numbers cannot overflow.
func correct(used, delta int64) int64 {
	if delta > 0 && used > maxCount-delta {
		return maxCount
	}
	return max(used+delta, 0)
}
