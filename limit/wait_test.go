package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
)

// waitLine starts waits one after another in a bubble, and records when each of them
// is over, counted from the creation of the waitLine.
type waitLine struct {
	t     *testing.T
	begin time.Time
	all   []*waitResult
}

type waitResult struct {
	after time.Duration
	err   error
	over  chan struct{}
}

func newWaitLine(t *testing.T) *waitLine { return &waitLine{t: t, begin: time.Now()} }

// join starts a wait, and returns once it waits.
func (w *waitLine) join(wait func() error) *waitResult {
	r := &waitResult{over: make(chan struct{})}
	w.all = append(w.all, r)
	go func() {
		r.err = wait()
		r.after = time.Since(w.begin)
		close(r.over)
	}()
	synctest.Wait()
	return r
}

// isOver reports whether the wait is over.
func (r *waitResult) isOver() bool {
	synctest.Wait()
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// check waits until all waits are over, and compares the times at which they ended.
func (w *waitLine) check(want ...time.Duration) {
	w.t.Helper()
	var got []time.Duration
	for i, r := range w.all {
		<-r.over
		if r.err != nil {
			w.t.Errorf("wait %d: %v", i, r.err)
		}
		got = append(got, r.after)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("passed after %v, want %v", got, want)
	}
}

const sec = time.Second

// A large request in the middle of a line waits for its turn, the small requests behind
// it wait until it has passed, and each passes at the first nanosecond at which it may.
func TestWaitIsFirstComeFirstServed(t *testing.T) {
	limit := New(10, 10*sec)
	buckets := []time.Duration{1 * sec, 11 * sec, 12 * sec, 13 * sec, 15 * sec}
	windows := []time.Duration{10 * sec, 20 * sec, 30 * sec, 30 * sec, 30 * sec}
	counters := []time.Duration{10*sec + 1, 20*sec + 1, 30*sec + 1, 31*sec + 1, 33*sec + 1}
	tests := []struct {
		limits []Limit
		want   []time.Duration
	}{
		{[]Limit{limit}, buckets},
		{[]Limit{limit.Using(TokenBucket)}, buckets},
		{[]Limit{limit.Using(LeakyBucket)}, buckets},
		{[]Limit{limit, roomy}, buckets},
		{[]Limit{limit.Using(FixedWindow)}, windows},
		{[]Limit{limit.Anchored()}, windows},
		{[]Limit{limit.Using(SlidingLog)}, windows},
		{[]Limit{limit.Using(SlidingCounter)}, counters},
	}
	for _, test := range tests {
		inBubble(t, fmt.Sprint(test.limits), func(t *testing.T) {
			l := NewLimiter(itself[int], test.limits...)
			l.AllowN(0, 10)
			line := newWaitLine(t)
			for _, n := range []int64{1, 10, 1, 1, 2} {
				line.join(func() error { return l.WaitN(t.Context(), 0, n) })
			}
			last := line.all[len(line.all)-1]
			time.Sleep(sec / 2)
			for other := 1; other < 60 && !last.isOver(); other++ { // in vain, while calls wait
				if l.Allow(0) || l.Take(0, 1).Allowed {
					t.Error("Allow passes a waiting call")
				}
				if !l.AllowN(0, 0) {
					t.Error("a request for nothing passes no call, and is denied")
				}
				if d := l.Peek(0); d.Allowed || d.RetryAfter <= 0 || d.RetryAfter == Never {
					t.Errorf("Peek says that Allow would pass a waiting call: %+v", d)
				}
				if r, d := l.Reserve(0); r != nil || d.Allowed {
					t.Error("Reserve passes a waiting call")
				}
				if !l.Allow(other) {
					t.Error("a call that waits for one key denies another key")
				}
				time.Sleep(sec)
			}
			line.check(test.want...)
			time.Sleep(100 * sec)
			if !l.AllowN(0, 10) {
				t.Error("no call waits any more, and Allow denies")
			}
		})
	}
}

// While calls wait, the denial of another request says when the first of them passes,
// and what is left now.
func TestDenialBecauseOthersWait(t *testing.T) {
	for _, w := range everyWay(10, 24*time.Hour)[1:] {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			l.AllowN(0, 8)
			before := l.Peek(0)
			five := l.WithCost(func(int) int64 { return 5 }).Peek(0)
			ctx, cancel := context.WithCancel(t.Context())
			line := newWaitLine(t)
			line.join(func() error { return l.WaitN(ctx, 0, 5) })
			want := before
			want.Allowed, want.RetryAfter = false, five.RetryAfter
			if d := l.Take(0, 1); d != want {
				t.Errorf("Take:\n got %+v\nwant %+v", d, want)
			}
			if d := l.Peek(0); d != want {
				t.Errorf("Peek:\n got %+v\nwant %+v", d, want)
			}
			cancel()
			<-line.all[0].over
			if d := l.Peek(0); d != before {
				t.Errorf("after a wait that was cancelled: %+v, before %+v", d, before)
			}
		})
	}
}

