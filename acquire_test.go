package ratelimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// waiting runs calls of Acquire in a bubble, and records when each returned.
type waiting struct {
	t       *testing.T
	rl      *RateLimiter
	start   time.Time
	mu      sync.Mutex
	at      map[string]time.Duration
	errs    map[string]error
	results map[string]*Reservation
}

func newWaiting(t *testing.T, quota ModelQuota) *waiting {
	t.Helper()
	return &waiting{t: t, rl: memLimiter(t, quota), start: time.Now(),
		at: map[string]time.Duration{}, errs: map[string]error{}, results: map[string]*Reservation{}}
}

// acquire starts a call, and returns when it waits or has returned.
func (w *waiting) acquire(ctx context.Context, name string, tokens int) {
	w.t.Helper()
	w.begin(name, func() (*Reservation, error) { return w.rl.Acquire(ctx, memModel, tokens) })
}

func (w *waiting) begin(name string, call func() (*Reservation, error)) {
	w.t.Helper()
	go func() {
		res, err := call()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at[name], w.errs[name], w.results[name] = time.Since(w.start), err, res
	}()
	synctest.Wait()
}

// sleep moves the clock to a time since the start of the test.
func (w *waiting) sleep(until time.Duration) {
	w.t.Helper()
	time.Sleep(until - time.Since(w.start))
	synctest.Wait()
}

// passes fails the test unless a call has passed at a time since the start.
func (w *waiting) passes(name string, at time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got, ok := w.at[name]; !ok || w.errs[name] != nil || got != at {
		w.t.Fatalf("%s has returned: %t, at %v, with %v; want it to pass at %v", name, ok, got, w.errs[name], at)
	}
}

// waits fails the test unless the calls still wait; fails does unless a call has returned an
// error.
func (w *waiting) waits(names ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if got, ok := w.at[name]; ok {
			w.t.Fatalf("%s has returned at %v with %v; want it to wait", name, got, w.errs[name])
		}
	}
}

func (w *waiting) fails(name string, at time.Duration, err error) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got, ok := w.at[name]; !ok || !errors.Is(w.errs[name], err) || got != at || w.results[name] != nil {
		w.t.Fatalf("%s has returned: %t, at %v, with %v; want %v at %v", name, ok, got, w.errs[name], err, at)
	}
}

func (w *waiting) result(name string) *Reservation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.results[name]
}

// nobody fails the test if a call still waits.
func (w *waiting) nobody() {
	w.t.Helper()
	memNobodyWaits(w.t, w.rl)
}

func memNobodyWaits(t *testing.T, rl *RateLimiter) {
	t.Helper()
	if n := rl.Waiting(memModel); n != 0 {
		t.Fatalf("%d wait; want nobody", n)
	}
}

// TestAcquireAtOnce: a call for which there is room does not wait.
func TestAcquireAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxRPM: 2, MaxTPM: 100, MaxInputTPM: 90, MaxOutputTPM: 90})
		w.acquire(t.Context(), "a", 60)
		w.passes("a", 0)
		w.begin("b", func() (*Reservation, error) {
			return w.rl.AcquireTokens(t.Context(), memModel, Tokens{Input: 30, Output: 10})
		})
		w.passes("b", 0)
		if s := w.rl.Stats(memModel); s.RPM != 2 || s.TPM != 100 || s.InputTPM != 90 || s.OutputTPM != 70 {
			t.Errorf("%+v", s)
		}
		w.result("a").Commit(1, 2)
		w.result("b").Cancel()
		if s := w.rl.Stats(memModel); s.RPM != 1 || s.TPM != 3 || s.InputTPM != 1 || s.OutputTPM != 2 {
			t.Errorf("%+v", s)
		}
		w.nobody()
	})
}

// TestAcquireWaitsExactly: for each limit, Acquire returns when the limit's window has passed,
// to the nanosecond.
func TestAcquireWaitsExactly(t *testing.T) {
	for _, tt := range []struct {
		name  string
		quota ModelQuota
		at    time.Duration
	}{
		{"RPM", ModelQuota{MaxRPM: 1}, time.Minute},
		{"TPM", ModelQuota{MaxTPM: 10}, time.Minute},
		{"RPD", ModelQuota{MaxRPD: 1}, 24 * time.Hour},
		{"calendar day", ModelQuota{MaxRPD: 1, DayResetsAt: "00:00 America/Los_Angeles"}, 8 * time.Hour},
		{"input", ModelQuota{MaxInputTPM: 10}, time.Minute},
		{"output", ModelQuota{MaxOutputTPM: 10}, time.Minute},
		{"TPD", ModelQuota{MaxTPD: 10}, 24 * time.Hour},
		{"a slot that nobody gives back", ModelQuota{MaxConcurrent: 1}, 10 * time.Minute},
		{"the longest of all", ModelQuota{MaxRPM: 1, MaxTPM: 10, MaxTPD: 15, MaxConcurrent: 1}, 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting(t, tt.quota)
				memTake(t, w.rl, 10)
				w.sleep(time.Second)
				w.acquire(t.Context(), "a", 10)
				w.sleep(tt.at - 1)
				w.waits("a")
				w.sleep(tt.at)
				w.passes("a", tt.at)
				if s := w.rl.Stats(memModel); s.RPM != 1 || s.TPM != 10 {
					t.Errorf("%+v; want one call of 10", s)
				}
				w.nobody()
			})
		})
	}
}

