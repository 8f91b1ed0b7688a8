package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// remaining checks what is left of a key.
func remaining[In any](t *testing.T, l interface{ Peek(In) Decision }, in In, want int64) {
	t.Helper()
	if d := l.Peek(in); d.Remaining != want {
		t.Errorf("%d left, want %d: %+v", d.Remaining, want, d)
	}
}

// A reservation that is cancelled at once leaves no trace, not even a fraction of one.
func TestCancelGivesEverythingBack(t *testing.T) {
	for _, count := range []int64{1, 3, 7, 1000, 65537} {
		for _, w := range everyWay(count, time.Minute) {
			inBubble(t, fmt.Sprintf("%d by %s", count, w.name), func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				before := l.Peek(0)
				for n := range min(count, 10) + 1 {
					r, d := l.ReserveN(0, n)
					if !d.Allowed || d.Remaining != count-n {
						t.Fatalf("ReserveN(%d): %+v", n, d)
					}
					r.Cancel()
					if after := l.Peek(0); after != before {
						t.Fatalf("%d cancelled: before %+v, after %+v", n, before, after)
					}
				}
				time.Sleep(13 * time.Second)
				l.AllowN(0, count/2)
				before = l.Peek(0)
				r, _ := l.ReserveN(0, count-count/2)
				if r == nil {
					t.Fatal("what is left is not to be had")
				}
				r.Cancel()
				if after := l.Peek(0); after != before {
					t.Fatalf("cancelled: before %+v, after %+v", before, after)
				}
			})
		}
	}
}

func TestSettle(t *testing.T) {
	const estimate = 6
	tests := []struct {
		name string
		do   func(r *Reservation)
		used int64
	}{
		{"nothing", func(r *Reservation) {}, estimate},
		{"cancel", func(r *Reservation) { r.Cancel() }, 0},
		{"cancel twice", func(r *Reservation) { r.Cancel(); r.Cancel() }, 0},
		{"for nothing", func(r *Reservation) { r.Settle(0) }, 0},
		{"for less", func(r *Reservation) { r.Settle(2) }, 2},
		{"for as much", func(r *Reservation) { r.Settle(estimate) }, estimate},
		{"for more", func(r *Reservation) { r.Settle(9) }, 9},
		{"for more than is left", func(r *Reservation) { r.Settle(25) }, 25},
		{"twice", func(r *Reservation) { r.Settle(2); r.Settle(9) }, 2},
		{"twice the same", func(r *Reservation) { r.Settle(8); r.Settle(8) }, 8},
		{"then cancel", func(r *Reservation) { r.Settle(4); r.Cancel() }, 4},
		{"after cancel", func(r *Reservation) { r.Cancel(); r.Settle(4) }, 0},
		{"without an amount", func(r *Reservation) { r.Settle() }, estimate},
		{"without an amount, then cancel", func(r *Reservation) { r.Settle(); r.Cancel() }, estimate},
		{"for a negative amount", func(r *Reservation) { r.Settle(-3) }, estimate},
		{"for the least amount", func(r *Reservation) { r.Settle(math.MinInt64) }, estimate},
		{"for several amounts", func(r *Reservation) { r.Settle(3, 5, 7) }, 3},
	}
	for _, test := range tests {
		for _, w := range everyWay(10, time.Minute) {
			inBubble(t, test.name+" by "+w.name, func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				r, _ := l.ReserveN(0, estimate)
				test.do(r)
				remaining(t, l, 0, max(10-test.used, 0))
				remaining(t, l, 1, 10)
			})
		}
	}
}

func TestNilReservation(t *testing.T) {
	var r *Reservation
	r.Cancel()
	r.Settle(5)
	r.Settle(5, 6)
	r.Settle()
}

// A debt delays later requests for as long as the limit needs to make up for it.
func TestDebtDelays(t *testing.T) {
	const s = time.Second
	limit := New(10, 10*s)
	tests := []struct {
		limits []Limit
		settle int64
		one    time.Duration // after which one passes,
		ten    time.Duration // and after which ten do
	}{
		{[]Limit{limit}, 15, 6 * s, 15 * s},
		{[]Limit{limit, roomy}, 15, 6 * s, 15 * s},
		{[]Limit{limit}, 1000, 991 * s, 1000 * s},
		{[]Limit{limit, roomy}, 1000, 991 * s, 1000 * s},
		{[]Limit{limit.Using(FixedWindow)}, 15, 10 * s, 10 * s},
		{[]Limit{limit.Anchored()}, 15, 10 * s, 10 * s},
		{[]Limit{limit.Using(SlidingLog)}, 15, 10 * s, 10 * s},
		// The window before has used 15, of which a little less than two thirds count: less than 10.
		{[]Limit{limit.Using(SlidingCounter)}, 15, 13*s + s/3 + 1, 19*s + s/3 + 1},
	}
	for _, reserved := range []int64{0, 1, 10} {
		for _, test := range tests {
			inBubble(t, fmt.Sprintf("%d reserved of %v, %d used", reserved, test.limits, test.settle), func(t *testing.T) {
				l := NewLimiter(itself[int], test.limits...)
				r, _ := l.ReserveN(0, reserved)
				r.Settle(test.settle)
				for n, want := range map[int64]time.Duration{1: test.one, 10: test.ten} {
					if d := l.Take(0, n); d.Allowed || d.RetryAfter != want || d.Remaining != 0 {
						t.Errorf("%d pass after %v, want %v: %+v", n, d.RetryAfter, want, d)
					}
				}
				time.Sleep(test.ten)
				if !l.AllowN(0, 10) {
					t.Error("the debt is not paid off in time")
				}
			})
		}
	}
}