func TestWaitThatEndsInVain(t *testing.T) {
	for _, w := range everyWay(10, time.Minute) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			cancelled, cancel := context.WithCancel(t.Context())
			cancel()
			expired, cancel := context.WithDeadline(t.Context(), time.Now())
			defer cancel()
			try := func(what string, ctx context.Context, n int64, want error, after time.Duration) {
				t.Helper()
				before, begin := l.Peek(0), time.Now()
				err := l.WaitN(ctx, 0, n)
				if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "ratelimit: ") {
					t.Errorf("%s: %v", what, err)
				}
				if took := time.Since(begin); took != after {
					t.Errorf("%s: took %v, want %v", what, took, after)
				}
				if after == 0 && l.Peek(0) != before {
					t.Errorf("%s: before %+v, after %+v", what, before, l.Peek(0))
				}
			}
			try("cancelled before", cancelled, 1, context.Canceled, 0)
			try("expired before", expired, 1, context.DeadlineExceeded, 0)
			try("never, and cancelled", cancelled, 11, context.Canceled, 0)
			try("never", t.Context(), 11, ErrNever, 0)
			l.AllowN(0, 10)
			try("cancelled before, and nothing left", cancelled, 1, context.Canceled, 0)
			due := l.Peek(0).RetryAfter
			soon, cancel := context.WithTimeout(t.Context(), due-1)
			defer cancel()
			try("a deadline that cannot be met", soon, 1, context.DeadlineExceeded, 0)
			short, cancel := context.WithCancel(t.Context())
			time.AfterFunc(sec, cancel)
			try("cancelled while it waits", short, 1, context.Canceled, sec)
			if len(l.parts[0].book.lines) != 0 {
				t.Error("lines are left")
			}
			later, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := l.WaitN(later, 0, 1); err != nil {
				t.Errorf("a deadline that can be met: %v", err)
			}
		})
	}
}

// A call behind others finds out only as time passes that it cannot meet its deadline.
func TestDeadlineInLine(t *testing.T) {
	for _, w := range everyWay(1, 10*sec) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			l.Allow(0)
			line := newWaitLine(t)
			line.join(func() error { return l.Wait(t.Context(), 0) })
			patience := l.Peek(0).RetryAfter + 5*sec
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			late := line.join(func() error { return l.Wait(ctx, 0) })
			line.join(func() error { return l.Wait(t.Context(), 0) })
			if l.parts[0].book.lineLen(l.parts[0].hash(0)) != 3 {
				t.Errorf("%d wait, want 3", l.parts[0].book.lineLen(l.parts[0].hash(0)))
			}
			<-late.over
			if !errors.Is(late.err, context.DeadlineExceeded) || late.after > patience {
				t.Errorf("after %v: %v", late.after, late.err)
			}
			<-line.all[2].over
			if l.Peek(0).Allowed {
				t.Error("the last wait took nothing")
			}
		})
	}
}

