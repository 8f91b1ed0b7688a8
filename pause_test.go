package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

const isPaused = ratelimit.DecisionPaused

// pausable has quotas of every kind for models that a provider may pause. The model unknown
// has no quota.
var pausable = quotas{"m": {MaxRPM: 100, MaxTPM: 1000}, "free": {}, "auto": {Auto: true}}

var pausableCodes = map[string]ratelimit.DecisionCode{
	"m": ok, "free": ratelimit.DecisionUnlimited, "auto": ratelimit.DecisionUnlimited, "unknown": ratelimit.DecisionUnknownModel,
}

// refused returns the limits of a provider that throttles a call for a while.
func refused(pause time.Duration) llm.Limits {
	return llm.Limits{Cause: llm.RateLimited, Pause: pause}
}

// refuse passes such limits of a model's provider to Heed.
func refuse(t testing.TB, rl *ratelimit.RateLimiter, model string, pause time.Duration) {
	rl.Heed(t.Context(), model, refused(pause))
}

// wantPaused fails the test unless every method that does not wait says that a model is paused
// for so long, and charges nothing.
func wantPaused(t testing.TB, rl *ratelimit.RateLimiter, model string, left time.Duration) {
	t.Helper()
	before := rl.Stats(model)
	said := map[string]ratelimit.Decision{"Decide": rl.Decide(model, 5)}
	_, said["TryAcquire"] = rl.TryAcquire(model, 5)
	_, said["TryAcquireTokens"] = rl.TryAcquireTokens(model, ratelimit.Tokens{Input: 2, Output: 3})
	call := projectCall{Model: model, Estimated: 5}
	_, said["TryAcquireCall"] = tryCall(t, rl, call)
	call.Project, call.Limits = "p", perMinute(50, 500)
	_, said["TryAcquireCall of a project"] = tryCall(t, rl, call)
	for door, d := range said {
		if d.Allowed || d.Code != isPaused || d.Limit != "paused" || d.RetryAfter != left || d.Stats != before || !strings.Contains(d.Reason(), "provider") {
			t.Errorf("%s(%s): %+v; want it paused for %v", door, model, d, left)
		}
	}
	if rl.CanSend(model, 5) {
		t.Errorf("CanSend(%s) while it is paused", model)
	}
	if after := rl.Stats(model); after != before {
		t.Errorf("denials turned %+v into %+v", before, after)
	}
	if got := remaining(t, rl, "p", call.Limits); !slices.Equal(got, []int64{50, 500}) {
		t.Errorf("the project has %v left", got)
	}
}

