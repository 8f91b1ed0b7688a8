package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// itself is the key function of most tests: a request is its own key.
func itself[K comparable](k K) K { return k }

// way is one way to apply a limit to keys.
type way struct {
	name   string
	limits []Limit
}

// everyWay returns a limit of count a period by every algorithm, alone, beside
// one that never denies, and all of them at once. Buckets alone fit one word
// if count is small; every other way uses a list of counters.
func everyWay(count int64, period time.Duration) []way {
	l := New(count, period)
	all := []Limit{
		l,
		l.Using(TokenBucket),
		l.Using(LeakyBucket),
		l.Using(FixedWindow),
		l.Anchored(),
		l.Using(SlidingLog),
		l.Using(SlidingCounter),
	}
	if period == 24*time.Hour {
		all = append(all, l.ResetAt(0, nil))
	}
	ways := []way{{"all", all}, {"gcra wide", []Limit{l, roomy}}}
	for _, l := range all {
		ways = append(ways, way{strings.ReplaceAll(l.String(), "/", " per "), []Limit{l}})
	}
	return ways
}

// roomy is a limit that never decides. A limiter that has it beside others uses cells.
var roomy = New(1<<40, time.Second)

// inBubble runs a test in which time stands still while anybody works.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// inParallel starts n goroutines at once, and returns when all are done.
func inParallel(n int, f func(i int)) {
	var done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		done.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	done.Wait()
}

// throughAnyDoor takes n of a key by one of the limiter's methods.
func throughAnyDoor[K comparable](l *Limiter[K, K], door int, key K, n int64) bool {
	switch door % 4 {
	case 0:
		return l.AllowN(key, n)
	case 1:
		return l.Take(key, n).Allowed
	case 2:
		r, d := l.ReserveN(key, n)
		if d.Allowed != (r != nil) {
			panic("a reservation without an allowance, or the other way round")
		}
		return d.Allowed
	default:
		l.Peek(key)
		return l.AllowN(key, n)
	}
}

const goroutines = 16 // of a test that runs in parallel

// Many goroutines take from one word for long: of two that read the same word at once, only
// one takes.
func TestExactlyTheLimitPassesUnderContention(t *testing.T) {
	for count, limits := range map[int64][]Limit{200_000: {PerDay(200_000)}, 20_000: {PerDay(20_000), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			for key := range testkit.Rounds(1, 4) {
				var admitted atomic.Int64
				inParallel(goroutines, func(int) {
					mine := int64(0)
					for range count/goroutines + count/100 {
						if l.Allow(key) {
							mine++
						}
					}
					admitted.Add(mine)
				})
				if got := admitted.Load(); got != count {
					t.Errorf("admitted %d of %d", got, count)
				}
			}
		})
	}
}

// Small counts fit one word and large primes do not. Otherwise the tests here would cover
// only one kind of counter.
func TestBothPathsAreTested(t *testing.T) {
	for count, oneWord := range map[int64]bool{1: true, 3: true, 10: true, 1000: true, 65537: false} {
		if got := NewLimiter(itself[int], PerDay(count)).parts[0].book.words != nil; got != oneWord {
			t.Errorf("a limit of %d a day in one word: %v", count, got)
		}
	}
	if NewLimiter(itself[int], PerDay(3), roomy).parts[0].book.words != nil {
		t.Error("two limits in one word")
	}
}

func TestExactlyTheLimitPassesOnEveryKey(t *testing.T) {
	const keys = 50
	for _, count := range []int64{1, 7, 65537} {
		each := min(count, 60) // of a large limit, in steps
		for _, w := range everyWay(count, 24*time.Hour) {
			inBubble(t, fmt.Sprintf("%d by %s", count, w.name), func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				var admitted [keys]atomic.Int64
				inParallel(goroutines, func(i int) {
					for try := range each/goroutines + 3 {
						for k := range keys {
							key := (k + i*7) % keys
							if throughAnyDoor(l, i+int(try), key, count/each) {
								admitted[key].Add(count / each)
							}
						}
					}
				})
				for key := range keys {
					if got := admitted[key].Load(); got > count || got < count-count/each+1 {
						t.Fatalf("key %d: admitted %d of %d", key, got, count)
					}
				}
				if l.Len() != keys {
					t.Errorf("Len is %d with %d keys in use", l.Len(), keys)
				}
			})
		}
	}
}