// A thousand waits that are cancelled leave no trace, whatever the order.
func TestCancelledWaitsLeaveNoTrace(t *testing.T) {
	for _, w := range everyWay(10, 24*time.Hour) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			other := NewLimiter(itself[int], PerDay(100))
			both := Combine[int](other, l)
			l.AllowN(0, 7)
			before, otherBefore, counters := l.Peek(0), other.Peek(0), l.Len()
			var over sync.WaitGroup
			random := rand.New(rand.NewPCG(1, 1))
			var cancels []context.CancelFunc
			for i := range 1000 {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				over.Go(func() {
					wait := l.WaitN
					if i%3 == 0 {
						wait = both.WaitN
					}
					if err := wait(ctx, 0, 4+int64(i%5)); !errors.Is(err, context.Canceled) {
						t.Errorf("wait %d: %v", i, err)
					}
				})
			}
			synctest.Wait()
			if l.Allow(0) {
				t.Error("Allow passes waiting calls")
			}
			if !other.Peek(0).Allowed {
				t.Error("a call that waits for one limiter blocks another that has room")
			}
			random.Shuffle(len(cancels), func(i, k int) { cancels[i], cancels[k] = cancels[k], cancels[i] })
			for _, cancel := range cancels {
				cancel()
			}
			over.Wait()
			if after := l.Peek(0); after != before {
				t.Errorf("before %+v, after %+v", before, after)
			}
			if after := other.Peek(0); after != otherBefore {
				t.Errorf("before %+v, after %+v", otherBefore, after)
			}
			if l.Len() != counters || len(l.parts[0].book.lines) != 0 || len(other.parts[0].book.lines) != 0 {
				t.Errorf("%d counters and %d lines, want %d and none", l.Len(), len(l.parts[0].book.lines), counters)
			}
			if !l.AllowN(0, 3) || l.AllowN(0, 1) || !other.AllowN(0, 100) {
				t.Error("what was left before is not what is left now")
			}
		})
	}
}

// When the first call of a line gives up, the calls behind it move up at once.
func TestCancellingTheFirst(t *testing.T) {
	for _, w := range everyWay(10, 10*sec) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			l.AllowN(0, 6)
			line := newWaitLine(t)
			ctx, cancel := context.WithCancel(t.Context())
			large := line.join(func() error { return l.WaitN(ctx, 0, 10) })
			small := line.join(func() error { return l.WaitN(t.Context(), 0, 2) })
			next := line.join(func() error { return l.WaitN(t.Context(), 0, 1) })
			time.Sleep(sec)
			if small.isOver() || next.isOver() {
				t.Error("small ones pass a large one")
			}
			cancel()
			if !large.isOver() || !errors.Is(large.err, context.Canceled) {
				t.Errorf("the large one: %v", large.err)
			}
			if !small.isOver() || !next.isOver() || small.after != sec || next.after != sec {
				t.Error("those behind do not move up at once")
			}
		})
	}
}

// A call that has waited for a refund, or behind a call that gave up, is charged as of
// the time at which it passes, not as of its arrival. Otherwise too much would pass.
func TestWaitIsChargedWhenItPasses(t *testing.T) {
	for _, w := range everyWay(10, 10*sec) {
		inBubble(t, "a refund, "+w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			blocked := NewLimiter(itself[int], PerDay(1))
			r, _ := blocked.Reserve(0)
			line := newWaitLine(t)
			waits := line.join(func() error {
				return Combine[int](l.WithCost(func(int) int64 { return 10 }), blocked).Wait(t.Context(), 0)
			})
			time.Sleep(time.Hour)
			r.Cancel()
			if !waits.isOver() || waits.err != nil {
				t.Fatal("the refund wakes no call")
			}
			if d := l.Take(0, 1); d.Allowed {
				t.Errorf("more than the limit passes at once: %+v", d)
			}
		})
	}
}