// A paused model takes no calls until the pause ends, to the nanosecond. Other models do.
func TestPause(t *testing.T) {
	for model, code := range pausableCodes {
		t.Run(model, func(t *testing.T) {
			everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
				refuse(t, rl, model, 10*time.Second)
				wantPaused(t, rl, model, 10*time.Second)
				for other, code := range pausableCodes {
					if d := rl.Decide(other, 5); other != model && d.Code != code {
						t.Errorf("%s: %+v", other, d)
					}
				}
				time.Sleep(10*time.Second - 1)
				wantPaused(t, rl, model, 1)
				time.Sleep(time.Nanosecond)
				if d := rl.Decide(model, 5); !d.Allowed || d.Code != code || d.RetryAfter != 0 {
					t.Errorf("once it has ended: %+v", d)
				}
				res, d := rl.TryAcquire(model, 5)
				if d.Code != code || d.Stats.RPM > 1 {
					t.Errorf("once it has ended: %+v", d)
				}
				res.Commit(2, 3)
				if s := rl.Stats(model); s.RPM != 1 || s.TPM != 5 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A limit that denies for longer than the pause is named in the decision, and so is one that
// can never admit the call.
func TestPauseAndQuota(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 2, MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		mustTake(t, rl, 60)
		refuse(t, rl, "m", 10*time.Second)
		for _, step := range []struct {
			tokens int
			code   ratelimit.DecisionCode
			retry  time.Duration
		}{{40, isPaused, 10 * time.Second}, {41, overTPM, time.Minute}, {101, overTPM, ratelimit.Never}} {
			_, d := rl.TryAcquire("m", step.tokens)
			if d.Code != step.code || d.RetryAfter != step.retry || d != rl.Decide("m", step.tokens) {
				t.Errorf("%d tokens: %+v; want %s, in %v", step.tokens, d, step.code, step.retry)
			}
		}
		if _, err := rl.Acquire(t.Context(), "m", 101); !errors.Is(err, ratelimit.ErrNever) {
			t.Errorf("%v; want %v", err, ratelimit.ErrNever)
		}
		project := projectCall{Model: "m", Project: "p", Limits: perMinute(0, 10), Estimated: 20}
		if _, d := tryCall(t, rl, project); d.Code != ratelimit.DecisionProjectLimit || d.RetryAfter != ratelimit.Never {
			t.Errorf("more than the project may use: %+v", d)
		}
		refuse(t, rl, "m", 2*time.Minute)
		if _, d := rl.TryAcquire("m", 41); d.RetryAfter != 2*time.Minute {
			t.Errorf("%+v; want it denied for as long as the pause", d)
		}
	})
}

// pausedLine runs calls that wait, and records when they have passed.
type pausedLine struct {
	t     *testing.T
	start time.Time
	mu    sync.Mutex
	said  []string
}

func newPausedLine(t *testing.T) *pausedLine { return &pausedLine{t: t, start: time.Now()} }

// wait starts a call, and returns when it waits or has returned.
func (l *pausedLine) wait(name string, begin func() error) {
	go func() {
		err := begin()
		l.mu.Lock()
		defer l.mu.Unlock()
		text := fmt.Sprintf("%s at %v", name, time.Since(l.start))
		if err != nil {
			text += ": " + err.Error()
		}
		l.said = append(l.said, text)
	}()
	synctest.Wait()
}

func (l *pausedLine) acquire(rl *ratelimit.RateLimiter, model, name string) {
	l.wait(name, func() error {
		_, err := rl.Acquire(l.t.Context(), model, 5)
		return err
	})
}

// want fails the test unless exactly these calls have returned. Calls that pass at the same
// time may be recorded in any order.
func (l *pausedLine) want(said ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.said)
	slices.Sort(said)
	if !slices.Equal(l.said, said) {
		l.t.Errorf("after %v: %q; want %q", time.Since(l.start), l.said, said)
	}
}

// Every method that waits waits for the end of the pause, or says that it is too long.
func TestPauseAndMaxWait(t *testing.T) {
	for model, code := range pausableCodes {
		for name, limits := range map[string]func() *project.Limit{"": nil, "p": perMinute(50, 500)} {
			t.Run(model+"/"+name, func(t *testing.T) {
				everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
					refuse(t, rl, model, 10*time.Second)
					call := projectCall{Model: model, Estimated: 5, Project: name, Limits: limits, MaxWait: 10 * time.Second}
					start := time.Now()
					res, d, err := acquireCall(rl, t.Context(), call)
					if res != nil || !errors.Is(err, context.DeadlineExceeded) || d.Code != isPaused || d.RetryAfter != 10*time.Second || time.Since(start) != 0 {
						t.Errorf("it may wait for 10s: %v, %+v, %v after %v", res, d, err, time.Since(start))
					}
					call.MaxWait++
					res, d, err = acquireCall(rl, t.Context(), call)
					if err != nil || time.Since(start) != 10*time.Second || d.Code != code && d.Code != ok {
						t.Fatalf("it may wait for longer: %+v, %v after %v", d, err, time.Since(start))
					}
					res.Commit(20, 30)
					if s := rl.Stats(model); s.RPM != 1 || s.TPM != 50 {
						t.Errorf("%+v", s)
					}
					if limits != nil {
						wantLeft(t, rl, call, 1, 50, 49, 450)
					}
					refuse(t, rl, model, 10*time.Second)
					if err := rl.WaitForCapacity(t.Context(), model, 5); err != nil || time.Since(start) != 20*time.Second {
						t.Errorf("WaitForCapacity: %v after %v", err, time.Since(start))
					}
					refuse(t, rl, model, 10*time.Second)
					if _, err := rl.AcquireTokens(t.Context(), model, ratelimit.Tokens{Input: 1}); err != nil || time.Since(start) != 30*time.Second {
						t.Errorf("AcquireTokens: %v after %v", err, time.Since(start))
					}
					refuse(t, rl, model, 10*time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
					defer cancel()
					if _, err := rl.Acquire(ctx, model, 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
						t.Errorf("a pause that is longer than the deadline: %v after %v", err, time.Since(start))
					}
				})
			})
		}
	}
}