// Amounts of all sizes never add up to more than the limit; ones then fill
// what they left.
func TestMixedAmountsNeverExceedTheLimit(t *testing.T) {
	for _, count := range []int64{10, 1000, 65537} {
		for _, w := range everyWay(count, 24*time.Hour) {
			inBubble(t, fmt.Sprintf("%d by %s", count, w.name), func(t *testing.T) {
				l := NewLimiter(itself[string], w.limits...)
				var admitted atomic.Int64
				inParallel(goroutines, func(i int) {
					random := rand.New(rand.NewPCG(uint64(i), uint64(count)))
					for range 30 {
						n := 1 + random.Int64N(count/4+1)
						if throughAnyDoor(l, i, "key", n) {
							admitted.Add(n)
						}
					}
				})
				if got := admitted.Load(); got > count {
					t.Fatalf("admitted %d of %d", got, count)
				}
				left := count - admitted.Load()
				if d := l.Peek("key"); d.Remaining != left {
					t.Fatalf("%d left of %d, and Peek says %+v", left, count, d)
				}
				inParallel(goroutines, func(i int) {
					for range left/goroutines + 3 {
						if throughAnyDoor(l, i, "key", 1) {
							admitted.Add(1)
						}
					}
				})
				if got := admitted.Load(); got != count {
					t.Errorf("admitted %d of %d in the end", got, count)
				}
			})
		}
	}
}

func exactlyOn[K comparable](keys ...K) func(t *testing.T) {
	return func(t *testing.T) {
		const count = 5
		for _, limits := range [][]Limit{{PerDay(count)}, {PerDay(count), roomy}} {
			l := NewLimiter(itself[K], limits...)
			admitted := make([]atomic.Int64, len(keys))
			inParallel(goroutines, func(i int) {
				for k := range keys {
					key := (k + i) % len(keys)
					if l.Allow(keys[key]) {
						admitted[key].Add(1)
					}
				}
			})
			for k := range keys {
				if got := admitted[k].Load(); got != count {
					t.Errorf("%#v: admitted %d of %d", keys[k], got, count)
				}
			}
		}
	}
}

func TestKeysOfEveryType(t *testing.T) {
	type pair struct{ a, b string }
	inBubble(t, "string", exactlyOn("", "a", "b", strings.Repeat("long", 1000)))
	inBubble(t, "int", exactlyOn(0, 1, -1, math.MaxInt))
	inBubble(t, "uint64", exactlyOn(uint64(0), 1, math.MaxUint64))
	inBubble(t, "float64", exactlyOn(0.0, 1, math.Inf(1)))
	inBubble(t, "array", exactlyOn([4]byte{}, [4]byte{1, 2, 3, 4}, [4]byte{4, 3, 2, 1}))
	inBubble(t, "struct", exactlyOn(pair{"a_b", "c"}, pair{"a", "b_c"}, pair{}))
	inBubble(t, "pointer", exactlyOn(new(int), new(int), nil))
	inBubble(t, "interface", exactlyOn[any](1, "1", 1.5, int64(2), nil, pair{"a", "b"}))
	inBubble(t, "nothing", exactlyOn(struct{}{}))
}

// diaryEntry is an amount that passed, and when.
type diaryEntry struct {
	at time.Time
	n  int64
}

// diary records admissions by many goroutines.
type diary struct {
	mu  sync.Mutex
	all []diaryEntry
}

func (d *diary) enter(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, diaryEntry{time.Now(), n})
}

// check fails the test if more than a limit allows was recorded in any window.
func (d *diary) check(t *testing.T, l Limit) {
	t.Helper()
	for first := range d.all {
		sum := int64(0)
		for last := first; last < len(d.all); last++ {
			sum += d.all[last].n
			span := d.all[last].at.Sub(d.all[first].at)
			if most := diaryMost(l, d.all[first].at, span); sum > most {
				t.Fatalf("%v: %d passed within %v from %v on, where %d may", l, sum, span, d.all[first].at, most)
			}
		}
	}
}

// diaryMost returns how much may pass in a closed span of time, of at most ten
// periods.
func diaryMost(l Limit, from time.Time, span time.Duration) int64 {
	switch {
	case l.Algorithm().bursts():
		return l.Burst() + int64(span)*l.Count()/int64(l.Period())
	case l.Algorithm() == SlidingLog:
		return l.Count() * (int64(span/l.Period()) + 1)
	case l == l.Anchored():
		return l.Count() * (int64(span/l.Period()) + 2)
	default: // in each of the windows that it touches
		start := from.Truncate(l.Period())
		return l.Count() * (int64(from.Add(span).Sub(start)/l.Period()) + 1)
	}
}