// A call that passes because of a refund is charged as of the refund, in all of its
// buckets, even if the refunded bucket would have had room earlier.
func TestRefundIsNotInThePast(t *testing.T) {
	for _, limits := range [][]Limit{{New(10, 10*sec)}, {New(10, 10*sec), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			full, free := NewLimiter(itself[int], limits...), NewLimiter(itself[int], limits...)
			r, _ := full.ReserveN(0, 10)
			five := full.WithCost(func(int) int64 { return 5 })
			ten := free.WithCost(func(int) int64 { return 10 })
			line := newWaitLine(t)
			waits := line.join(func() error { return Combine[int](ten, five).Wait(t.Context(), 0) })
			time.Sleep(4 * sec)
			r.Settle(8)
			if !waits.isOver() || waits.err != nil {
				t.Fatal("6 are free, and 5 do not pass")
			}
			if d := free.Peek(0); d.Allowed || d.ResetAfter != 10*sec {
				t.Errorf("10 have passed just now: %+v", d)
			}
		})
	}
}

// After a refund to a bucket while a call waits, exactly what is left counts.
func TestRefundWhileOthersWait(t *testing.T) {
	for _, limits := range [][]Limit{{New(10, 10*sec)}, {New(10, 10*sec), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			r, _ := l.ReserveN(0, 10)
			line := newWaitLine(t)
			waits := line.join(func() error { return l.WaitN(t.Context(), 0, 5) })
			time.Sleep(4 * sec)
			r.Settle(8) // 4 are left of it, where 6 would be
			if !waits.isOver() {
				t.Fatal("6 are free, and 5 do not pass")
			}
			if d := l.Peek(0); d.Remaining != 1 || d.ResetAfter != 9*sec {
				t.Errorf("9 of 10 are used: %+v", d)
			}
		})
	}
}

// Calls of Peek and Allow at the very time at which a waiting call may pass change nothing
// for that call.
func TestPeekAtTheTimeOfATurn(t *testing.T) {
	for _, w := range everyWay(1, 10*sec) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			l.Allow(0)
			due := l.Peek(0).RetryAfter
			time.Sleep(sec)
			line := newWaitLine(t)
			line.join(func() error { return l.Wait(t.Context(), 0) })
			for range 20 {
				go func() {
					time.Sleep(due - sec)
					l.Peek(0)
					l.Allow(0)
				}()
			}
			<-line.all[0].over
			synctest.Wait()
			if line.all[0].after != due-sec {
				t.Errorf("passed after %v, want %v", line.all[0].after, due-sec)
			}
			if d := l.Peek(0); d.RetryAfter < 10*sec {
				t.Errorf("the next passes after %v", d.RetryAfter)
			}
		})
	}
}

// What a reservation gives back goes to the first waiting call, at once.
func TestSettleWakesTheFirst(t *testing.T) {
	for _, w := range everyWay(10, time.Hour) {
		inBubble(t, w.name, func(t *testing.T) {
			l := NewLimiter(itself[int], w.limits...)
			r, _ := l.ReserveN(0, 8)
			l.AllowN(0, 2)
			line := newWaitLine(t)
			first := line.join(func() error { return l.WaitN(t.Context(), 0, 4) })
			second := line.join(func() error { return l.WaitN(t.Context(), 0, 2) })
			third := line.join(func() error { return l.WaitN(t.Context(), 0, 10) })
			time.Sleep(sec)
			if first.isOver() {
				t.Error("passes with nothing left")
			}
			r.Settle(1)
			if !first.isOver() || !second.isOver() || third.isOver() || first.after != sec || second.after != sec {
				t.Error("7 were given back: the calls for 4 and 2 pass, and the call for 10 does not")
			}
			<-third.over
			if third.err != nil {
				t.Error(third.err)
			}
		})
	}
}

// A debt delays calls that wait already.
func TestDebtDelaysWhoWaits(t *testing.T) {
	for _, limits := range [][]Limit{{New(10, 10*sec)}, {New(10, 10*sec), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			r, _ := l.ReserveN(0, 10)
			line := newWaitLine(t)
			line.join(func() error { return l.WaitN(t.Context(), 0, 1) })
			line.join(func() error { return l.WaitN(t.Context(), 0, 1) })
			time.Sleep(sec / 2)
			r.Settle(13)
			line.check(4*sec, 5*sec)
		})
	}
}