// TestWaitersWakeSooner: a waiting call passes as soon as a refund makes room for it.
func TestWaitersWakeSooner(t *testing.T) {
	quota := ModelQuota{MaxTPM: 100, MaxRPM: 2, MaxRPD: 2, MaxConcurrent: 2}
	for _, tt := range []struct {
		name  string
		free  func(rl *RateLimiter, reserved *Reservation)
		wakes bool
	}{
		{"Cancel", func(_ *RateLimiter, reserved *Reservation) { reserved.Cancel() }, true},
		{"Commit of less", func(_ *RateLimiter, reserved *Reservation) { reserved.Commit(10, 40) }, true},
		{"Commit of not less enough", func(_ *RateLimiter, reserved *Reservation) { reserved.Commit(11, 40) }, false},
		{"Commit of as much", func(_ *RateLimiter, reserved *Reservation) { reserved.Commit(50, 50) }, false},
		{"Commit of more", func(_ *RateLimiter, reserved *Reservation) { reserved.Commit(100, 50) }, false},
		{"Reset", func(rl *RateLimiter, _ *Reservation) { rl.Reset(memModel) }, true},
		{"Reset of another", func(rl *RateLimiter, _ *Reservation) { rl.Reset("other") }, false},
		{"a larger quota", func(rl *RateLimiter, _ *Reservation) {
			rl.SetQuota(memModel, ModelQuota{MaxTPM: 150, MaxRPM: 2, MaxRPD: 2, MaxConcurrent: 2})
		}, true},
		{"a quota that is not large enough", func(rl *RateLimiter, _ *Reservation) {
			rl.SetQuota(memModel, ModelQuota{MaxTPM: 149, MaxRPM: 2, MaxRPD: 2, MaxConcurrent: 2})
		}, false},
		{"no quota", func(rl *RateLimiter, _ *Reservation) { rl.SetQuota(memModel, ModelQuota{}) }, true},
		{"another's quota", func(rl *RateLimiter, _ *Reservation) { rl.SetQuota("other", ModelQuota{}) }, false},
		{"Load", func(rl *RateLimiter, _ *Reservation) {
			saved, err := NewWithConfig(Config{FilePath: rl.file, Quotas: map[string]ModelQuota{memModel: quota}})
			if err == nil {
				err = saved.Persist()
			}
			if err == nil {
				err = rl.Load()
			}
			if err != nil {
				panic(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting(t, quota)
				reserved := memTake(t, w.rl, 100)
				w.sleep(time.Second)
				w.acquire(t.Context(), "a", 50)
				w.sleep(10*time.Second + 1)
				w.waits("a")
				tt.free(w.rl, reserved)
				synctest.Wait()
				if !tt.wakes {
					w.waits("a")
					w.sleep(time.Minute)
					w.passes("a", time.Minute)
				} else {
					w.passes("a", 10*time.Second+1)
				}
				w.nobody()
			})
		})
	}
}

// TestNobodyOvertakes: while a call waits, TryAcquire denies, and says when the first waiting
// call passes.
func TestNobodyOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxTPM: 100, MaxRPM: 100})
		memTake(t, w.rl, 60)
		w.sleep(10 * time.Second)
		memTake(t, w.rl, 30)
		w.acquire(t.Context(), "large", 100) // passes at 70s
		w.sleep(20 * time.Second)
		for _, tokens := range []int{0, 1, 10, 11, 40, 50, 100} { // some of these would fit, now or before that
			d := memDenied(t, w.rl, tokens)
			if d.Code != DecisionTPMLimit || d.RetryAfter != 50*time.Second {
				t.Errorf("%d tokens: %s, %v; want %s, 50s", tokens, d.Code, d.RetryAfter, DecisionTPMLimit)
			}
			if w.rl.CanSend(memModel, tokens) {
				t.Errorf("%d tokens can be sent", tokens)
			}
		}
		if d := memDenied(t, w.rl, 101); d.RetryAfter != Never {
			t.Errorf("%+v; want never", d)
		}
		if _, d := w.rl.TryAcquireTokens(memModel, Tokens{Input: 1, Output: 1}); d.Allowed || d.RetryAfter != 50*time.Second {
			t.Errorf("%+v; want it denied for 50s", d)
		}
		if d := w.rl.Decide("other", 1); !d.Allowed {
			t.Errorf("another model: %+v", d)
		}
		w.sleep(70*time.Second - 1)
		memDenied(t, w.rl, 1)
		w.sleep(70 * time.Second)
		w.passes("large", 70*time.Second)
		memPassesIn(t, w.rl, 1, DecisionTPMLimit, time.Minute)
		memTake(t, w.rl, 1)
		w.nobody()
	})
}