// Whatever many goroutines do by any method, in no window more passes than the limit allows.
// A reservation that was cancelled has not passed. Of one that was settled, the actual amount
// has passed.
func TestAnyWindow(t *testing.T) {
	limits := []Limit{
		New(20, time.Second),
		New(7, time.Second).WithBurst(3),
		New(20, time.Second).Using(FixedWindow),
		New(20, time.Second).Anchored(),
		New(20, time.Second).Using(SlidingLog),
		New(20, time.Second).Using(SlidingCounter),
	}
	for _, l := range limits {
		for _, wide := range []bool{false, true} {
			for seed := range uint64(3) {
				inBubble(t, fmt.Sprintf("%v wide %v seed %d", strings.ReplaceAll(l.String(), "/", " per "), wide, seed), func(t *testing.T) {
					governing := []Limit{l}
					if wide {
						governing = append(governing, roomy)
					}
					var passed diary
					limiter := NewLimiter(itself[int], governing...)
					rival := NewLimiter(itself[int], New(5, 2*time.Second))
					both := Combine[int](rival, limiter)
					inParallel(goroutines, func(i int) {
						random := rand.New(rand.NewPCG(seed, uint64(i)))
						for range 25 {
							anyRequest(random, limiter, both, l.Burst(), &passed)
							time.Sleep(time.Duration(random.Int64N(int64(l.Period()))))
						}
					})
					passed.check(t, l)
				})
			}
		}
	}
}

// anyRequest makes some request by some method, and records what passed.
func anyRequest(random *rand.Rand, l *Limiter[int, int], both *Combined[int], burst int64, passed *diary) {
	n := 1 + random.Int64N(burst)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.Int64N(int64(3*time.Second))))
	defer cancel()
	switch random.IntN(8) {
	case 0:
		if l.AllowN(1, n) {
			passed.enter(n)
		}
	case 1:
		if l.Take(1, n).Allowed {
			passed.enter(n)
		}
	case 2:
		if l.WaitN(ctx, 1, n) == nil {
			passed.enter(n)
		}
	case 3: // given up early
		time.AfterFunc(time.Duration(random.Int64N(int64(time.Second))), cancel)
		if l.WaitN(ctx, 1, n) == nil {
			passed.enter(n)
		}
	case 4, 5:
		if both.WaitN(ctx, 1, min(n, 5)) == nil {
			passed.enter(min(n, 5))
		}
	case 6:
		if r, d := l.ReserveN(1, n); d.Allowed {
			r.Cancel()
		}
	case 7:
		l.Peek(1)
		if both.AllowN(1, min(n, 5)) {
			passed.enter(min(n, 5))
		}
	}
}

// asked is one request at a time after the start, and the answer to it.
type asked struct {
	at   time.Duration
	n    int64
	want Decision
}

// decision returns a decision of a limit that has no debt.
func decision(allowed bool, l Limit, remaining int64, retry, reset time.Duration) Decision {
	return Decision{Allowed: allowed, Limit: l, Used: l.Burst() - remaining, Remaining: remaining, RetryAfter: retry, ResetAfter: reset}
}

// begun returns d with the start of its window, if that ends when the limit is full
// again.
func begun(d Decision) Decision {
	if d.Limit.Algorithm() == FixedWindow && d.ResetAfter > 0 {
		d.Since = time.Now().Add(d.ResetAfter - d.Limit.Period()).UnixNano()
	}
	return d
}