// Calls wait for overlapping sets of limiters, named in all orders: there is no deadlock
// (the bubble would report it), and calls that wait for the same limiters are served
// first come, first served.
func TestWaitsOverSharedLimiters(t *testing.T) {
	for seed := range uint64(10) {
		inBubble(t, fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			limiters := []*Limiter[int, int]{
				NewLimiter(itself[int], New(1, sec)),
				NewLimiter(itself[int], New(2, sec), New(30, time.Minute).Using(SlidingLog)),
				NewLimiter(itself[int], New(3, 2*sec).Using(FixedWindow)),
				NewLimiter(itself[int], New(1, sec/2).Using(SlidingCounter)),
			}
			line := newWaitLine(t)
			members := map[*waitResult][]int{}
			for i := range 60 {
				some := random.Perm(len(limiters))[:1+random.IntN(len(limiters))]
				var parts []Combinable[int]
				for _, k := range some {
					parts = append(parts, limiters[k])
				}
				ctx := t.Context()
				if i%5 == 4 {
					short, cancel := context.WithTimeout(ctx, time.Duration(random.Int64N(int64(20*sec))))
					defer cancel()
					ctx = short
				}
				members[line.join(func() error { return Combine(parts...).Wait(ctx, 0) })] = some
				time.Sleep(time.Duration(random.Int64N(int64(sec / 2))))
			}
			last := map[string]time.Duration{}
			for i, r := range line.all {
				<-r.over
				if errors.Is(r.err, context.DeadlineExceeded) && i%5 == 4 {
					continue
				}
				if r.err != nil {
					t.Errorf("wait %d: %v", i, r.err)
				}
				slices.Sort(members[r])
				same := fmt.Sprint(members[r])
				if r.after < last[same] {
					t.Errorf("wait %d passes limiters %v after %v, before one that came first", i, same, r.after)
				}
				last[same] = r.after
			}
			for i, l := range limiters {
				if len(l.parts[0].book.lines) != 0 {
					t.Errorf("limiter %d has lines left", i)
				}
			}
		})
	}
}

// A call that waits for two limiters leaves the one that is free sooner to other calls.
// Once it has waited as long as it still has to wait, it blocks them at both.
func TestWaitForTwoLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewLimiter(itself[int], New(1, 10*sec)), NewLimiter(itself[int], New(1, 15*sec))
		a.Allow(0)
		b.Allow(0)
		line := newWaitLine(t)
		line.join(func() error { return Combine[int](a, b).Wait(t.Context(), 0) })
		line.join(func() error { return a.Wait(t.Context(), 0) })
		line.join(func() error { return b.Wait(t.Context(), 0) })
		line.join(func() error { return Combine[int](b, a).Wait(t.Context(), 0) })
		line.check(20*sec, 10*sec, 35*sec, 50*sec)
	})
}

// A call that waits long for a limit of its own does not keep other calls from the
// limit that they have in common.
func TestWaitHoldsUpOnlyWhatDeniesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perUser := NewLimiter(itself[string], PerHour(1))
		shared := NewLimiter(func(string) int { return 0 }, PerSecond(10))
		both := Combine[string](shared, perUser)
		both.Allow("ann")
		for range 9 {
			shared.Allow("")
		}
		line := newWaitLine(t)
		line.join(func() error { return both.Wait(t.Context(), "ann") }) // denied by both, for 100ms and an hour
		time.Sleep(sec)
		if !both.Allow("bob") || !shared.Allow("cid") {
			t.Error("ann, who waits for an hour, keeps others from the limit that they have in common")
		}
		if both.Allow("ann") {
			t.Error("ann passes herself")
		}
		line.check(time.Hour)
	})
}

