package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However callers arrive, they leave the queue one by one, at exactly the rate, in
// the order in which they arrived.
func TestQueueDrainsAtTheRate(t *testing.T) {
	const each = 100 * time.Millisecond
	trickle := func(gap time.Duration) (all []time.Duration) {
		for i := range 100 {
			all = append(all, time.Duration(i)*gap)
		}
		return all
	}
	random := rand.New(rand.NewPCG(3, 4))
	var anyhow []time.Duration
	for range 200 {
		anyhow = append(anyhow, time.Duration(random.Int64N(int64(15*time.Second))))
	}
	slices.Sort(anyhow)
	inputs := map[string][]time.Duration{
		"all at once":         make([]time.Duration, 200),
		"faster than it":      trickle(30 * time.Millisecond),
		"as fast as it":       trickle(each),
		"slower than it":      trickle(170 * time.Millisecond),
		"bursts":              append(make([]time.Duration, 30), slices.Repeat([]time.Duration{7 * time.Second, 7*time.Second + 1}, 20)...),
		"at any time":         anyhow,
		"just one nanosecond": {0, each - 1, each, 2*each - 1, 3*each + 1},
	}
	inputs["bursts"] = slices.Sorted(slices.Values(inputs["bursts"]))
	for name, input := range inputs {
		inBubble(t, name, func(t *testing.T) {
			q := NewQueue(New(10, time.Second).WithBurst(1000))
			begin := time.Now()
			out := make([]time.Duration, len(input))
			var over sync.WaitGroup
			for i, at := range input {
				time.Sleep(time.Until(begin.Add(at)))
				over.Go(func() {
					if err := q.Wait(t.Context()); err != nil {
						t.Error(err)
					}
					out[i] = time.Since(begin)
				})
				synctest.Wait()
			}
			over.Wait()
			next := time.Duration(0) // when the next may go out
			for i, at := range input {
				want := max(at, next)
				if out[i] != want {
					t.Fatalf("number %d came at %v and went at %v, want %v", i, at, out[i], want)
				}
				next = want + each
			}
			if q.Len() != 0 {
				t.Errorf("%d are left", q.Len())
			}
		})
	}
}

// If the time between two turns is not a whole number of nanoseconds, each turn is
// rounded up, by less than a nanosecond.
func TestQueueKeepsOddRates(t *testing.T) {
	for _, count := range []int64{3, 7, 999, 65537} {
		inBubble(t, fmt.Sprint(count), func(t *testing.T) {
			q := NewQueue(PerSecond(count))
			begin := time.Now()
			for i := range min(2*count, 3000) + 1 {
				if err := q.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				due := time.Duration((i*int64(time.Second) + count - 1) / count)
				if got := time.Since(begin); got < due || got > due+time.Duration(i) {
					t.Fatalf("number %d goes out after %v, due after %v", i, got, due)
				}
			}
		})
	}
}

func TestQueueRefusesWhenFull(t *testing.T) {
	for _, room := range []int64{1, 2, 10} {
		inBubble(t, fmt.Sprint(room), func(t *testing.T) {
			q := NewQueue(New(1, time.Second).WithBurst(room))
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err) // goes out at once
			}
			line := newWaitLine(t)
			var want []time.Duration
			for i := range room {
				if q.Len() != int(i) {
					t.Errorf("Len is %d with %d in the queue", q.Len(), i)
				}
				line.join(func() error { return q.Wait(t.Context()) })
				want = append(want, time.Duration(i+1)*time.Second)
			}
			for range 3 {
				if err := q.Wait(t.Context()); !errors.Is(err, ErrFull) {
					t.Errorf("the queue is full: %v", err)
				}
			}
			if q.Len() != int(room) {
				t.Errorf("Len is %d with %d in the queue", q.Len(), room)
			}
			time.Sleep(time.Second) // the first leaves
			synctest.Wait()
			line.join(func() error { return q.Wait(t.Context()) })
			if err := q.Wait(t.Context()); !errors.Is(err, ErrFull) {
				t.Errorf("the queue is full again: %v", err)
			}
			line.check(append(want, time.Duration(room+1)*time.Second)...)
		})
	}
}