func TestDecision(t *testing.T) {
	const s, m = time.Second, time.Minute
	gcra, fixed, log, counter := PerMinute(10), PerMinute(10).Using(FixedWindow), PerMinute(10).Using(SlidingLog), PerMinute(10).Using(SlidingCounter)
	hour := PerHour(15)
	bucketSteps := []asked{
		{0, 4, decision(true, gcra, 6, 0, 24*s)},
		{0, 7, decision(false, gcra, 6, 6*s, 24*s)},
		{6 * s, 7, decision(true, gcra, 0, 0, m)},
		{6 * s, 1, decision(false, gcra, 0, 6*s, m)},
		{6 * s, 10, decision(false, gcra, 0, m, m)},
		{6 * s, 11, decision(false, gcra, 0, Never, m)},
		{6 * s, -1, decision(false, gcra, 0, Never, m)},
		{6 * s, math.MinInt64, decision(false, gcra, 0, Never, m)},
		{6 * s, math.MaxInt64, decision(false, gcra, 0, Never, m)},
		{6 * s, 0, decision(true, gcra, 0, 0, m)},
		{12*s - 1, 1, decision(false, gcra, 0, 1, 54*s+1)},
		{12 * s, 1, decision(true, gcra, 0, 0, m)},
		{12*s + m, 0, decision(true, gcra, 10, 0, 0)},
	}
	tests := []struct {
		name   string
		limits []Limit
		steps  []asked
	}{
		{"none", nil, []asked{
			{0, 1, Decision{Allowed: true, Remaining: math.MaxInt64}},
			{0, math.MaxInt64, Decision{Allowed: true, Remaining: math.MaxInt64}},
			{0, 0, Decision{Allowed: true, Remaining: math.MaxInt64}},
		}},
		{"bucket", []Limit{gcra}, bucketSteps},
		{"wide bucket", []Limit{gcra, roomy}, bucketSteps},
		{"bucket, named twice", []Limit{gcra, gcra}, bucketSteps},
		{"window", []Limit{fixed}, []asked{
			{30 * s, 4, decision(true, fixed, 6, 0, 30*s)},
			{30 * s, 7, decision(false, fixed, 6, 30*s, 30*s)},
			{45 * s, 11, decision(false, fixed, 6, Never, 15*s)},
			{m - 1, 7, decision(false, fixed, 6, 1, 1)},
			{m, 7, decision(true, fixed, 3, 0, m)},
		}},
		{"window, named twice", []Limit{fixed, fixed}, []asked{
			{0, 4, decision(true, fixed, 6, 0, m)},
			{0, 6, decision(true, fixed, 0, 0, m)},
		}},
		{"log", []Limit{log}, []asked{
			{0, 4, decision(true, log, 6, 0, m)},
			{20 * s, 6, decision(true, log, 0, 0, m)},
			{20 * s, 1, decision(false, log, 0, 40*s, m)},
			{20 * s, 5, decision(false, log, 0, m, m)},
			{m - 1, 1, decision(false, log, 0, 1, 20*s+1)},
			{m, 4, decision(true, log, 0, 0, m)},
		}},
		{"log, named twice", []Limit{log, log}, []asked{
			{0, 4, decision(true, log, 6, 0, m)},
			{0, 6, decision(true, log, 0, 0, m)},
		}},
		{"counter", []Limit{counter}, []asked{
			{0, 10, decision(true, counter, 0, 0, 2*m)},
			{m, 1, decision(false, counter, 0, 1, m)},
			{m + 1, 1, decision(true, counter, 0, 0, 2*m-1)},
			{m + 1, 1, decision(false, counter, 0, 6*s, 2*m-1)},
		}},
		{"several", []Limit{gcra, hour}, []asked{
			{0, 10, decision(true, gcra, 0, 0, m)},
			{0, 1, decision(false, gcra, 0, 6*s, m)},
			{m, 10, decision(false, hour, 5, 19*m, 39*m)},
			{m, 3, decision(true, hour, 2, 0, 51*m)},
			{m, 11, decision(false, gcra, 7, Never, 18*s)},
		}},
		{"several windows of one log", []Limit{PerHour(15).Using(SlidingLog), log}, []asked{
			{0, 10, decision(true, log, 0, 0, m)},
			{m, 6, decision(false, PerHour(15).Using(SlidingLog), 5, 59*m, 59*m)},
			{m, 5, decision(true, PerHour(15).Using(SlidingLog), 0, 0, 60*m)},
		}},
	}
	for _, test := range tests {
		inBubble(t, test.name, func(t *testing.T) {
			l := NewLimiter(itself[string], test.limits...)
			begin := time.Now()
			for _, step := range test.steps {
				time.Sleep(time.Until(begin.Add(step.at)))
				priced := l.WithCost(func(string) int64 { return step.n })
				before := priced.Peek("key")
				if before.Allowed != step.want.Allowed || before.RetryAfter != step.want.RetryAfter {
					t.Errorf("at %v, Peek at %d: %+v, want %+v", step.at, step.n, before, step.want)
				}
				if got, want := l.Take("key", step.n), begun(step.want); got != want {
					t.Errorf("at %v, Take(%d):\n got %+v\nwant %+v", step.at, step.n, got, want)
				}
			}
		})
	}
}

// RetryAfter is the first nanosecond at which the same request passes.
func TestRetryAfterIsExact(t *testing.T) {
	for _, count := range []int64{3, 7, 1000, 65537} {
		for _, w := range everyWay(count, time.Minute) {
			for _, n := range []int64{1, 2, count/2 + 1} {
				inBubble(t, fmt.Sprintf("%d of %d by %s", n, count, w.name), func(t *testing.T) {
					l := NewLimiter(itself[int], w.limits...)
					time.Sleep(17 * time.Second)
					l.AllowN(0, count/2+1)
					time.Sleep(5 * time.Second)
					l.AllowN(0, count-count/2-1)
					d := l.Take(0, n)
					if d.Allowed {
						return // a window or two have passed
					}
					time.Sleep(d.RetryAfter - 1)
					if l.AllowN(0, n) {
						t.Fatalf("passes before %v", d.RetryAfter)
					}
					time.Sleep(time.Nanosecond)
					if !l.AllowN(0, n) {
						t.Fatalf("does not pass after %v", d.RetryAfter)
					}
				})
			}
		}
	}
}

