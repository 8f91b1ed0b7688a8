package limit

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// finishes fails the test if f does not return: goroutines that lock in different orders
// block each other for good.
func finishes(t *testing.T, f func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() {
		defer cancel()
		f()
	}()
	<-ctx.Done()
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatal("deadlock")
	}
}

type call struct {
	user  string
	model int
}

// members are limiters with keys of different types, whose counters are of
// every kind. Nothing refills while a test runs.
func members(counts [5]int64) (all [5]Combinable[call], peek [5]func(call) Decision) {
	type pair struct {
		user  string
		model int
	}
	period := 36 * 365 * 24 * time.Hour
	a := NewLimiter(func(c call) string { return c.user }, New(counts[0], period))
	b := NewLimiter(func(c call) int { return c.model }, New(counts[1], period), roomy)
	c := NewLimiter(func(c call) pair { return pair(c) }, New(counts[2], period).Using(SlidingLog))
	d := NewLimiter(func(call) struct{} { return struct{}{} }, New(counts[3], period).Anchored())
	e := NewLimiterFunc(func(c call) [2]any { return [2]any{c.user, c.model} }, func(call) []Limit {
		return []Limit{New(counts[4], period).Using(SlidingCounter)}
	})
	return [5]Combinable[call]{a, b, c, d, e}, [5]func(call) Decision{a.Peek, b.Peek, c.Peek, d.Peek, e.Peek}
}

// Goroutines combine the same limiters in every order, twice and nested. Exactly as much
// passes as the smallest limit allows, and every member is charged for exactly that.
func TestCombineInAnyOrder(t *testing.T) {
	for smallest := range 5 {
		t.Run(fmt.Sprint(smallest), func(t *testing.T) {
			counts := [5]int64{1000, 1500, 3000, 2000, 1200}
			counts[smallest] = 300
			all, peek := members(counts)
			in := call{"a", 1}
			var admitted atomic.Int64
			finishes(t, func() {
				inParallel(goroutines, func(i int) {
					random := rand.New(rand.NewPCG(uint64(i), 7))
					for range 60 {
						combined := combineSomehow(random, all[:])
						if allowed(random, combined, in) {
							admitted.Add(1)
						}
					}
				})
			})
			if got := admitted.Load(); got != 300 {
				t.Errorf("admitted %d of 300", got)
			}
			for i := range all {
				if got, want := peek[i](in).Remaining, counts[i]-300; got != want {
					t.Errorf("member %d: %d left, want %d", i, got, want)
				}
			}
		})
	}
}

// combineSomehow combines all of the limiters: shuffled, some of them more
// than once, some in combinations of their own.
func combineSomehow(random *rand.Rand, limiters []Combinable[call]) *Combined[call] {
	var parts []Combinable[call]
	for _, i := range random.Perm(len(limiters)) {
		parts = append(parts, limiters[i])
		if random.IntN(3) == 0 {
			parts = append(parts, limiters[random.IntN(len(limiters))])
		}
	}
	if random.IntN(2) == 0 {
		k := random.IntN(len(parts))
		nested := Combine(Combine(parts[k:]...), Combine(parts[:k]...))
		return Combine[call](nested, parts[0])
	}
	return Combine(parts...)
}

func allowed(random *rand.Rand, c *Combined[call], in call) bool {
	switch random.IntN(4) {
	case 0:
		return c.Allow(in)
	case 1:
		c.Peek(in)
		return c.AllowN(in, 1)
	case 2:
		r, _ := c.Reserve(in)
		return r != nil
	default:
		return c.Take(in, 1).Allowed
	}
}

// Some goroutines ask for a few of the limiters and some for others. Each limiter is
// charged for exactly what passed through it.
func TestOverlappingCombinations(t *testing.T) {
	counts := [5]int64{500, 400, 300, 1000, 350}
	all, peek := members(counts)
	var charged [5]atomic.Int64
	in := call{"a", 1}
	finishes(t, func() {
		inParallel(goroutines, func(i int) {
			random := rand.New(rand.NewPCG(uint64(i), 8))
			for range 100 {
				some := random.Perm(len(all))[:1+random.IntN(len(all))]
				var parts []Combinable[call]
				for _, k := range some {
					parts = append(parts, all[k])
				}
				n := 1 + random.Int64N(4)
				if Combine(parts...).AllowN(in, n) {
					for _, k := range some {
						charged[k].Add(n)
					}
				}
			}
		})
	})
	for i := range all {
		if got := charged[i].Load(); got > counts[i] {
			t.Errorf("member %d: %d of %d passed", i, got, counts[i])
		}
		if got, want := peek[i](in).Remaining, counts[i]-charged[i].Load(); got != want {
			t.Errorf("member %d: %d left, want %d", i, got, want)
		}
	}
}

