package ratelimit

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		(&RateLimiter{}).fillDecision(&Call{}, nil, &r, &d)
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