// The whole limit is left after ResetAfter, and not before.
func TestResetAfterIsExact(t *testing.T) {
	for _, count := range []int64{1, 3, 1000, 65537} {
		for _, w := range everyWay(count, time.Minute) {
			inBubble(t, fmt.Sprintf("%d by %s", count, w.name), func(t *testing.T) {
				l := NewLimiter(itself[int], w.limits...)
				time.Sleep(17 * time.Second)
				d := l.Take(0, count/2+1)
				if len(w.limits) > 2 { // that of the one that decides
					l = NewLimiter(itself[int], d.Limit)
					d = l.Take(0, count/2+1)
				}
				time.Sleep(d.ResetAfter - 1)
				if got := l.Peek(0); got.ResetAfter != 1 {
					t.Errorf("1ns before the reset: %+v", got)
				}
				time.Sleep(time.Nanosecond)
				if got := l.Peek(0); got.ResetAfter != 0 || got.Remaining != count {
					t.Errorf("at the reset: %+v", got)
				}
				if !l.AllowN(0, count) {
					t.Error("the limit is full and does not let all of it pass")
				}
			})
		}
	}
}

func TestPeekTakesNothing(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			for range 100 {
				if d := l.Peek(0); !d.Allowed || d.Remaining != 10 || d.ResetAfter != 0 || d.RetryAfter != 0 {
					t.Fatalf("a key never seen: %+v", d)
				}
			}
			if l.Len() != 0 {
				t.Errorf("Peek made %d counters", l.Len())
			}
			l.AllowN(0, 4)
			before := l.Peek(0)
			inParallel(goroutines, func(int) {
				for range 100 {
					l.Peek(0)
				}
			})
			if after := l.Peek(0); after != before || after.Remaining != 6 {
				t.Errorf("before %+v, after %+v", before, after)
			}
		})
	}
}

func TestADenialTakesNothing(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			l.AllowN(0, 4)
			before := l.Peek(0)
			for _, n := range []int64{7, 10, 11, -1, math.MaxInt64, math.MinInt64} {
				if l.AllowN(0, n) || l.Take(0, n).Allowed {
					t.Errorf("%d passes with 6 left", n)
				}
				if r, d := l.ReserveN(0, n); r != nil || d.Allowed {
					t.Errorf("%d is reserved with 6 left", n)
				}
			}
			if after := l.Peek(0); after != before {
				t.Errorf("before %+v, after %+v", before, after)
			}
		})
	}
}