// A debt of the largest number denies requests for long, and does no other harm.
func TestHugeDebt(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		for _, settle := range []int64{math.MaxInt64, 1 << 62, 1 << 40} {
			inBubble(t, fmt.Sprintf("%d by %s", settle, w.name), func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				for range 3 {
					r, _ := l.ReserveN(0, 0)
					r.Settle(settle)
				}
				if d := l.Take(0, 1); d.Allowed || d.Remaining != 0 || d.RetryAfter < time.Second || d.RetryAfter == Never {
					t.Errorf("%+v", d)
				}
				remaining(t, l, 1, 10)
			})
		}
	}
}

// A refund after a later window has begun, or after the take has drained, is no
// headroom in that window: neither by Cancel nor by Settle for less.
func TestRefundIsNoHeadroomLater(t *testing.T) {
	for _, count := range []int64{10, 65537} {
		for _, w := range everyWay(count, time.Minute) {
			for _, actual := range []int64{0, 1} {
				inBubble(t, fmt.Sprintf("%d by %s settled for %d", count, w.name, actual), func(t *testing.T) {
					l := NewLimiter(itself[int], w.limits...)
					r, _ := l.ReserveN(0, count)
					time.Sleep(2 * time.Minute)
					if !l.AllowN(0, count) {
						t.Fatal("the window is over, and nothing passes")
					}
					r.Settle(actual)
					if d := l.Take(0, 1); d.Allowed || d.Remaining != 0 {
						t.Errorf("the refund passes again in a later window: %+v", d)
					}
				})
			}
		}
	}
}

// If many goroutines settle one reservation, only one of them has an effect.
func TestSettleConcurrently(t *testing.T) {
	for _, w := range everyWay(1000, time.Hour) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			r, _ := l.ReserveN(0, 500)
			inParallel(goroutines, func(i int) {
				if i%2 == 0 {
					r.Settle(100)
				} else {
					r.Cancel()
				}
			})
			if d := l.Peek(0); d.Remaining != 900 && d.Remaining != 1000 {
				t.Errorf("%d left", d.Remaining)
			}
		})
	}
}

// Many goroutines reserve and settle: never more than the limit is reserved, and in
// the end exactly what was used counts.
func TestReserveAndSettleConcurrently(t *testing.T) {
	for _, count := range []int64{1000, 65537} {
		for _, w := range everyWay(count, time.Hour) {
			inBubble(t, fmt.Sprintf("%d by %s", count, w.name), func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				var held, used atomic.Int64
				inParallel(goroutines, func(i int) {
					random := rand.New(rand.NewPCG(uint64(i), 3))
					for range 50 {
						n := 1 + random.Int64N(count/10)
						r, d := l.ReserveN(0, n)
						if !d.Allowed {
							continue
						}
						if now := held.Add(n); now > count {
							t.Errorf("%d of %d are reserved", now, count)
						}
						actual := random.Int64N(n+1) / 100
						held.Add(actual - n) // before it is free, or others have it first
						r.Settle(actual)
						used.Add(actual)
					}
				})
				if used.Load() > count {
					t.Fatalf("the test uses %d of %d", used.Load(), count)
				}
				remaining(t, l, 0, count-used.Load())
			})
		}
	}
}