// A longer pause extends a pause, and a shorter one does not shorten it.
func TestPauseExtends(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		l := newPausedLine(t)
		refuse(t, rl, "m", 10*time.Second)
		l.acquire(rl, "m", "0")
		for _, step := range []struct{ wait, pause, left time.Duration }{
			{0, 9 * time.Second, 10 * time.Second},
			{0, 10*time.Second + 1, 10*time.Second + 1},
			{1, 10 * time.Second, 10 * time.Second},
			{time.Second, time.Nanosecond, 9 * time.Second},
			{0, 0, 9 * time.Second},
			{0, -time.Second, 9 * time.Second},
			{5 * time.Second, time.Minute, time.Minute},
			{time.Minute - 1, 1, 1},
			{0, 2, 2},
		} {
			time.Sleep(step.wait)
			refuse(t, rl, "m", step.pause)
			if d := rl.Decide("m", 1); d.Code != isPaused || d.RetryAfter != step.left {
				t.Errorf("after %v and a pause of %v: %+v; want %v", time.Since(l.start), step.pause, d, step.left)
			}
		}
		time.Sleep(time.Nanosecond)
		l.want()
		time.Sleep(time.Nanosecond)
		l.want(fmt.Sprintf("0 at %v", 66*time.Second+2))
	})
}

// Whatever a provider says, no pause is longer than the bound.
func TestPauseIsBounded(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		for _, pause := range []time.Duration{5*time.Minute + 1, time.Hour, day + 1, 1<<63 - 1} {
			refuse(t, rl, "m", pause)
			if d := rl.Decide("m", 1); d.Code != isPaused || d.RetryAfter != ratelimit.DefaultMaxPause {
				t.Errorf("a pause of %v: %+v", pause, d)
			}
		}
		for _, pause := range []time.Duration{0, -1, -1 << 63} {
			refuse(t, rl, "free", pause)
			if d := rl.Decide("free", 1); !d.Allowed {
				t.Errorf("a pause of %v: %+v", pause, d)
			}
		}
		rl.Heed(t.Context(), "free", llm.Limits{Pause: time.Minute})
		if d := rl.Decide("free", 1); !d.Allowed {
			t.Errorf("a pause of a call that was not refused: %+v", d)
		}
	})
}

// Reset ends a pause, and the calls that wait for it go on, whatever else was asked meanwhile.
func TestResetEndsPause(t *testing.T) {
	for model, code := range pausableCodes {
		t.Run(model, func(t *testing.T) {
			everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
				refuse(t, rl, model, time.Hour)
				l := newPausedLine(t)
				for i := range 3 {
					l.acquire(rl, model, fmt.Sprint(i))
				}
				time.Sleep(time.Second)
				rl.AllStats()
				if n := rl.Waiting(model); n != 3 {
					t.Errorf("%d wait; want 3", n)
				}
				rl.Reset("other")
				l.want()
				rl.Reset(model)
				l.want("0 at 1s", "1 at 1s", "2 at 1s")
				if d := rl.Decide(model, 1); !d.Allowed || d.Code != code {
					t.Errorf("%+v", d)
				}
				rl.Reset(model)
				refuse(t, rl, model, time.Minute)
				wantPaused(t, rl, model, time.Minute)
			})
		})
	}
}