func TestLimitsByFunction(t *testing.T) {
	type request struct {
		user   string
		limits []Limit
	}
	user := func(r request) string { return r.user }
	limits := func(r request) []Limit { return r.limits }
	invalid := PerDay(0)

	inBubble(t, "none", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		for range 100 {
			if d := l.Take(request{user: "a"}, 1<<50); d != (Decision{Allowed: true, Remaining: math.MaxInt64}) {
				t.Fatalf("without limits: %+v", d)
			}
		}
		if err := l.WaitN(t.Context(), request{user: "a"}, 1<<60); err != nil {
			t.Errorf("without limits: %v", err)
		}
	})
	inBubble(t, "changing", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		free, paid := PerDay(3), PerDay(1000)
		l.AllowN(request{"a", []Limit{free}}, 3)
		if d := l.Peek(request{"a", []Limit{free}}); d.Allowed || d.Remaining != 0 {
			t.Errorf("the free plan is used up: %+v", d)
		}
		if d := l.Take(request{"a", []Limit{paid}}, 1); d.Remaining != 999 || d.Limit != paid {
			t.Errorf("another limit begins anew: %+v", d)
		}
		if d := l.Peek(request{"a", []Limit{free}}); d.Allowed {
			t.Errorf("the old limit is still used up: %+v", d)
		}
		if d := l.Peek(request{"b", []Limit{free}}); d.Remaining != 3 {
			t.Errorf("another user has used nothing: %+v", d)
		}
	})
	inBubble(t, "a log keeps its history when its limit changes", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		l.AllowN(request{"a", []Limit{PerMinute(10).Using(SlidingLog)}}, 8)
		if d := l.Peek(request{"a", []Limit{PerMinute(12).Using(SlidingLog)}}); d.Remaining != 4 {
			t.Errorf("8 of 12 are used: %+v", d)
		}
		if d := l.Peek(request{"a", []Limit{PerMinute(5).Using(SlidingLog)}}); d.Remaining != 0 || d.RetryAfter != time.Minute {
			t.Errorf("8 of 5 are used: %+v", d)
		}
		if d := l.Peek(request{"a", []Limit{PerHour(100).Using(SlidingLog)}}); d.Remaining != 92 {
			t.Errorf("8 of 100 are used: %+v", d)
		}
	})
	inBubble(t, "several, in any order, named twice", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		orders := [][]Limit{
			{PerDay(5), PerDay(50), PerHour(500).Using(FixedWindow)},
			{PerHour(500).Using(FixedWindow), PerDay(50), PerDay(5)},
			{PerDay(5), PerDay(5), PerDay(50), PerDay(50), PerHour(500).Using(FixedWindow)},
		}
		var admitted atomic.Int64
		inParallel(goroutines, func(i int) {
			for range 5 {
				if l.Allow(request{"a", orders[i%len(orders)]}) {
					admitted.Add(1)
				}
			}
		})
		if admitted.Load() != 5 {
			t.Errorf("admitted %d of 5", admitted.Load())
		}
		for want, limit := range map[int64]Limit{0: orders[0][0], 45: orders[0][1], 495: orders[0][2]} {
			if d := l.Peek(request{"a", []Limit{limit}}); d.Remaining != want {
				t.Errorf("%v: %d left, want %d", limit, d.Remaining, want)
			}
		}
	})
	inBubble(t, "invalid", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		with := request{"a", []Limit{PerDay(5), invalid, PerHour(5)}}
		for _, n := range []int64{0, 1, -1} {
			if d := l.Take(with, n); d != (Decision{Limit: invalid, RetryAfter: Never}) {
				t.Errorf("Take(%d): %+v", n, d)
			}
		}
		if l.Allow(with) || l.Peek(with).Allowed {
			t.Error("an invalid limit lets something pass")
		}
		if r, d := l.Reserve(with); r != nil || d.Allowed {
			t.Error("an invalid limit lets something be reserved")
		}
		err := l.Wait(t.Context(), with)
		if !errors.Is(err, ErrNever) || !strings.Contains(err.Error(), strings.TrimPrefix(invalid.Validate().Error(), "ratelimit: ")) {
			t.Errorf("Wait does not say what is wrong: %v", err)
		}
		if d := l.Peek(request{"a", []Limit{PerDay(5)}}); d.Remaining != 5 {
			t.Errorf("the valid limits were charged: %+v", d)
		}
	})
	inBubble(t, "thousands of limits on one key", func(t *testing.T) {
		l := NewLimiterFunc(user, limits)
		for i := range int64(5000) {
			if !l.Allow(request{"a", []Limit{New(i+1, time.Second)}}) {
				t.Fatal("a new limit denies")
			}
			time.Sleep(time.Second)
		}
		h := l.parts[0].hash(request{user: "a"})
		_, s := l.parts[0].book.cells.find(h)
		if got := len(s.value.each); got > 2 {
			t.Errorf("%d counters are kept, of which one is in use", got)
		}
	})
}

func TestInvalidLimitsAdmitNothing(t *testing.T) {
	invalid := []Limit{
		{}, PerDay(0), PerDay(-1), New(1, 0), New(1, -time.Second), New(math.MaxInt64, time.Second), New(1, math.MaxInt64),
		PerDay(1).WithBurst(0), PerDay(1).WithBurst(-5), PerDay(1).Using(99), PerDay(10).Using(SlidingLog).WithBurst(3),
		PerHour(5).ResetAt(0, nil), PerDay(5).ResetAt(-1, nil), PerDay(5).ResetAt(0, time.FixedZone("Nowhere", 7)),
	}
	for _, bad := range invalid {
		for _, limits := range [][]Limit{{bad}, {PerDay(5), bad}, {bad, PerDay(5)}} {
			inBubble(t, fmt.Sprint(bad.Validate()), func(t *testing.T) {
				l := NewLimiter(itself[int], limits...)
				for _, n := range []int64{1, 0, -1, math.MaxInt64} {
					if l.AllowN(0, n) {
						t.Errorf("AllowN(%d)", n)
					}
					if d := l.Take(0, n); d.Allowed || d.RetryAfter != Never || d.Limit != bad {
						t.Errorf("Take(%d): %+v", n, d)
					}
					if err := l.WaitN(t.Context(), 0, n); !errors.Is(err, ErrNever) {
						t.Errorf("WaitN(%d): %v", n, err)
					}
				}
				if d := l.Peek(0); d.Allowed || d.RetryAfter != Never {
					t.Errorf("Peek: %+v", d)
				}
				if l.Len() != 0 {
					t.Errorf("%d counters are kept", l.Len())
				}
			})
		}
	}
}