// Of many goroutines that arrive at once, exactly as many enter the queue as it has
// room for.
func TestQueueAdmitsExactlyItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(New(1, time.Second).WithBurst(20))
		begin := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		full := 0
		inParallel(100, func(int) {
			err := q.Wait(t.Context())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				passed = append(passed, time.Since(begin))
			case errors.Is(err, ErrFull):
				full++
			default:
				t.Error(err)
			}
		})
		if len(passed) != 21 || full != 79 {
			t.Fatalf("%d passed, %d were refused, want 21 and 79", len(passed), full)
		}
		slices.Sort(passed)
		for i, at := range passed {
			if at != time.Duration(i)*time.Second {
				t.Errorf("number %d goes out after %v", i, at)
			}
		}
	})
}

// When a caller leaves the queue, the callers behind it move up, and there is room for
// another one.
func TestQueueMovesUp(t *testing.T) {
	for leaves := range 4 {
		inBubble(t, fmt.Sprint(leaves), func(t *testing.T) {
			q := NewQueue(New(1, time.Second).WithBurst(4))
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			line := newWaitLine(t)
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 4 {
				line.join(func() error {
					if i == leaves {
						return q.Wait(ctx)
					}
					return q.Wait(t.Context())
				})
			}
			time.Sleep(time.Second / 2)
			cancel()
			left := line.all[leaves]
			if !left.isOver() || !errors.Is(left.err, context.Canceled) {
				t.Fatalf("cancelled: %v", left.err)
			}
			if q.Len() != 3 {
				t.Errorf("Len is %d with 3 in the queue", q.Len())
			}
			line.all = slices.Delete(line.all, leaves, leaves+1)
			line.join(func() error { return q.Wait(t.Context()) })
			line.check(1*time.Second, 2*time.Second, 3*time.Second, 4*time.Second)
		})
	}
}

func TestQueueContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(New(1, 10*time.Second))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Wait(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
		begin := time.Now()
		if err := q.Wait(t.Context()); err != nil || time.Since(begin) != 0 {
			t.Errorf("what was cancelled took its turn: %v", err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		if err := q.Wait(soon); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 0 {
			t.Errorf("a deadline before its turn, after %v: %v", time.Since(begin), err)
		}
		later, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		if err := q.Wait(later); err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("a deadline after its turn, after %v: %v", time.Since(begin), err)
		}
	})
}

func TestQueueOfAnInvalidLimit(t *testing.T) {
	invalid := []Limit{
		{}, PerSecond(0), PerSecond(-1), New(1, 0), PerSecond(5).WithBurst(0), PerSecond(5).WithBurst(-3),
		PerSecond(5).Using(99), PerSecond(5).ResetAt(0, nil), PerSecond(5).Using(FixedWindow).WithBurst(7),
	}
	for _, l := range invalid {
		inBubble(t, fmt.Sprint(l.Validate()), func(t *testing.T) {
			q := NewQueue(l)
			for range 3 {
				if err := q.Wait(t.Context()); !errors.Is(err, ErrNever) {
					t.Errorf("Wait: %v", err)
				}
			}
			if q.Len() != 0 {
				t.Errorf("Len is %d", q.Len())
			}
		})
	}
}

// A queue spaces callers evenly, whatever algorithm its limit names.
func TestQueueOfEveryAlgorithm(t *testing.T) {
	for a := range algorithms {
		inBubble(t, a.String(), func(t *testing.T) {
			q := NewQueue(PerMinute(60).Using(a))
			begin := time.Now()
			for i := range 5 {
				if err := q.Wait(t.Context()); err != nil || time.Since(begin) != time.Duration(i)*time.Second {
					t.Errorf("number %d after %v: %v", i, time.Since(begin), err)
				}
			}
		})
	}
}