// TestGuessWhileOthersWait: nobody knows when a call under way ends, whether or not calls
// wait. So a denial by a slot says to come back long before the slot's lease ends.
func TestGuessWhileOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxConcurrent: 1, MaxTPM: 100})
		reserved := memTake(t, w.rl, 60)
		alone := memDenied(t, w.rl, 1)
		w.acquire(t.Context(), "a", 1)
		if d := memDenied(t, w.rl, 1); d.Code != DecisionConcurrencyLimit || d.RetryAfter != alone.RetryAfter {
			t.Errorf("while another waits for a slot: %s, %v; want %s, %v", d.Code, d.RetryAfter, alone.Code, alone.RetryAfter)
		}
		w.acquire(t.Context(), "b", 100)
		reserved.Commit(60, 0)
		synctest.Wait()
		w.result("a").Commit(1, 0)
		synctest.Wait()
		if d := memDenied(t, w.rl, 1); d.Code != DecisionTPMLimit || d.RetryAfter != time.Minute {
			t.Errorf("while another waits for tokens: %s, %v; want %s, 1m", d.Code, d.RetryAfter, DecisionTPMLimit)
		}
		w.sleep(time.Minute)
		w.passes("b", time.Minute)
	})
}

// TestReasonBehindOthers: the decision on a call behind others says what they wait for.
func TestReasonBehindOthers(t *testing.T) {
	for by, want := range map[string]string{
		"max_concurrent": "others wait for a slot among the concurrent calls: try again in 1s",
		"max_rpm":        "others wait for requests a minute: try again in 7s",
	} {
		r := engine.Result{Behind: true, Ahead: fair.Ahead{By: by, Again: 7 * time.Second, Guess: by == "max_concurrent"}}
		var d Decision
		(&RateLimiter{}).fillDecision(&Call{}, &preparedCall{}, &r, &d)
		testkit.Equal(t, by, want, d.Reason())
	}
}

// TestNeverIsToldAtOnce: a call that asks for too much fails at once.
func TestNeverIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxTPM: 100, MaxInputTPM: 50, MaxTPD: 1000})
		never := func(when string) {
			t.Helper()
			w.acquire(t.Context(), when, 101)
			w.fails(when, time.Since(w.start), ErrNever)
			w.begin(when+" split", func() (*Reservation, error) {
				return w.rl.AcquireTokens(t.Context(), memModel, Tokens{Input: 51})
			})
			w.fails(when+" split", time.Since(w.start), ErrNever)
			w.begin(when+" capacity", func() (*Reservation, error) {
				return nil, w.rl.WaitForCapacity(t.Context(), memModel, 101)
			})
			w.fails(when+" capacity", time.Since(w.start), ErrNever)
		}
		never("first")
		memTake(t, w.rl, 100)
		never("used up")
		w.acquire(t.Context(), "a", 100)
		never("while another waits")
		w.sleep(time.Minute)
		w.passes("a", time.Minute)
		if s := w.rl.Stats(memModel); s.TPM != 100 || s.RPM != 1 || s.TPD != 200 {
			t.Errorf("%+v", s)
		}
		w.nobody()
	})
}

// TestSmallerQuotaWhileSomebodyWaits: after a quota was lowered, waiting calls that ask for
// more than it fail at once, whichever has the turn. The other calls go on.
func TestSmallerQuotaWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxTPM: 100})
		memTake(t, w.rl, 100)
		w.acquire(t.Context(), "large", 80)
		w.acquire(t.Context(), "small", 20)
		w.acquire(t.Context(), "larger", 90)
		w.sleep(time.Second)
		if err := w.rl.SetQuota(memModel, ModelQuota{MaxTPM: 50}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.fails("large", time.Second, ErrNever)
		w.fails("larger", time.Second, ErrNever)
		w.waits("small")
		w.sleep(time.Minute)
		w.passes("small", time.Minute)
		w.nobody()
	})
}