// The answer to a request that is larger than its limit says so at once, and which limit it is.
func TestNeverIsNotLater(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			for _, n := range []int64{11, -1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
				if d := l.Take(0, n); d.Allowed || d.RetryAfter != Never || d.Remaining != 10 {
					t.Errorf("Take(%d): %+v", n, d)
				}
				begin := time.Now()
				err := l.WaitN(t.Context(), 0, n)
				if !errors.Is(err, ErrNever) || time.Since(begin) != 0 {
					t.Errorf("WaitN(%d) after %v: %v", n, time.Since(begin), err)
				}
				if !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), "10/min") {
					t.Errorf("WaitN(%d) does not say which limit: %v", n, err)
				}
			}
			if d := l.Peek(0); d.Remaining != 10 {
				t.Errorf("charged for what never passes: %+v", d)
			}
		})
	}
}

func TestWithCost(t *testing.T) {
	for _, limits := range [][]Limit{{PerDay(100)}, {PerDay(100), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			plain := NewLimiter(func(int64) int { return 0 }, limits...)
			l := plain.WithCost(func(in int64) int64 { return in })
			left := func(want int64) {
				t.Helper()
				if d := l.Peek(0); d.Remaining != want {
					t.Errorf("%d left, want %d", d.Remaining, want)
				}
				if d := plain.Peek(0); d.Remaining != want {
					t.Errorf("%d left without costs, want %d", d.Remaining, want)
				}
			}
			if !l.Allow(30) {
				t.Error("Allow")
			}
			left(70)
			if err := l.Wait(t.Context(), 10); err != nil {
				t.Error(err)
			}
			left(60)
			if r, _ := l.Reserve(20); r == nil {
				t.Error("Reserve")
			}
			left(40)
			if !l.AllowN(99, 5) || !l.Take(99, 5).Allowed { // the amount named, not the cost
				t.Error("AllowN")
			}
			left(30)
			if !plain.Allow(99) { // costs 1
				t.Error("Allow without costs")
			}
			left(29)
			if d := l.Spend(4); d != decision(true, limits[0], 25, 0, 75*864*time.Second) {
				t.Errorf("Spend of 4: %+v", d)
			}
			left(25)
			if d := plain.Spend(99); !d.Allowed { // costs 1
				t.Errorf("Spend without costs: %+v", d)
			}
			if d := l.Spend(30); d.Allowed || d.RetryAfter != 6*864*time.Second {
				t.Errorf("Spend of 30: %+v", d)
			}
			left(24)
			if d := l.Peek(24); !d.Allowed {
				t.Errorf("Peek at 24: %+v", d)
			}
			if d := l.Peek(25); d.Allowed || d.Remaining != 24 || d.RetryAfter != 864*time.Second {
				t.Errorf("Peek at 25: %+v", d)
			}
			if d := l.Peek(101); d.RetryAfter != Never {
				t.Errorf("Peek at 101: %+v", d)
			}
			for _, cost := range []int64{-1, 101, math.MaxInt64, math.MinInt64} {
				if l.Allow(cost) || l.Peek(cost).RetryAfter != Never {
					t.Errorf("a cost of %d passes", cost)
				}
				if err := l.Wait(t.Context(), cost); !errors.Is(err, ErrNever) {
					t.Errorf("a cost of %d: %v", cost, err)
				}
				if d := l.Spend(cost); d.Allowed || d.RetryAfter != Never {
					t.Errorf("a cost of %d is spent: %+v", cost, d)
				}
				if r, d := l.Reserve(cost); r != nil || d.RetryAfter != Never {
					t.Errorf("a cost of %d is reserved: %+v", cost, d)
				}
			}
			left(24)
			if !l.Allow(24) || !l.Allow(0) || l.Allow(1) {
				t.Error("nothing is left but what costs nothing")
			}
			left(0)
			if err := l.Wait(t.Context(), 0); err != nil {
				t.Errorf("what costs nothing: %v", err)
			}
			if dearer := l.WithCost(func(int64) int64 { return 7 }); dearer.Allow(0) {
				t.Error("the last cost function counts")
			}
		})
	}
}