// Each limiter of a combination has its own amount, in the order in which they
// were combined, whatever order they are locked in.
func TestSettleByPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewLimiter(itself[int], PerDay(100))
		b := NewLimiter(itself[int], PerDay(200), PerHour(200))
		c := NewLimiter(func(int) string { return "" }, PerDay(300).Using(SlidingLog))
		left := func(inA, inB, inC int64) {
			t.Helper()
			remaining(t, a, 0, inA)
			remaining(t, b, 0, inB)
			remaining(t, c, 0, inC)
		}
		reserve := func(limiters ...Combinable[int]) *Reservation {
			t.Helper()
			r, d := Combine(limiters...).ReserveN(0, 10)
			if !d.Allowed {
				t.Fatalf("%+v", d)
			}
			return r
		}
		reserve(a, b, c).Settle(1, 2, 3)
		left(99, 198, 297)
		reserve(c, a, b).Settle(3, 1, 2)
		left(98, 196, 294)
		reserve(b, c, a).Settle(0, 0, 20)
		left(78, 196, 294)
		reserve(c, b, a).Settle(5) // one for all
		left(73, 191, 289)
		reserve(c, b, a).Settle(1, 1) // none for a
		left(63, 190, 288)
		reserve(c, b, a).Settle(-1, 1, -1) // none for c and a
		left(53, 189, 278)
		reserve(c, b, a).Settle(1, 1, 1, 1, 1)
		left(52, 188, 277)
		reserve(a, b, a).Settle(1, 1, 9) // a twice: its first index counts
		left(51, 187, 277)
		reserve(Combine[int](c, b), a).Settle(2, 1) // c and b have one index
		left(50, 185, 275)
		reserve(c, b, a).Cancel()
		left(50, 185, 275)
	})
}

// Each limiter of a combination refunds by its own cost.
func TestCancelOfDifferentCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := NewLimiter(func(int64) string { return "" }, PerMinute(10))
		tokens := NewLimiter(func(int64) string { return "" }, PerMinute(1000), PerDay(5000)).
			WithCost(func(in int64) int64 { return in })
		r, d := Combine[int64](tokens, requests).Reserve(300)
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		remaining(t, requests, 0, 9)
		remaining(t, tokens, 0, 700)
		r.Settle(250, 1)
		remaining(t, requests, 0, 9)
		remaining(t, tokens, 0, 750)
		r, _ = Combine[int64](tokens, requests).Reserve(300)
		r.Cancel()
		remaining(t, requests, 0, 9)
		remaining(t, tokens, 0, 750)
	})
}

// Reservations that are never settled are forgotten once nothing of them counts, and
// so are those that were settled.
func TestReservationsAreForgotten(t *testing.T) {
	for _, limits := range [][]Limit{{PerMinute(10)}, {PerMinute(10), roomy}, {PerMinute(10).Using(FixedWindow)}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			for key := range 1000 {
				l.ReserveN(key, 5)
				r, _ := l.ReserveN(key, 5)
				r.Settle(3)
			}
			time.Sleep(2 * time.Minute)
			for range 1000 {
				r, d := l.Reserve(0)
				if !d.Allowed {
					t.Fatalf("%+v", d)
				}
				r.Cancel()
			}
			if got := len(l.parts[0].book.claims.byKey); got > 1 {
				t.Errorf("%d keys still have reservations", got)
			}
		})
	}
}

// A refund to a take of which nothing counts any more gives nothing to later takes of
// the same key.
func TestRefundAfterTheKeyCameBack(t *testing.T) {
	for _, w := range everyWay(10, sec) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			r, _ := l.ReserveN(0, 5)
			time.Sleep(time.Minute)
			for key := range 5000 { // the slot of 0 is needed for others
				l.Allow(key + 1)
			}
			l.AllowN(0, 10)
			before := l.Peek(0)
			r.Cancel()
			if after := l.Peek(0); after != before || l.Allow(0) {
				t.Errorf("before %+v, after %+v", before, after)
			}
		})
	}
}

// The time for a reservation does not grow with the number of reservations of its key
// that are not settled: those are dropped once they have drained.
func TestAbandonedReservationsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(itself[int], New(100, sec))
		for range 1000 {
			l.ReserveN(0, 10)
			l.ReserveN(1, 1)
			time.Sleep(sec / 10)
		}
		for key, open := range l.parts[0].book.claims.byKey {
			if len(open) > 11 {
				t.Errorf("%d claims of %x are kept", len(open), key)
			}
		}
	})
}

// A refund to a take that was forgotten gives nothing to later takes of the same key, even
// if the key has a longer window by now, in which the refunded take would still be.
func TestRefundAfterTheKeyCameBackForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []Limit{PerSecond(10).Using(SlidingLog)}
		l := NewLimiterFunc(itself[int], func(int) []Limit { return limits })
		r, _ := l.ReserveN(0, 5)
		time.Sleep(30 * sec)
		for key := range 5000 { // the slot of 0 is needed for others
			l.Allow(key + 1)
		}
		limits = []Limit{PerMinute(10).Using(SlidingLog)}
		l.AllowN(0, 10)
		r.Cancel()
		if l.Allow(0) {
			t.Error("another take was refunded")
		}
	})
}