// TestOneTimer looks at the allocations: the first call of a line has a timer, and the others
// have none.
func TestOneTimer(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	defer func() { runtime.MemProfileRate = rate }()

	const many = 1000
	before := timersInUse()
	timers := make([]*time.Timer, many)
	for i := range timers {
		timers[i] = time.NewTimer(time.Hour)
	}
	if n := timersInUse() - before; n < many/2 {
		t.Fatalf("the profile shows %d of %d timers, so it could not show those of a line", n, many)
	}
	for _, timer := range timers {
		timer.Stop()
	}
	runtime.KeepAlive(timers)

	rl := memLimiter(t, ModelQuota{MaxRPM: 1})
	memTake(t, rl, 1)
	ctx, cancel := context.WithCancel(t.Context())
	before = timersInUse()
	var group sync.WaitGroup
	for range many {
		group.Go(func() { rl.Acquire(ctx, memModel, 1) })
	}
	for rl.Waiting(memModel) < many {
		runtime.Gosched()
	}
	if n := timersInUse() - before; n > 10 {
		t.Errorf("%d timers for %d who wait; want one", n, many)
	}
	cancel()
	group.Wait()
	memNobodyWaits(t, rl)
}

// timersInUse returns how many timers the heap profile shows.
func timersInUse() (n int64) {
	runtime.GC()
	runtime.GC() // the profile shows what the first collection found only after the second
	records := make([]runtime.MemProfileRecord, 100_000)
	found, ok := runtime.MemProfile(records, true)
	if !ok {
		return 0
	}
	for _, r := range records[:found] {
		var stack bytes.Buffer
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			stack.WriteString(f.Function + " ")
		}
		if s := stack.String(); strings.Contains(s, "time.NewTimer ") || strings.Contains(s, "time.newTimer ") || strings.Contains(s, "time.AfterFunc ") {
			n += r.InUseObjects()
		}
	}
	return n
}

// TestWaitForCapacity: WaitForCapacity returns in turn, when there is capacity, and takes
// nothing.
func TestWaitForCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxTPM: 100, MaxConcurrent: 1})
		capacity := func(name string, tokens int) {
			w.begin(name, func() (*Reservation, error) { return nil, w.rl.WaitForCapacity(t.Context(), memModel, tokens) })
		}
		capacity("at once", 100)
		w.passes("at once", 0)
		reserved := memTake(t, w.rl, 100)
		capacity("a", 100)
		capacity("b", 100)
		w.acquire(t.Context(), "c", 100)
		capacity("d", 1)
		w.sleep(time.Second)
		reserved.Commit(1, 0)
		synctest.Wait()
		w.waits("a", "b", "c", "d")
		w.sleep(time.Minute)
		w.passes("a", time.Minute)
		w.passes("b", time.Minute)
		w.passes("c", time.Minute)
		w.waits("d")
		w.result("c").Commit(0, 0)
		synctest.Wait()
		w.passes("d", time.Minute)
		if s := w.rl.Stats(memModel); s.RPM != 1 || s.TPM != 0 || s.Concurrent != 0 {
			t.Errorf("%+v; want one call, of nothing", s)
		}
		w.nobody()
	})
}

// TestSlotsAreNotPolled: a call that waits for a slot is woken when one is free, and does not
// ask the store meanwhile.
func TestSlotsAreNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxConcurrent: 1})
		reserved := memTake(t, w.rl, 1)
		var readings atomic.Int64
		memReads(w.rl, func() { readings.Add(1) })
		w.acquire(t.Context(), "a", 1)
		readings.Store(0)
		w.sleep(9 * time.Minute)
		if n := readings.Load(); n != 0 {
			t.Errorf("the clock was read %d times while nothing was given back", n)
		}
		reserved.Cancel()
		synctest.Wait()
		w.passes("a", 9*time.Minute)
	})
}

// TestTwoSlotsAtOnce: two free slots let two calls pass, although they wake only one.
func TestTwoSlotsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxConcurrent: 3})
		reserved := []*Reservation{memTake(t, w.rl, 1), memTake(t, w.rl, 1), memTake(t, w.rl, 1)}
		for i := range 4 {
			w.acquire(t.Context(), fmt.Sprint(i), 1)
		}
		w.sleep(time.Second)
		for _, res := range reserved {
			res.Commit(1, 1)
		}
		synctest.Wait()
		for i := range 3 {
			w.passes(fmt.Sprint(i), time.Second)
		}
		w.waits("3")
		w.result("1").Cancel()
		synctest.Wait()
		w.passes("3", time.Second)
		w.nobody()
	})
}

// TestModelsWaitApart: a call that waits for one model blocks no call of another model.
func TestModelsWaitApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting(t, ModelQuota{MaxRPM: 1})
		if err := w.rl.SetQuota("other", ModelQuota{MaxRPM: 1}); err != nil {
			t.Fatal(err)
		}
		memTake(t, w.rl, 1)
		w.acquire(t.Context(), "a", 1)
		w.begin("b", func() (*Reservation, error) { return w.rl.Acquire(t.Context(), "other", 1) })
		w.passes("b", 0)
		w.sleep(time.Minute)
		w.passes("a", time.Minute)
	})
}