func TestLen(t *testing.T) {
	for _, limits := range [][]Limit{{PerDay(3)}, {PerDay(3), PerHour(2)}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			for i := range 3000 {
				if l.Len() != i {
					t.Fatalf("Len is %d with %d keys", l.Len(), i)
				}
				l.Allow(i)
				l.Allow(i)
				l.Peek(-i - 1)
			}
		})
	}
}

// Limiters do not affect each other.
func TestLimitersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewLimiter(itself[int], PerDay(1)), NewLimiter(itself[int], PerDay(1))
		if !a.Allow(1) || a.Allow(1) || !b.Allow(1) || b.Allow(1) || !a.Allow(2) {
			t.Error("two limiters share a counter, or two keys do")
		}
	})
}

// A caller may change the slice of limits after creating a limiter.
func TestLimitsAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []Limit{PerDay(1), PerDay(2)}
		l := NewLimiter(itself[int], limits...)
		limits[0], limits[1] = PerDay(100), PerDay(100)
		if !l.Allow(0) || l.Allow(0) {
			t.Error("a limiter follows a slice that its caller changed")
		}
	})
}

func TestNoAllocations(t *testing.T) {
	const key = "a key of some length that would not fit a word"
	check := func(t *testing.T, door string, f func()) {
		t.Helper()
		for range 10 { // what is kept is made once
			f()
		}
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations", door, n)
		}
	}
	checkAll := func(t *testing.T, l interface {
		Allow(string) bool
		AllowN(string, int64) bool
		Take(string, int64) Decision
		Spend(string) Decision
		Peek(string) Decision
	}) {
		t.Helper()
		for _, n := range []int64{1, 2, 1 << 50} {
			check(t, fmt.Sprintf("AllowN(%d)", n), func() { l.AllowN(key, n) })
			check(t, fmt.Sprintf("Take(%d)", n), func() { l.Take(key, n) })
		}
		check(t, "Allow", func() { l.Allow(key) })
		check(t, "Spend", func() { l.Spend(key) })
		check(t, "Peek", func() { l.Peek(key) })
	}
	kinds := []way{
		{"one word", []Limit{PerDay(1000000)}},
		{"one word, denied", []Limit{PerDay(1)}},
		{"wide", []Limit{PerDay(999983)}},
		{"several", []Limit{PerDay(1000000), PerHour(1000000).Using(FixedWindow), PerDay(5).Using(SlidingCounter)}},
		{"window", []Limit{PerDay(1000000).Using(FixedWindow)}},
		{"calendar", []Limit{PerDay(1000000).ResetAt(0, nil)}},
		{"counter", []Limit{PerDay(1000000).Using(SlidingCounter)}},
		{"log", []Limit{New(50, time.Microsecond).Using(SlidingLog)}},
		{"log, denied", []Limit{PerDay(5).Using(SlidingLog)}},
		{"none", nil},
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			checkAll(t, NewLimiter(itself[string], k.limits...))
		})
	}
	t.Run("a log that is full", func(t *testing.T) {
		l := NewLimiter(itself[string], New(1<<40, time.Hour).Using(SlidingLog))
		for range 3 * mostEntries {
			l.Allow(key)
		}
		checkAll(t, l)
	})
	t.Run("priced", func(t *testing.T) {
		checkAll(t, NewLimiter(itself[string], PerDay(1000000)).WithCost(func(string) int64 { return 2 }))
	})
	t.Run("by function", func(t *testing.T) {
		some := []Limit{PerDay(1000000), PerHour(1000000)}
		checkAll(t, NewLimiterFunc(itself[string], func(string) []Limit { return some }))
	})
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprintf("%d combined", n), func(t *testing.T) {
			parts := []Combinable[string]{
				NewLimiter(itself[string], PerDay(1000000)),
				NewLimiter(func(s string) int { return len(s) }, PerDay(1000000), PerHour(1000000)),
				NewLimiter(func(string) struct{} { return struct{}{} }, PerDay(1000000).Using(FixedWindow)),
				NewLimiter(itself[string], New(50, time.Microsecond).Using(SlidingLog)),
			}
			checkAll(t, Combine(parts[:n]...))
		})
	}
	t.Run("Peek at a key never seen", func(t *testing.T) {
		for _, limits := range [][]Limit{{PerDay(5)}, {PerDay(5), PerHour(5)}, {PerDay(5).Using(FixedWindow)}, {PerDay(5).Using(SlidingCounter)}} {
			l := NewLimiter(itself[string], limits...)
			check(t, fmt.Sprint(limits), func() { l.Peek(key) })
		}
	})
}