// While more is used than the limit allows, even an amount of zero is denied, by
// every door, until the debt is gone.
func TestDebtDeniesZero(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			r, _ := l.ReserveN(0, 10)
			if d := l.Take(0, 0); !d.Allowed || d.Used != 10 || d.Remaining != 0 {
				t.Fatalf("zero, when all is used: %+v", d)
			}
			r.Settle(13)
			d := l.Take(0, 0)
			if d.Allowed || d.Used != 13 || d.RetryAfter <= 0 || d.RetryAfter == Never || d.ResetAfter < d.RetryAfter {
				t.Fatalf("zero, in a debt: %+v", d)
			}
			if l.AllowN(0, 0) {
				t.Error("AllowN lets zero pass in a debt")
			}
			if r, d := l.ReserveN(0, 0); r != nil || d.Allowed {
				t.Errorf("ReserveN lets zero pass in a debt: %+v", d)
			}
			free := l.WithCost(func(int) int64 { return 0 })
			if peeked := free.Peek(0); peeked != d {
				t.Errorf("Peek says %+v, and Take %+v", peeked, d)
			}
			if d := Combine[int](free, NewLimiter(itself[int], roomy)).Take(0, 0); d.Allowed {
				t.Errorf("Combine lets zero pass in a debt: %+v", d)
			}
			time.Sleep(d.RetryAfter - 1)
			if l.AllowN(0, 0) {
				t.Error("zero passes before the debt is gone")
			}
			time.Sleep(time.Nanosecond)
			if d := l.Take(0, 0); !d.Allowed || d.Used > 10 {
				t.Errorf("zero, when the debt is gone: %+v", d)
			}
		})
	}
}

// A wait for zero ends when the debt is gone. If it is combined with another amount,
// that amount waits too.
func TestWaitForZeroInADebt(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l, other := NewLimiter(itself[int], w.limits...), NewLimiter(itself[int], roomy)
			both := Combine[int](l.WithCost(func(int) int64 { return 0 }), other)
			r, _ := l.ReserveN(0, 10)
			r.Settle(13)
			gone := time.Now().Add(l.Take(0, 0).RetryAfter)
			waits := []func() error{
				func() error { return l.WaitN(t.Context(), 0, 0) },
				func() error { return both.Wait(t.Context(), 0) },
				func() error { return l.WaitN(t.Context(), 0, 0) },
			}
			done := make(chan time.Time, len(waits))
			for _, wait := range waits {
				go func() {
					if err := wait(); err != nil {
						t.Error(err)
					}
					done <- time.Now()
				}()
			}
			for range waits {
				if at := <-done; !at.Equal(gone) {
					t.Errorf("a wait for zero ends %v after the debt is gone", at.Sub(gone))
				}
			}
			if !l.AllowN(0, 0) || other.Peek(0).Used != 1 {
				t.Errorf("after the waits, %+v and %+v", l.Take(0, 0), other.Peek(0))
			}
		})
	}
}

// Since is the time at which the present window began, or 0 if nothing is used of it.
func TestSince(t *testing.T) {
	for name, l := range map[string]Limit{"aligned": PerMinute(10).Using(FixedWindow), "anchored": PerMinute(10).Anchored(), "a day": PerDay(10).ResetAt(0, nil)} {
		inBubble(t, name, func(t *testing.T) {
			limiter := NewLimiter(itself[int], l)
			time.Sleep(20 * time.Second)
			if d := limiter.Peek(0); d.Since != 0 {
				t.Errorf("before anything was used: %+v", d)
			}
			start := time.Now()
			if name != "anchored" {
				start = start.Truncate(l.Period())
			}
			limiter.Take(0, 4)
			time.Sleep(10 * time.Second)
			for _, d := range []Decision{limiter.Peek(0), limiter.Take(0, 5), limiter.Take(0, 5), limiter.Take(0, 11)} {
				if d.Since != start.UnixNano() {
					t.Errorf("the window began at %d: %+v", start.UnixNano(), d)
				}
			}
			time.Sleep(l.Period())
			if d := limiter.Peek(0); d.Since != 0 || d.Used != 0 {
				t.Errorf("after the window has ended: %+v", d)
			}
		})
	}
}

// A wait for zero behind another wait changes neither that wait nor the answers to
// other requests.
func TestWaitForZeroBehindAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(itself[int], PerMinute(10))
		r, _ := l.ReserveN(0, 10)
		r.Settle(13)
		passes := l.Take(0, 5).RetryAfter
		done := make(chan error, 2)
		for _, n := range []int64{5, 0} {
			go func() { done <- l.WaitN(t.Context(), 0, n) }()
			synctest.Wait()
		}
		start := time.Now()
		time.Sleep(passes - 1) // 1 would pass now, but for the waiting calls
		if d := l.Take(0, 1); d.Allowed || d.RetryAfter != 1 {
			t.Errorf("a nanosecond before the first in line passes: %+v", d)
		}
		for range 2 {
			if err := <-done; err != nil || time.Since(start) != passes {
				t.Errorf("a wait ends after %v: %v; want %v", time.Since(start), err, passes)
			}
		}
	})
}