// With waits, reservations and decisions over overlapping sets of limiters, in all
// orders and by the real clock, no goroutine blocks for good, and nothing is lost.
func TestCombinationsDoNotDeadlock(t *testing.T) {
	limiters := []*Limiter[int, int]{
		NewLimiter(itself[int], New(100, time.Millisecond)),
		NewLimiter(itself[int], New(100, time.Millisecond), roomy),
		NewLimiter(itself[int], New(100, time.Millisecond).Using(SlidingLog)),
	}
	finishes(t, func() {
		inParallel(goroutines, func(i int) {
			random := rand.New(rand.NewPCG(uint64(i), 9))
			for range 150 {
				var parts []Combinable[int]
				for _, k := range random.Perm(3) {
					parts = append(parts, limiters[k])
				}
				some := Combine(parts[:1+random.IntN(3)]...)
				switch key, n := random.IntN(3), 1+random.Int64N(100); random.IntN(3) {
				case 0:
					some.AllowN(key, n)
				case 1:
					if r, _ := some.ReserveN(key, n); r != nil {
						r.Settle(random.Int64N(n))
					}
				default:
					if err := some.WaitN(t.Context(), key, n); err != nil {
						t.Error(err)
					}
				}
			}
		})
	})
	for i, l := range limiters {
		if len(l.parts[0].book.lines) != 0 {
			t.Errorf("limiter %d has lines left", i)
		}
	}
}

// A denial by one member takes nothing from the others, whichever it is.
func TestCombineIsAllOrNothing(t *testing.T) {
	for tight := range 5 {
		inBubble(t, fmt.Sprint(tight), func(t *testing.T) {
			counts := [5]int64{100, 100, 100, 100, 100}
			counts[tight] = 2
			all, peek := members(counts)
			in := call{"a", 1}
			c := Combine(all[4], all[1], all[3], all[0], all[2])
			if !c.AllowN(in, 2) {
				t.Fatal("nothing is used, and 2 do not pass")
			}
			var before [5]Decision
			for i := range all {
				before[i] = peek[i](in)
			}
			for _, n := range []int64{1, 2, 3, 50, 1000, -1, math.MaxInt64, math.MinInt64} {
				if d := c.Take(in, n); d.Allowed || d.Limit.Count() != 2 && n <= 100 && n > 2 {
					t.Errorf("Take(%d): %+v", n, d)
				}
				if r, _ := c.ReserveN(in, n); r != nil {
					t.Errorf("ReserveN(%d)", n)
				}
			}
			for i := range all {
				if after := peek[i](in); after != before[i] {
					t.Errorf("member %d: before %+v, after %+v", i, before[i], after)
				}
			}
		})
	}
}

// Of members that deny, the one that denies longest decides; of members that
// allow, the one with the least left.
func TestCombinedDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		minute, hour, day := PerMinute(10), PerHour(30), PerDay(1000).Using(FixedWindow)
		a, b, c := NewLimiter(itself[int], minute), NewLimiter(itself[int], hour, roomy), NewLimiter(itself[int], day)
		all := Combine[int](b, c, a)
		check := func(got, want Decision) {
			t.Helper()
			if want = begun(want); got != want {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
		}
		check(all.Peek(0), decision(true, minute, 10, 0, 0))
		check(all.Take(0, 10), decision(true, minute, 0, 0, time.Minute))
		check(all.Take(0, 5), decision(false, minute, 0, 30*time.Second, time.Minute))
		check(all.Peek(0), decision(false, minute, 0, 6*time.Second, time.Minute))
		check(all.Take(0, 0), decision(true, minute, 0, 0, time.Minute))
		time.Sleep(time.Minute)
		check(all.Take(0, 10), decision(true, minute, 0, 0, time.Minute))
		time.Sleep(time.Minute)
		check(all.Take(0, 10), decision(true, minute, 0, 0, time.Minute))
		check(all.Peek(0), decision(false, minute, 0, 6*time.Second, time.Minute))
		time.Sleep(time.Minute)
		check(all.Peek(0), decision(true, hour, 1, 0, 57*time.Minute))
		check(all.Take(0, 10), decision(false, hour, 1, 17*time.Minute, 57*time.Minute))
		check(all.Take(0, 11), decision(false, minute, 10, Never, 0))
		check(all.Take(0, 31), decision(false, hour, 1, Never, 57*time.Minute))
		check(Combine[int](c).Peek(0), decision(true, day, 970, 0, 24*time.Hour-3*time.Minute))
	})
}

