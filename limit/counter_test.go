package limit

import (
	"math/big"
	"testing"
	"time"
)

// propertyCounter: the sliding counter decides as its definition does in
// rational numbers.
func propertyCounter(t historyT, src historySource) {
	l := historyLimit(src, SlidingCounter)
	historyAgree(t, src, newHistoryWalk(src, l, false), newModelCounter(l))
}

func TestCounterAgreesWithItsDefinition(t *testing.T) { historyRapid(t, propertyCounter) }

// textbookCounter is the sliding counter as textbooks write it down, for one request after
// the other.
type textbookCounter struct {
	limit, window     int64
	previous, current int64
	start             int64
}

func (c *textbookCounter) allow(now int64) bool {
	elapsed := now - c.start
	if elapsed >= c.window {
		c.previous = c.current
		if elapsed >= 2*c.window {
			c.previous = 0
		}
		c.current = 0
		c.start = now - now%c.window
		elapsed = now - c.start
	}
	weight := big.NewRat(c.window-elapsed, c.window)
	estimate := ratAdd(ratMul(modelRat(c.previous), weight), modelRat(c.current))
	if estimate.Cmp(modelRat(c.limit)) >= 0 {
		return false
	}
	c.current++
	return true
}

// A take of n passes exactly where n requests, one after the other at the same time, all
// pass the counter of the textbooks.
func TestCounterIsTheTextbooks(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) {
		l := New(int64(1+src.pick(12)), time.Duration(1+src.pick(40))).Using(SlidingCounter)
		book := textbookCounter{limit: l.count, window: int64(l.period)}
		var s state
		for now := 1_000_000 * int64(l.period); src.pick(50) > 0; now += int64(src.pick(1 + int(l.period))) {
			n, after, want := int64(1+src.pick(3)), book, true
			for range n {
				want = after.allow(now) && want
			}
			next, v := l.take(s, now, n)
			if v.Allowed != want {
				t.Fatalf("%v: a take of %d at %d of %+v is allowed: %t; the textbooks' %+v: %t", l, n, now, s, v.Allowed, book, want)
			}
			s = next
			if want {
				book = after
			}
		}
	})
}

// In a window that begins at a multiple of the period, at most the limit passes. In a span
// that is as long and reaches over the end of such a window, the limit and, of the limit once
// more, at most the part of the second window that the span covers, rounded up.
func TestCounterBound(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) {
		l := New(int64(1+src.pick(12)), time.Duration(1+src.pick(40))).Using(SlidingCounter)
		period, now := int64(l.period), 1_000_000*int64(l.period)
		var s state
		var passed []modelPassed
		for src.pick(80) > 0 {
			now += historyOneOf(src, 0, 1, int64(src.pick(int(period))), period-1-now%period) // the last: to the end of the window
			n := int64(1 + src.pick(int(l.count)))
			next, v := l.take(s, now, n)
			s = next
			if v.Allowed {
				passed = append(passed, modelPassed{now, n})
			}
			aligned, span := int64(0), int64(0)
			for _, p := range passed {
				if p.at >= now-now%period {
					aligned += p.n
				}
				if p.at > now-period {
					span += p.n
				}
			}
			if most := l.count + scale(l.count, now%period, period, 1); aligned > l.count || span > most {
				t.Fatalf("%v: at %d, %d have passed in the window and %d of at most %d in the period: %v", l, now, aligned, span, most, passed)
			}
		}
	})
}

// If the window before was used evenly, a period holds at most one more than the limit, however
// the requests of this window come.
func TestCounterBoundAfterEvenTraffic(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) {
		even := int64(1 + src.pick(12))
		l := New(even+int64(src.pick(5)), time.Duration(even*int64(1+src.pick(9)))).Using(SlidingCounter)
		period, start := int64(l.period), 1_000_000*int64(l.period)
		s, now := state{start, even, 0}, start
		for this := int64(0); now < start+period; {
			next, v := l.take(s, now, 1)
			if !v.Allowed {
				now += int64(1 + src.pick(3))
				continue
			}
			s, this = next, this+1
			before := int64(0)
			for i := range even {
				if at := start - period + i*period/even; at > now-period {
					before++
				}
			}
			if this+before > l.count+1 {
				t.Fatalf("%v: %d and %d have passed in the period before %d", l, before, this, now)
			}
		}
	})
}

// Twice the limit passes in one period if all of the window before came at its end, and the
// requests of this window come as soon as they can.
func TestCounterReachesItsBound(t *testing.T) {
	l := PerMinute(10).Using(SlidingCounter)
	end := stepStart - stepStart%int64(time.Minute) + int64(time.Minute)
	s, v := l.take(state{}, end-1, 10)
	passed := int64(10)
	for now := end; ; now += int64(v.RetryAfter) {
		if now >= end+int64(time.Minute)-1 {
			break
		}
		if s, v = l.take(s, now, 1); v.Allowed {
			passed++
		}
	}
	if passed != 20 {
		t.Errorf("%d have passed of 10 in less than a minute; want 20", passed)
	}
}

// Whoever asks all the time gets the limit in every window, not less.
func TestCounterAdmitsTheLimit(t *testing.T) {
	for _, count := range []int64{1, 2, 3, 10, 60, 97} {
		l := PerMinute(count).Using(SlidingCounter)
		var s state
		passed := int64(0)
		start := stepStart - stepStart%int64(time.Minute)
		for now := start; now < start+100*int64(time.Minute); now += int64(time.Second) / 4 {
			next, v := l.take(s, now, 1)
			s = next
			if v.Allowed {
				passed++
			}
		}
		if passed != 100*count {
			t.Errorf("%v: %d have passed in 100 minutes", l, passed)
		}
	}
}

// propertyCounterSettle: a counter that was settled decides as if the corrected
// amounts had been taken.
func propertyCounterSettle(t historyT, src historySource) { counterSettle(t, src, 1) }

func counterSettle(t historyT, src historySource, least int64) {
	l := historySettleLimit(src, SlidingCounter)
	historySettlesExactly(t, src, l, least, func(takes []modelPassed) model {
		m := newModelCounter(l)
		m.passed = takes
		return m
	})
}

func TestCounterSettlesAsTheReplay(t *testing.T) { historyRapid(t, propertyCounterSettle) }

// A take of zero leaves no trace. What was used in the end still counts in the window of
// the time of the take.
func TestCounterSettlesWhatWasTakenForNothing(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) { counterSettle(t, src, 0) })
}

// propertyScale: scale is multiplication and division, without overflow.
func propertyScale(t historyT, src historySource) {
	n := historyNumber(src, maxCount)
	denominator := 1 + historyNumber(src, maxCount-1)
	numerator := historyNumber(src, denominator)
	for up := range int64(2) {
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(numerator))
		want.Add(want, big.NewInt(up*(denominator-1)))
		want.Div(want, big.NewInt(denominator))
		if got := scale(n, numerator, denominator, up); got != want.Int64() {
			t.Fatalf("scale(%d, %d, %d, %d) = %d; want %v", n, numerator, denominator, up, got, want)
		}
	}
}

func TestScale(t *testing.T) { historyRapid(t, propertyScale) }
