package rate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitTakesAsLongAsItMust(t *testing.T) {
	outside := NewLimiter(10, 2) // made outside the bubble, where time differs
	for name, make := range map[string]func() *Limiter{
		"made inside":  func() *Limiter { return NewLimiter(10, 2) },
		"made outside": func() *Limiter { return outside },
	} {
		synctest.Test(t, func(t *testing.T) {
			lim, began := make(), time.Now()
			for i, want := range []time.Duration{0, 0, 100 * ms, 200 * ms, 300 * ms} {
				if err := lim.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(began); got != want {
					t.Errorf("%s: event %d after %v, want %v", name, i, got, want)
				}
			}
			if lim.Allow() {
				t.Errorf("%s: an event was admitted from an empty bucket", name)
			}
			time.Sleep(time.Second)
			if !lim.Allow() || lim.Tokens() != 1 {
				t.Errorf("%s: the bucket was not refilled", name)
			}
			began = time.Now()
			if err := lim.WaitN(t.Context(), 2); err != nil || time.Since(began) != 100*ms {
				t.Errorf("%s: two tokens after %v: %v", name, time.Since(began), err)
			}
		})
	}
	// Back outside, decades later.
	if !outside.AllowN(time.Now(), 2) {
		t.Error("the bucket was not refilled outside")
	}
}

func TestWaitersAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 64
		lim := NewLimiter(1000, 1)
		lim.Allow()
		began := time.Now()
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range waiters {
			wg.Go(func() {
				if err := lim.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				served = append(served, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		if got := time.Since(began); got != waiters*ms {
			t.Errorf("%d events took %v", waiters, got)
		}
		for i, waiter := range served {
			if i != waiter {
				t.Fatalf("served in the order %v", served)
			}
		}
	})
}

func TestWaitErrors(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	const tooLate = "rate: Wait(n=1) would exceed context deadline: context deadline exceeded"
	cases := []struct {
		name    string
		limit   Limit
		burst   int
		timeout time.Duration // until which there are no tokens, if it is set
		ctx     context.Context
		n       int
		text    string
		is      error
	}{
		{"more than the burst", 10, 3, 0, nil, 4, "rate: Wait(n=4) exceeds limiter's burst 3", nil},
		{"more than the burst, and canceled", 10, 3, 0, canceled, 4, "rate: Wait(n=4) exceeds limiter's burst 3", nil},
		{"no burst", 10, 0, 0, nil, 1, "rate: Wait(n=1) exceeds limiter's burst 0", nil},
		{"canceled before", 10, 3, 0, canceled, 1, "context canceled", context.Canceled},
		{"canceled before, without limit", Inf, 0, 0, canceled, 1, "context canceled", context.Canceled},
		{"a deadline too near", 1, 1, 999 * ms, nil, 1, tooLate, context.DeadlineExceeded},
		{"a deadline, and no refill", 0, 1, time.Hour, nil, 1, tooLate, context.DeadlineExceeded},
		{"a deadline that has passed unnoticed", 1, 5, 0, late{t.Context()}, 1, tooLate, context.DeadlineExceeded},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, ctx := NewLimiter(c.limit, c.burst), c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				if c.timeout > 0 {
					lim.Allow()
					limited, cancel := context.WithTimeout(ctx, c.timeout)
					defer cancel()
					ctx = limited
				}
				began, before := time.Now(), lim.Tokens()
				err := lim.WaitN(ctx, c.n)
				if err == nil || err.Error() != c.text || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("error %q, want %q", err, c.text)
				}
				if got := time.Since(began); got != 0 {
					t.Errorf("it took %v", got)
				}
				if got := lim.Tokens(); got != before {
					t.Errorf("%v tokens are left of %v", got, before)
				}
			})
		})
	}
	if err := new(Limiter).Wait(t.Context()); err == nil {
		t.Error("the zero limiter admitted an event")
	}
}

// late is a context whose deadline has passed, but which has not ended yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-1), true }

// The burst may shrink between the check and the reservation.
func TestWaitOvertakenBySetBurst(t *testing.T) {
	lim := NewLimiter(1, 5)
	err := lim.WaitN(meddler{t.Context(), func() { lim.SetBurst(1) }}, 5)
	if want := "rate: Wait(n=5) exceeds limiter's burst 1"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// A meddler runs a function when it is asked for its deadline.
type meddler struct {
	context.Context
	meddle func()
}

func (m meddler) Deadline() (time.Time, bool) {
	m.meddle()
	return time.Time{}, false
}

func TestWaitUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := NewLimiter(1, 1)
		lim.Allow()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := lim.Wait(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitCanceled(t *testing.T) {
	for name, end := range map[string]struct {
		in func(context.Context) (context.Context, context.CancelFunc)
		is error
	}{
		"canceled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(100*ms, cancel)
			return ctx, cancel
		}, context.Canceled},
		// The deadline is not the context's own, so it is not known before.
		"timed out": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithTimeout(ctx, 100*ms)
			return unknown{ctx}, cancel
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := NewLimiter(10, 3)
				if err := lim.WaitN(t.Context(), 2); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := end.in(t.Context())
				defer cancel()
				began := time.Now()
				if err := lim.WaitN(ctx, 3); !errors.Is(err, end.is) || time.Since(began) != 100*ms {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if got := lim.Tokens(); got != 2 {
					t.Errorf("%v tokens, want the one that was left and the one that came", got)
				}
			})
		})
	}
}

type unknown struct{ context.Context }

func (unknown) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestWaitWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, began := NewLimiter(Inf, 0), time.Now()
		if err := lim.WaitN(t.Context(), 1000); err != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestReserveNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := NewLimiter(10, 1)
		if r := lim.Reserve(); !r.OK() || r.Delay() != 0 {
			t.Errorf("OK %v, delay %v", r.OK(), r.Delay())
		}
		r := lim.Reserve()
		if r.Delay() != 100*ms {
			t.Errorf("delay %v, want 100ms", r.Delay())
		}
		time.Sleep(50 * ms)
		if r.Delay() != 50*ms {
			t.Errorf("delay %v, want 50ms", r.Delay())
		}
		r.Cancel()
		if got := lim.Tokens(); got != 0.5 {
			t.Errorf("%v tokens, want 0.5", got)
		}
		lim.SetLimit(100)
		time.Sleep(5 * ms)
		if !lim.Allow() || lim.Allow() {
			t.Error("the new limit does not hold")
		}
		lim.SetBurst(5)
		time.Sleep(time.Second)
		if got := lim.Tokens(); got != 5 {
			t.Errorf("%v tokens, want the new burst", got)
		}
	})
}