// A call that waits for two limiters gets both, although other calls take from each of
// them whenever they can.
func TestWaitForTwoIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewLimiter(itself[int], New(1, sec)), NewLimiter(itself[int], New(1, sec).Using(SlidingLog))
		stop := make(chan struct{})
		var greedy sync.WaitGroup
		for i, l := range []*Limiter[int, int]{a, b} {
			greedy.Go(func() {
				time.Sleep(time.Duration(i) * sec / 2)
				for {
					l.Allow(0)
					select {
					case <-stop:
						return
					case <-time.After(sec / 100):
					}
				}
			})
		}
		time.Sleep(3 * sec)
		begin := time.Now()
		if err := Combine[int](a, b).Wait(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited > 4*sec {
			t.Errorf("it took %v to get two that are free once a second", waited)
		}
		close(stop)
		greedy.Wait()
	})
}

// A line whose timer is late makes up for up to two milliseconds, and not for more.
func TestLateTimerDoesNotPassAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(itself[int], PerSecond(100).WithBurst(1))
		l.Allow(0)
		var over sync.WaitGroup
		for range 50 {
			over.Go(func() { l.Wait(t.Context(), 0) })
		}
		synctest.Wait()
		p := lineKey{l.parts[0].book, l.parts[0].hash(0)}
		p.book.waiting.Lock()
		p.line().timer.Stop()
		p.book.waiting.Unlock()
		time.Sleep(sec)
		serve([]lineKey{p})
		if left := l.parts[0].book.lineLen(p.hash); left < 48 {
			t.Errorf("%d of 50 calls that wait for 100/s pass at once after a second", 50-left)
		}
		over.Wait()
	})
}

