package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A clock that is set does not change how old uses are: sliding logs, buckets and anchored windows
// decide afterwards as they would have without the step.
func TestShiftKeepsAges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 67))
	each := []Limit{
		PerMinute(300), PerMinute(300).Using(TokenBucket), PerMinute(20).WithBurst(7), PerMinute(300).Using(LeakyBucket),
		PerMinute(300).Using(SlidingLog), PerHour(1000).Using(SlidingLog), PerDay(1000).Using(FixedWindow).Anchored(),
	}
	for round := range 300 {
		now := int64(1e18) + r.Int64N(1e15)
		limits := each[r.IntN(len(each)):]
		var still, shifted Account
		var offset int64
		for range 50 {
			now += r.Int64N(int64(5 * time.Second))
			if r.IntN(5) == 0 {
				d := r.Int64N(2*int64(time.Hour)) - int64(time.Hour)
				shifted.Shift(now+offset, d)
				offset += d
			}
			n, passes := 1+r.Int64N(5), true
			for _, l := range limits {
				want, got := still.Check(l, now, n), shifted.Check(l, now+offset, n)
				if want.Since > 0 {
					want.Since += offset
				}
				if got != want {
					t.Fatalf("round %d: %v: %+v; want %+v", round, l, got, want)
				}
				passes = passes && want.Allowed
			}
			if passes {
				still.Take(limits, now, n)
				shifted.Take(limits, now+offset, n)
			}
			if want, got := still.FullAt(), shifted.FullAt(); got-offset < want || got < now+offset && want > now {
				t.Fatalf("round %d: full at %d; want %d", round, got-offset, want)
			}
			if bytes, _ := shifted.AppendBinary(nil); new(Account).UnmarshalBinary(bytes) != nil {
				t.Fatalf("round %d: the account cannot be read", round)
			}
		}
	}
}

// shiftStep is a step of the clock, or some time that passes.
type shiftStep struct {
	passes, set time.Duration
	used        int64 // what counts after it
}

// What is used of a day counts once, however the clock is set: a step opens no second day, and a clock
// that is set forward by mistake and back again costs nothing.
func TestShiftOfDays(t *testing.T) {
	noon := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC).UnixNano()
	const h = time.Hour
	for name, steps := range map[string][]shiftStep{
		"a little forward":                     {{set: 2 * time.Second, used: 7}, {passes: 12 * h, used: 0}},
		"a little back":                        {{set: -2 * time.Second, used: 7}, {passes: 12 * h, used: 7}, {passes: 2 * time.Second, used: 0}},
		"into the next day":                    {{set: 13 * h, used: 7}, {passes: 22 * h, used: 7}, {passes: h, used: 0}},
		"into the next day, and back":          {{set: 13 * h, used: 7}, {passes: h, used: 7}, {set: -13 * h, used: 7}, {passes: 11 * h, used: 0}},
		"a day forward, and back":              {{set: 24 * h, used: 7}, {set: -24 * h, used: 7}, {passes: 12 * h, used: 0}},
		"years forward":                        {{set: 3 * 8760 * h, used: 7}, {passes: 12 * h, used: 0}},
		"days back":                            {{set: -72 * h, used: 7}, {passes: 12 * h, used: 0}},
		"back over midnight":                   {{set: -13 * h, used: 7}, {passes: 2 * h, used: 7}, {passes: 24 * h, used: 0}},
		"back over midnight, and forward":      {{set: -13 * h, used: 7}, {passes: h / 2, used: 7}, {set: 13 * h, used: 7}, {passes: 11*h + h/2, used: 0}},
		"forward once the window has ended":    {{passes: 13 * h, used: 0}, {set: h, used: 0}},
		"into the next day, again and again":   {{set: 13 * h, used: 7}, {set: 24 * h, used: 7}, {set: 24 * h, used: 7}, {passes: 23 * h, used: 0}},
		"forward, and midnight before it back": {{set: 13 * h, used: 7}, {passes: 23 * h, used: 0}, {set: -24 * h, used: 0}},
	} {
		for _, l := range []Limit{PerDay(10).ResetAt(0, time.UTC), PerDay(10).Using(FixedWindow)} {
			t.Run(fmt.Sprint(name, "/", l), func(t *testing.T) {
				now, a := noon, new(Account)
				a.Take([]Limit{l}, now, 7)
				for i, s := range steps {
					now += int64(s.passes)
					a.Shift(now, int64(s.set))
					now += int64(s.set)
					if got := a.Check(l, now, 0).Used; got != s.used {
						t.Fatalf("step %d: %d are used; want %d", i, got, s.used)
					}
					if bytes, _ := a.AppendBinary(nil); new(Account).UnmarshalBinary(bytes) != nil {
						t.Fatalf("step %d: the account cannot be read", i)
					}
				}
			})
		}
	}
}

// A sliding counter counts no less after a step than before it.
func TestShiftOfSlidingCounters(t *testing.T) {
	l := PerMinute(100).Using(SlidingCounter)
	for _, d := range []time.Duration{-time.Hour, -90 * time.Second, time.Second, 90 * time.Second, time.Hour + time.Second} {
		now, a := int64(1e18), new(Account)
		a.Take([]Limit{l}, now, 40)
		now += int64(50 * time.Second)
		a.Take([]Limit{l}, now, 30)
		before := a.Check(l, now, 0).Used
		a.Shift(now, int64(d))
		if got := a.Check(l, now+int64(d), 0).Used; got < before {
			t.Errorf("%v: %d are used; before it were %d", d, got, before)
		}
	}
}

// A take from before a step is not refunded. What it used beyond its estimate is charged.
func TestShiftAndSettle(t *testing.T) {
	limits := []Limit{PerMinute(100).Using(SlidingLog)}
	for actual, want := range map[int64]int64{5: 10, 10: 10, 15: 15} {
		now, a := int64(1e18), new(Account)
		r := a.Take(limits, now, 10)
		a.Shift(now, int64(time.Hour))
		now += int64(time.Hour)
		a.Settle(limits, r, now, actual)
		if got := a.Check(limits[0], now, 0).Used; got != want {
			t.Errorf("%d are used after a settlement to %d; want %d", got, actual, want)
		}
	}
}