func TestCombineOfNothing(t *testing.T) {
	nothing := Combine[int]()
	if d := nothing.Take(0, 1<<60); d != (Decision{Allowed: true, Remaining: math.MaxInt64}) {
		t.Errorf("%+v", d)
	}
	if !nothing.Allow(0) || !nothing.Peek(0).Allowed || nothing.Wait(t.Context(), 0) != nil {
		t.Error("a combination of nothing denies")
	}
	r, d := nothing.Reserve(0)
	if !d.Allowed {
		t.Error("a combination of nothing denies")
	}
	r.Settle(1)
	if !Combine[int](nothing, Combine[int]()).Allow(0) {
		t.Error("a combination of nothing denies")
	}
}

// A limiter that is named twice is charged once, for the larger cost.
func TestCombineTwice(t *testing.T) {
	for _, limits := range [][]Limit{{PerDay(100)}, {PerDay(100), roomy}, {PerDay(100).Using(SlidingLog)}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			three := l.WithCost(func(int) int64 { return 3 })
			if !Combine[int](l, l, Combine[int](l, l)).Allow(0) {
				t.Error("denied")
			}
			remaining(t, l, 0, 99)
			if !Combine[int](l, three, l).Allow(0) || !Combine[int](three, l).Allow(0) {
				t.Error("denied")
			}
			remaining(t, l, 0, 93)
			if !Combine[int](l, three).AllowN(0, 2) { // an amount that is named counts for all
				t.Error("denied")
			}
			remaining(t, l, 0, 91)
			r, _ := Combine[int](l, three).Reserve(0)
			remaining(t, l, 0, 88)
			r.Cancel()
			remaining(t, l, 0, 91)
			if err := Combine[int](three, l, three).Wait(t.Context(), 0); err != nil {
				t.Error(err)
			}
			remaining(t, l, 0, 88)
			never := l.WithCost(func(int) int64 { return 101 })
			if d := Combine[int](l, never).Peek(0); d.RetryAfter != Never {
				t.Errorf("the larger cost never passes: %+v", d)
			}
		})
	}
}

// An invalid limit of one member admits nothing, and charges no other.
func TestCombineWithAnInvalidLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := NewLimiter(itself[int], PerDay(10)), NewLimiter(itself[int], PerDay(0))
		for _, c := range []*Combined[int]{Combine[int](good, bad), Combine[int](bad, good)} {
			if d := c.Take(0, 1); d != (Decision{Limit: PerDay(0), RetryAfter: Never}) {
				t.Errorf("%+v", d)
			}
			if err := c.Wait(t.Context(), 0); err == nil {
				t.Error("an invalid limit lets pass")
			}
		}
		remaining(t, good, 0, 10)
	})
}

// Members have costs of their own: requests and tokens.
func TestCombineCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := NewLimiter(func(int64) int { return 0 }, PerMinute(10))
		tokens := NewLimiter(func(int64) int { return 0 }, PerMinute(1000)).WithCost(func(n int64) int64 { return n })
		both := Combine[int64](requests, tokens)
		if !both.Allow(600) || both.Allow(500) || !both.Allow(400) {
			t.Error("1000 tokens a minute")
		}
		remaining(t, requests, 0, 8)
		remaining(t, tokens, 0, 0)
		if d := both.Peek(30); d.Limit != PerMinute(1000) || d.RetryAfter != 1800*time.Millisecond {
			t.Errorf("%+v", d)
		}
		if d := both.Spend(30); d.Allowed || d.Limit != PerMinute(1000) || d.RetryAfter != 1800*time.Millisecond {
			t.Errorf("%+v", d)
		}
		if d := both.Spend(0); !d.Allowed { // a request of no tokens
			t.Errorf("%+v", d)
		}
		remaining(t, requests, 0, 7)
		if d := both.Peek(1001); d.RetryAfter != Never {
			t.Errorf("%+v", d)
		}
	})
}