// A thousand waiting calls pass at exactly the rate, and no goroutine works for them but
// their own.
func TestThousandWaiters(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	for _, limits := range [][]Limit{{New(1, 7*time.Millisecond)}, {New(1, 7*time.Millisecond), roomy}, {New(1, 7*time.Millisecond).Using(SlidingLog)}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			l.Allow(0)
			begin, goroutines := time.Now(), runtime.NumGoroutine()
			var passed [1000]time.Duration
			var over sync.WaitGroup
			for i := range passed {
				over.Go(func() {
					if err := l.Wait(t.Context(), 0); err != nil {
						t.Error(err)
					}
					passed[i] = time.Since(begin)
				})
				synctest.Wait()
			}
			if got := runtime.NumGoroutine() - goroutines; got > len(passed) {
				t.Errorf("%d goroutines for %d waits", got, len(passed))
			}
			timer := func() *time.Timer {
				l.parts[0].book.waiting.Lock()
				defer l.parts[0].book.waiting.Unlock()
				return l.parts[0].book.lines[l.parts[0].hash(0)].timer
			}
			first := timer()
			time.Sleep(time.Second)
			synctest.Wait()
			if timer() != first {
				t.Error("a line has more than one timer")
			}
			over.Wait()
			for i, got := range passed {
				if want := time.Duration(i+1) * 7 * time.Millisecond; got != want {
					t.Fatalf("wait %d passes after %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestLimitersStartNoGoroutines(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	before := runtime.NumGoroutine()
	for i := range 1000 {
		l := NewLimiter(itself[int], PerDay(10))
		l.Allow(i)
		Combine[int](l, NewLimiter(itself[int], PerDay(10), PerHour(5))).Allow(i)
		NewQueue(PerSecond(1))
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, before there were %d", after, before)
	}
}

// A limiter may be created outside of a bubble and used inside, where time is not real,
// and the other way round.
func TestBubbles(t *testing.T) {
	for _, w := range everyWay(10, 10*sec) {
		if len(w.limits) > 2 {
			continue // windows of real time end when they end
		}
		t.Run("made outside, "+w.name, func(t *testing.T) {
			fresh, used := NewLimiter(itself[int], w.limits...), NewLimiter(itself[int], w.limits...)
			used.AllowN(0, 10)
			synctest.Test(t, func(t *testing.T) {
				for _, l := range []*Limiter[int, int]{fresh, used} {
					for range 3 {
						ctx, cancel := context.WithTimeout(t.Context(), 21*sec)
						defer cancel()
						if err := l.WaitN(ctx, 0, 10); err != nil {
							t.Fatal(err)
						}
						if l.AllowN(0, 1) {
							t.Error("passes with nothing left")
						}
					}
				}
			})
		})
		t.Run("made inside, "+w.name, func(t *testing.T) {
			var l *Limiter[int, int]
			synctest.Test(t, func(t *testing.T) {
				l = NewLimiter(itself[int], w.limits...)
				l.AllowN(0, 10)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := l.Wait(ctx, 0); err != nil {
					t.Error(err)
				}
			})
			if !l.AllowN(0, 10) { // decades later
				t.Errorf("outside: %+v", l.Peek(0))
			}
			if l.AllowN(0, 10) {
				t.Error("passes with nothing left")
			}
		})
	}
}

// Many goroutines wait by the real clock, and some give up: calls pass never faster than
// the rate, all that do not give up pass in the end, and no line is left.
func TestWaitByTheRealClock(t *testing.T) {
	const each, rounds = 20 * time.Microsecond, 300
	for _, limits := range [][]Limit{{New(1, each)}, {New(1, each), roomy}, {New(1, each).Using(SlidingLog)}, {New(1, each).Using(FixedWindow)}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			l, other := NewLimiter(itself[int], limits...), NewLimiter(itself[int], New(1, each/2))
			both := Combine[int](l, other)
			var passed atomic.Int64
			begin := time.Now()
			inParallel(goroutines, func(i int) {
				for k := range rounds {
					ctx, cancel := context.WithCancel(t.Context())
					if k%10 == i%10 {
						go cancel()
					}
					wait := l.Wait
					if k%3 == 0 {
						wait = both.Wait
					}
					switch err := wait(ctx, 0); {
					case err == nil:
						passed.Add(1)
					case !errors.Is(err, context.Canceled):
						t.Error(err)
					}
					cancel()
				}
			})
			if took := time.Since(begin); took < time.Duration(passed.Load()-2)*each {
				t.Errorf("%d passed in %v", passed.Load(), took)
			}
			if passed.Load() < goroutines*rounds*9/10 {
				t.Errorf("%d passed of %d", passed.Load(), goroutines*rounds)
			}
			if len(l.parts[0].book.lines) != 0 || len(other.parts[0].book.lines) != 0 {
				t.Error("lines are left")
			}
		})
	}
}

// With waits, refunds, debts and cancelled contexts at the same time, no call waits in
// the end, and nothing is lost.
func TestWaitAndSettleConcurrently(t *testing.T) {
	for _, w := range everyWay(10, sec) {
		inBubble(t, w.name, func(t *testing.T) {
			a := NewLimiter(itself[int], w.limits...)
			b := NewLimiter(itself[int], New(15, sec))
			inParallel(goroutines, func(i int) {
				random := rand.New(rand.NewPCG(uint64(i), 9))
				parts := []Combinable[int]{a, b}
				if i%2 == 0 {
					slices.Reverse(parts)
				}
				both := Combine(parts...)
				for range 20 {
					switch n := 1 + random.Int64N(5); random.IntN(3) {
					case 0:
						if r, d := both.ReserveN(0, n); d.Allowed {
							time.Sleep(time.Duration(random.Int64N(int64(sec))))
							r.Settle(random.Int64N(8))
						}
					case 1:
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(5*sec))))
						if err := a.WaitN(ctx, 0, n); err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						cancel()
					default:
						if err := both.WaitN(t.Context(), 0, n); err != nil {
							t.Error(err)
						}
					}
				}
			})
			if len(a.parts[0].book.lines) != 0 || len(b.parts[0].book.lines) != 0 {
				t.Error("lines are left")
			}
			time.Sleep(time.Minute)
			remaining(t, a, 0, 10)
			remaining(t, b, 0, 15)
		})
	}
}