// A call that waits for its project when its model is paused blocks no other models of the
// project, and goes on when the pause is over.
func TestPauseOfWhoWaitsForItsProject(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		call := projectCall{Model: "unknown", Project: "p", Limits: perMinute(2, 0)}
		for range 2 {
			tryCall(t, rl, call)
		}
		l := newPausedLine(t)
		for _, model := range []string{"unknown", "free"} {
			call.Model = model
			l.wait(model, func() error {
				_, _, err := acquireCall(rl, t.Context(), call)
				return err
			})
		}
		time.Sleep(30 * time.Second)
		refuse(t, rl, "unknown", time.Hour)
		time.Sleep(30 * time.Second)
		l.want("free at 1m0s")
		time.Sleep(10 * time.Second)
		rl.Reset("unknown")
		l.want("free at 1m0s", "unknown at 1m10s")
	})
}

// A name that no model can have is not paused.
func TestPauseOfInvalidNames(t *testing.T) {
	observed(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		for _, name := range []string{"", "a\nb", "\x00", "\xff", strings.Repeat("x", 513)} {
			refuse(t, rl, name, time.Hour)
			d.none(t, fmt.Sprintf("%.20q is refused", name))
			if said := rl.Decide(name, 1); !said.Allowed {
				t.Errorf("%.20q: %+v", name, said)
			}
		}
	})
}

// However many goroutines report a pause at a time, a model is paused for the longest, and no
// call passes once the first was reported.
func TestPauseTogether(t *testing.T) {
	everyLedger(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter) {
		refuse(t, rl, "m", time.Second)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 50 {
					refuse(t, rl, "m", time.Duration(i*50+k)*time.Second/2)
					refuse(t, rl, fmt.Sprint(k), time.Minute)
					if _, d := rl.TryAcquire("m", 1); d.Code != isPaused {
						t.Errorf("%+v", d)
					}
					rl.Reset(fmt.Sprint(k))
				}
			})
		}
		wg.Wait()
		if d := rl.Decide("m", 1); d.RetryAfter != 399*time.Second/2 {
			t.Errorf("%+v", d)
		}
	})
}

// A pause belongs to one limiter, also where processes on one machine share a file.
func TestPauseIsNotShared(t *testing.T) {
	memory := store.NewMemory()
	path := filepath.Join(t.TempDir(), "limits.db")
	for name, open := range map[string]func() *ratelimit.RateLimiter{
		"store":  func() *ratelimit.RateLimiter { return onStore(t, memory, pausable) },
		"sqlite": func() *ratelimit.RateLimiter { return openFile(t, path, pausable) },
	} {
		a, b := open(), open()
		refuse(t, a, "m", time.Hour)
		if d := a.Decide("m", 1); d.Code != isPaused {
			t.Errorf("%s: %+v", name, d)
		}
		if err := errors.Join(a.Persist(), b.Load()); name == "sqlite" && err != nil {
			t.Error(err)
		}
		for _, rl := range []*ratelimit.RateLimiter{b, open()} {
			if d := rl.Decide("m", 1); !d.Allowed {
				t.Errorf("%s: another: %+v", name, d)
			}
		}
	}
}

// On Redis, a pause of one limiter holds for all, and a Reset of one ends it for all.
func TestRedisPause(t *testing.T) {
	url := redistest.New(t).URL()
	a, b := onRedis(t, url, pausable), onRedis(t, url, pausable)
	denies := func(rl *ratelimit.RateLimiter, model string) bool {
		d := rl.Decide(model, 1)
		return d.Code == isPaused && d.RetryAfter > 4*time.Minute && d.RetryAfter <= 5*time.Minute
	}
	for _, model := range []string{"m", "free", "auto"} {
		refuse(t, a, model, 5*time.Minute)
		testkit.Eventually(t, model+" is paused", func() bool { return denies(b, model) })
	}
	refuse(t, a, "unknown", 5*time.Minute)
	late := onRedis(t, url, pausable)
	for _, model := range []string{"m", "free", "auto"} {
		if !denies(a, model) || !denies(late, model) {
			t.Errorf("%s: %+v, and later %+v", model, a.Decide(model, 1), late.Decide(model, 1))
		}
	}
	if d := late.Decide("unknown", 1); !d.Allowed || !denies(a, "unknown") {
		t.Errorf("a model without a quota: %+v", d)
	}
	passed := make(chan error)
	for _, rl := range []*ratelimit.RateLimiter{a, b, late} {
		go func() {
			_, err := rl.Acquire(t.Context(), "m", 1)
			passed <- err
		}()
		testkit.Eventually(t, "it waits", func() bool { return rl.Waiting("m") == 1 })
	}
	b.Reset("m")
	for range 3 {
		select {
		case err := <-passed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("somebody waits for a pause that was ended")
		}
	}
	for _, rl := range []*ratelimit.RateLimiter{a, b, late, onRedis(t, url, pausable)} {
		if d := rl.Decide("m", 1); !d.Allowed {
			t.Errorf("once it was ended: %+v", d)
		}
		if !denies(rl, "free") {
			t.Errorf("another model: %+v", rl.Decide("free", 1))
		}
	}
	refuse(t, late, "m", 5*time.Minute)
	testkit.Eventually(t, "it is paused again", func() bool { return denies(a, "m") && denies(b, "m") })
	if err := errors.Join(a.Persist(), b.Persist(), late.Persist()); err != nil {
		t.Error(err)
	}
}

// A pause that could not be written still holds for the limiter that was asked to pause, whatever
// the store had before.
func TestRedisPauseWhileLost(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	a := onRedisWith(t, ratelimit.Config{FilePath: proxy.URL(), Quotas: pausable})
	b := onRedis(t, server.URL(), pausable)
	refuse(t, a, "m", time.Hour)
	testkit.Eventually(t, "b has heard it", func() bool { return b.Decide("m", 1).Code == isPaused })
	a.Reset("m")
	testkit.Eventually(t, "b has heard that it has ended", func() bool { return b.Decide("m", 1).Allowed })
	proxy.Cut()
	refuse(t, a, "m", time.Hour)
	proxy.Heal()
	mustSetQuota(t, b, "n", ratelimit.ModelQuota{MaxRPM: 1})
	has(t, a, "n", ratelimit.ModelQuota{MaxRPM: 1})
	testkit.Eventually(t, "Redis is back", func() bool { return a.Decide("m", 1).Code != ratelimit.DecisionStoreLost })
	if d := a.Decide("m", 1); d.Code != isPaused {
		t.Errorf("%+v; want it paused", d)
	}
}

// An invalid pause in the store is reported as an error, and pauses nothing.
func TestRedisPauseNonsense(t *testing.T) {
	server := redistest.New(t)
	rl := onRedis(t, server.URL(), pausable)
	for _, text := range []string{"soon", `{"until_ns":-1}`, `{"until_ns":9223372036854775808}`, `{"until":5}`, "[]"} {
		if _, err := server.Do("HSET", "ratelimit:settings", "pause/m", text); err != nil {
			t.Fatal(err)
		}
		mustLoad(t, rl)
		if d := rl.Decide("m", 1); !d.Allowed {
			t.Errorf("%s: %+v", text, d)
		}
		if err := rl.Persist(); err == nil || !strings.Contains(err.Error(), "pause/m") {
			t.Errorf("%s: Persist says %v", text, err)
		}
	}
	for _, text := range []string{"null", `{"until_ns":0}`, `{"until_ns":1}`} {
		if _, err := server.Do("HSET", "ratelimit:settings", "pause/m", text); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rl.Load(), rl.Persist()); err != nil || !rl.Decide("m", 1).Allowed {
			t.Errorf("%s: %v, %+v", text, err, rl.Decide("m", 1))
		}
	}
	if _, err := server.Do("HSET", "ratelimit:settings", "pause/m", `{"until_ns":9223372036854775807}`); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, rl)
	if d := rl.Decide("m", 1); d.Code != isPaused || d.RetryAfter > ratelimit.DefaultMaxPause {
		t.Errorf("until a year far away: %+v; want %v", d, ratelimit.DefaultMaxPause)
	}
}

// Each throttled call is observed once. A call that a pause denies is observed as any other
// denial.
func TestObserverOfPaused(t *testing.T) {
	observed(t, pausable, func(t *testing.T, rl *ratelimit.RateLimiter, d *diary) {
		told := func(model string, limited bool, pause time.Duration, cause llm.Cause) event.Event {
			return eventOf(event.Paused, func(e *event.Event) {
				e.Model, e.Limited, e.RetryAfter, e.Cause, e.Began = model, limited, pause, cause, true
			})
		}
		resumed := func(after time.Duration) event.Event {
			return eventOf(event.Resumed, func(e *event.Event) { e.Waited, e.Cause = after, llm.RateLimited })
		}
		for i, cause := range []llm.Cause{llm.RateLimited, llm.DayLimited, llm.SpendCap, llm.Overloaded} {
			rl.Heed(t.Context(), "free", llm.Limits{Cause: cause, Pause: time.Minute})
			want := told("free", true, time.Minute, cause)
			want.Began = i == 0
			d.want(t, string(cause), want, nil)
		}
		refuse(t, rl, "unknown", time.Second)
		d.want(t, "a model without a quota", told("unknown", false, time.Second, llm.RateLimited), nil)
		refuse(t, rl, "auto", 48*time.Hour)
		d.want(t, "for two days", told("auto", true, ratelimit.DefaultMaxPause, llm.RateLimited), nil)
		rl.Heed(t.Context(), "m", llm.Limits{Windows: []llm.Window{leaves(llm.Requests, time.Minute, 3, time.Minute)}, Cause: llm.RateLimited, Pause: 10 * time.Second})
		list := d.Since()
		lower := eventOf(event.Lowered, func(e *event.Event) { e.Limit, e.Said, e.RetryAfter = "max_rpm", 3, time.Minute })
		if len(list) != 2 || list[0] != lower || list[1] != told("m", true, 10*time.Second, llm.RateLimited) {
			t.Errorf("refused, and lowered: %+v", list)
		}

		denial := func(kind event.Kind) event.Event {
			return eventOf(kind, func(e *event.Event) { e.Limit, e.RetryAfter, e.Estimated = "paused", 10*time.Second, 5 })
		}
		rl.TryAcquire("m", 5)
		d.want(t, "TryAcquire", denial(event.Denied), nil)
		acquireCall(rl, t.Context(), projectCall{Model: "m", Estimated: 5, MaxWait: time.Second})
		d.want(t, "AcquireCall", denial(event.Denied), context.DeadlineExceeded)
		rl.Acquire(t.Context(), "m", 5)
		admitted := eventOf(event.Admitted, func(e *event.Event) { e.Waited, e.Estimated = 10*time.Second, 5 })
		if list := d.Since(); !slices.Equal(list, []event.Event{resumed(10 * time.Second), admitted}) {
			t.Errorf("Acquire: %+v", list)
		}
		refuse(t, rl, "m", time.Hour)
		d.Since()
		time.Sleep(20 * time.Second)
		rl.Reset("m")
		d.want(t, "Reset", resumed(20*time.Second), nil)
		rl.Reset("m")
		d.none(t, "Reset of what is not paused")
	})
}
