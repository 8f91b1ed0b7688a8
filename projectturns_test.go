package ratelimit_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// plenty is a quota that denies nothing in these tests.
var plenty = ratelimit.ModelQuota{MaxRPM: 1 << 53, MaxTPM: 1 << 53}

// another is a store on this machine without the fast paths for [store.Memory].
type another struct{ *store.Memory }

// withProjects gives a limiter limits of projects.
func withProjects(t testing.TB, rl *ratelimit.RateLimiter, cfg project.Config) *project.Limiter {
	t.Helper()
	projects, err := rl.NewProjects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return projects
}

// turns runs calls of AcquireCall in a bubble, and records when each has returned.
type turns struct {
	*ratelimit.RateLimiter
	projects *project.Limiter
	start    time.Time
	came     []string // the names of all calls, in order

	mu       sync.Mutex
	at       map[string]time.Duration
	told     map[string]ratelimit.Decision
	errs     map[string]error
	reserved map[string]*ratelimit.Reservation
}

func newTurns(t testing.TB, rl *ratelimit.RateLimiter, cfg project.Config) *turns {
	return &turns{RateLimiter: rl, projects: withProjects(t, rl, cfg), start: time.Now(), at: map[string]time.Duration{},
		told: map[string]ratelimit.Decision{}, errs: map[string]error{}, reserved: map[string]*ratelimit.Reservation{}}
}

// join starts a call, and returns when it waits or has returned.
func (w *turns) join(ctx context.Context, name string, c ratelimit.Call) {
	w.came = append(w.came, name)
	go func() {
		res, d, err := w.AcquireCall(ctx, c)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at[name], w.told[name], w.errs[name], w.reserved[name] = time.Since(w.start), d, err, res
	}()
	synctest.Wait()
}

// sleep moves the clock to a time since the start.
func (w *turns) sleep(until time.Duration) {
	time.Sleep(until - time.Since(w.start))
	synctest.Wait()
}

// end ends a call that has passed: it is committed with so many tokens, or cancelled if they
// are negative.
func (w *turns) end(name string, tokens int) {
	w.mu.Lock()
	res := w.reserved[name]
	w.mu.Unlock()
	if tokens < 0 {
		res.Cancel()
	} else {
		res.Commit(tokens, 0)
	}
	synctest.Wait()
}

// all returns the names of the calls that have passed, in order. Calls that passed at the same
// time are in the order in which they came.
func (w *turns) all() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.came {
		if w.reserved[name] != nil {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(w.at[a], w.at[b]) })
	return names
}

// passed fails the test unless exactly the calls with these names have passed, in that order.
func (w *turns) passed(t testing.TB, names ...string) {
	t.Helper()
	if got := w.all(); !slices.Equal(got, names) {
		t.Fatalf("after %v %q have passed; want %q", time.Since(w.start), got, names)
	}
}

// failed fails the test unless a call has failed at a time with an error. It returns the
// decision.
func (w *turns) failed(t testing.TB, name string, at time.Duration, want error) ratelimit.Decision {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at[name] != at || !errors.Is(w.errs[name], want) || w.reserved[name] != nil {
		t.Fatalf("%s has failed at %v with %v; want %v, %v", name, w.at[name], w.errs[name], at, want)
	}
	return w.told[name]
}

// next ends a call, and fails the test unless another is the next that passes.
func (w *turns) next(t testing.TB, ends, passes string) {
	t.Helper()
	before := len(w.all())
	w.end(ends, 0)
	if names := w.all(); len(names) != before+1 || !slices.Contains(names, passes) {
		t.Fatalf("%q have passed; want %q to be the next", names, passes)
	}
}

// of returns a call of a project for the model m.
func of(id string) ratelimit.Call { return ratelimit.Call{Project: id, Model: "m"} }

// ofRanks runs a test on a model with one slot, which a call of a project has.
func ofRanks(t *testing.T, test func(t *testing.T, w *turns)) {
	everyLedger(t, quotas{"m": {MaxConcurrent: 1, MaxTPM: 100}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		w := newTurns(t, rl, project.Config{Default: &project.Limit{}, Limits: map[string]project.Limit{
			"low": {Priority: -1000, Weight: 1 << 20}, "usual": {}, "high": {Priority: 1}, "highest": {Priority: 1000},
		}})
		w.join(t.Context(), "now", of("usual"))
		test(t, w)
	})
}

// Projects of a higher priority have their turns first, whichever call came first, and
// whatever the weights are. The priorities of calls do not matter between projects.
func TestProjectPriority(t *testing.T) {
	ofRanks(t, func(t *testing.T, w *turns) {
		for _, id := range []string{"low", "usual", "high", "highest"} {
			w.join(t.Context(), id, of(id))
			urgent := of(id)
			urgent.Priority = -len(w.came)
			w.join(t.Context(), id+" too", urgent)
		}
		w.passed(t, "now")
		w.next(t, "now", "highest")
		w.next(t, "highest", "highest too")
		w.next(t, "highest too", "high")
		w.join(t.Context(), "late", of("highest"))
		w.next(t, "high", "late")
		w.next(t, "late", "high too")
		w.next(t, "high too", "usual")
		w.next(t, "usual", "usual too")
		w.next(t, "usual too", "low")
		w.next(t, "low", "low too")
	})
}

// A new priority counts from the next call of the project that has to wait.
func TestPriorityIsSet(t *testing.T) {
	ofRanks(t, func(t *testing.T, w *turns) {
		w.join(t.Context(), "high", of("high"))
		w.join(t.Context(), "low", of("low"))
		if err := w.projects.SetLimit("low", project.Limit{Priority: 2}); err != nil {
			t.Fatal(err)
		}
		w.next(t, "now", "high")
		w.join(t.Context(), "high too", of("high"))
		w.join(t.Context(), "low too", of("low"))
		w.next(t, "high", "low")
		w.next(t, "low", "low too")
		w.next(t, "low too", "high too")
	})
}

// Projects that always have calls waiting for a model share it by their weights, whatever the
// number and the size of their calls, and use all of it.
func TestWeights(t *testing.T) {
	type tenant struct{ weight, callers, tokens int }
	minutes := testkit.Rounds(10, 30)
	for name, c := range map[string]struct {
		quota   ratelimit.ModelQuota
		tenants map[string]tenant
	}{
		"requests":      {ratelimit.ModelQuota{MaxRPM: 60}, map[string]tenant{"a": {3, 60, 0}, "b": {1, 60, 0}}},
		"tokens":        {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 120, 100}, "b": {1, 120, 100}}},
		"crowds":        {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 100, 100}, "b": {1, 900, 100}}},
		"large, small":  {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {3, 300, 40}, "b": {1, 30, 500}}},
		"of no weight":  {ratelimit.ModelQuota{MaxRPM: 60}, map[string]tenant{"a": {0, 60, 0}, "b": {1, 40, 0}}},
		"three of them": {ratelimit.ModelQuota{MaxTPM: 12_000}, map[string]tenant{"a": {5, 120, 100}, "b": {2, 120, 30}, "c": {1, 30, 300}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits, weights := map[string]project.Limit{}, 0
				for id, each := range c.tenants {
					limits[id] = project.Limit{Weight: each.weight}
					weights += max(each.weight, 1)
				}
				rl := onStore(t, store.NewMemory(), quotas{"m": c.quota})
				withProjects(t, rl, project.Config{Limits: limits})
				before := ratelimit.Call{Model: "m", Requests: max(c.quota.MaxRPM, 1), Estimated: c.quota.MaxTPM}
				if _, d, err := rl.TryAcquireCall(t.Context(), before); err != nil || !d.Allowed {
					t.Fatalf("%+v, %v", d, err)
				}
				ctx, cancel := testkit.WithHiddenTimeout(t.Context(), time.Duration(minutes)*time.Minute+time.Second) // the first minute is over when they begin
				defer cancel()
				got := untilTheEnd(ctx, rl, func(begin func(ratelimit.Call)) {
					for id, each := range c.tenants {
						for range each.callers {
							begin(ratelimit.Call{Project: id, Model: "m", Estimated: each.tokens})
						}
					}
				})
				sum, whole := 0, minutes*max(c.quota.MaxRPM, c.quota.MaxTPM)
				for id, n := range got {
					sum += n
					fair := float64(whole) * float64(max(c.tenants[id].weight, 1)) / float64(weights)
					if off := math.Abs(float64(n)/fair - 1); off > 0.05 {
						t.Errorf("%s got %d of %d; its share is %.0f", id, n, whole, fair)
					}
				}
				if float64(sum) < 0.95*float64(whole) || sum > whole {
					t.Errorf("%d were used of %d", sum, whole)
				}
			})
		})
	}
}

// untilTheEnd makes the same calls again and again until ctx ends, and returns how many tokens
// the calls of each project have taken; one for a call without tokens.
func untilTheEnd(ctx context.Context, rl *ratelimit.RateLimiter, callers func(begin func(ratelimit.Call))) map[string]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]int{}
	callers(func(c ratelimit.Call) {
		all.Go(func() {
			for {
				if _, _, err := rl.AcquireCall(ctx, c); err != nil {
					return
				}
				mu.Lock()
				got[c.Project] += max(c.Estimated, 1)
				mu.Unlock()
			}
		})
	})
	all.Wait()
	return got
}

// A project that waits for its own limits leaves the model to others, and has its turn when
// its limits have room.
func TestOwnLimitLeavesTheModelToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minutes = 10
		rl := onStore(t, store.NewMemory(), quotas{"m": {MaxRPM: 60}})
		withProjects(t, rl, project.Config{Limits: map[string]project.Limit{"small": {RequestsPerMinute: 6, Weight: 100}, "large": {}}})
		ctx, cancel := testkit.WithHiddenTimeout(t.Context(), minutes*time.Minute-time.Second)
		defer cancel()
		got := untilTheEnd(ctx, rl, func(begin func(ratelimit.Call)) {
			for range 30 {
				begin(of("small"))
				begin(of("large"))
			}
		})
		if sum := got["small"] + got["large"]; sum != 60*minutes || got["small"] > 6*minutes || got["small"] < 3*minutes {
			t.Errorf("%v: of all, small may have 6 a minute, and none should be left", got)
		}
	})
}

// A call that finds all slots of its project taken waits until a call of the project ends, in
// whatever way. It takes nothing of the model meanwhile. Waiting calls pass one by one, in
// order.
func TestProjectsConcurrentCalls(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 100, MaxConcurrent: 50}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		w := newTurns(t, rl, project.Config{Default: &project.Limit{MaxConcurrent: 2}})
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.join(t.Context(), name, of("p"))
		}
		w.passed(t, "a", "b")
		res, d, err := rl.TryAcquireCall(t.Context(), of("p"))
		if res != nil || err != nil || d.Code != ratelimit.DecisionProjectLimit || d.Limit != project.Concurrent || d.Concurrent != 2 {
			t.Errorf("%+v, %v", d, err)
		}
		if s := rl.Stats("m"); s.RPM != 2 || s.Concurrent != 2 {
			t.Errorf("%+v", s)
		}
		w.sleep(3300 * time.Millisecond)
		w.end("b", 5)
		w.passed(t, "a", "b", "c")
		w.end("c", -1)
		w.end("b", 1) // b has ended already
		w.passed(t, "a", "b", "c", "d")
		w.end("a", 0)
		w.passed(t, "a", "b", "c", "d", "e")
		if at := w.at["e"]; at != 3300*time.Millisecond {
			t.Errorf("it passes after %v, and not when another ends", at)
		}
	})
}

// A limit that is set or unset, a new default, and a reset reach calls that wait for their
// project, in the line of a model or without a model.
func TestSettingsReachCallsThatWait(t *testing.T) {
	everyLedger(t, quotas{"m": plenty, "free": {}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		w := newTurns(t, rl, project.Config{Default: &project.Limit{RequestsPerDay: 1}, Limits: map[string]project.Limit{"own": {RequestsPerDay: 1}}})
		var want []string
		for _, id := range []string{"own", "usual"} {
			for i, model := range []string{"m", "free", "unknown", "", "m"} {
				name := fmt.Sprint(id, " ", i)
				w.join(t.Context(), name, ratelimit.Call{Project: id, Model: model})
			}
			want = append(want, id+" 0")
		}
		w.passed(t, want...)
		for i, step := range []struct {
			do   func() error
			pass []string
		}{
			{func() error { return w.projects.SetLimit("own", project.Limit{RequestsPerDay: 2}) }, []string{"own 1"}},
			{func() error { return w.projects.SetDefault(project.Limit{RequestsPerDay: 3}) }, []string{"usual 1", "usual 2"}},
			{func() error { return w.projects.UnsetLimit("own") }, []string{"own 2"}},
			{func() error { return w.projects.SetDefault(project.Limit{RequestsPerDay: 4}) }, []string{"own 3", "usual 3"}},
			{func() error { return w.projects.Reset(t.Context(), "usual") }, []string{"usual 4"}},
			{func() error { return w.projects.SetLimit("own", project.Limit{}) }, []string{"own 4"}},
		} {
			w.sleep(time.Duration(i+1) * time.Second)
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			want = append(want, step.pass...)
			w.passed(t, want...)
		}
	})
}

// happening is an event while calls of a project wait for several models.
type happening struct {
	do               string
	requests, tokens int
	priority         int
	model            string
	patience         time.Duration // how long a new call may wait
	which            int           // which of the calls that have passed
	used             int           // how many tokens the call has used, of those that it reserved
	windows          []window
	pass             time.Duration
}

// narrow draws small limits for a project, which its calls often reach.
func narrow(t *rapid.T) (list []window) {
	for _, w := range []window{
		{"requests_per_minute", int64(rapid.IntRange(1, 6).Draw(t, "minute")), time.Minute},
		{"requests_per_hour", int64(rapid.IntRange(5, 40).Draw(t, "hour")), time.Hour},
		{"tokens_per_minute", int64(rapid.IntRange(5, 30).Draw(t, "tokens")), time.Minute},
		slotsWindow(int64(rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "places"))),
	} {
		if w.count > 0 {
			list = append(list, w)
		}
	}
	return list
}

var happenings = rapid.Custom(func(t *rapid.T) happening {
	h := happening{do: rapid.SampledFrom([]string{"join", "join", "join", "join", "commit", "cancel", "set", "pass", "pass", "pass"}).Draw(t, "do")}
	switch h.do {
	case "join":
		h.requests, h.tokens = rapid.IntRange(1, 3).Draw(t, "requests"), rapid.IntRange(1, 15).Draw(t, "tokens")
		h.priority = rapid.IntRange(0, 2).Draw(t, "priority")
		h.model = rapid.SampledFrom([]string{"m", "n", "unknown", ""}).Draw(t, "model")
		h.patience = time.Duration(rapid.IntRange(1, 200_000).Draw(t, "patience")) * time.Millisecond
	case "commit", "cancel":
		h.which, h.used = rapid.IntRange(0, 20).Draw(t, "which"), rapid.IntRange(0, 15).Draw(t, "used")
	case "set":
		h.windows = narrow(t)
	case "pass":
		h.pass = time.Duration(rapid.OneOf(rapid.IntRange(1, 70_000), rapid.SampledFrom([]int{60_000, 3_600_000})).Draw(t, "ms")) * time.Millisecond
	}
	return h
})

// jostle runs calls of one project that wait for several models, and keeps the naive book of
// them.
type jostle struct {
	*turns
	book  *naiveBook
	calls map[string]happening
	uses  map[string]*naiveUse // the usage of calls that have passed
}

// live runs a history, and returns what went wrong.
func (j *jostle) live(all []happening) string {
	for i, h := range all {
		switch h.do {
		case "join":
			name := fmt.Sprint("call ", i)
			ctx, cancel := testkit.WithHiddenTimeout(context.Background(), h.patience+time.Duration(i+1)) // no two contexts end at the same time
			defer cancel()
			j.calls[name] = h
			j.join(ctx, name, ratelimit.Call{Project: "p", Model: h.model, Requests: h.requests, Estimated: h.tokens, Priority: h.priority})
		case "commit", "cancel":
			if names := j.all(); len(names) > 0 {
				j.settle(names[h.which%len(names)], h)
			}
		case "set":
			if err := j.projects.SetLimit("p", *projectLimits(h.windows...)); err != nil {
				return err.Error()
			}
			j.book.windows["p"] = h.windows
		}
		synctest.Wait()
		wrong := j.wrong()
		for left := h.pass; left > 0 && wrong == ""; wrong = j.wrong() {
			step := min(left, j.untilFirst())
			time.Sleep(step)
			left -= step
			synctest.Wait()
		}
		if wrong != "" {
			return fmt.Sprintf("step %d, %+v of %+v: %s", i, h, j.book.windows["p"], wrong)
		}
	}
	return ""
}

// settle ends a call. A call that has used more than it reserved is committed with its
// reservation: a debt would exceed the limits on purpose.
func (j *jostle) settle(name string, h happening) {
	use := j.uses[name]
	switch {
	case use.ended:
		return
	case h.do == "cancel":
		use.requests, use.ofProject = 0, 0
		j.end(name, -1)
	default:
		use.ofProject = min(use.ofProject, int64(h.used))
		j.end(name, int(use.ofProject))
	}
	use.ended, use.slots = true, 0
}

// first returns the waiting call that comes before all others, by its priority or because it
// came first.
func (j *jostle) first() (name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, each := range j.came {
		if _, returned := j.at[each]; !returned && (name == "" || j.calls[each].priority > j.calls[name].priority) {
			name = each
		}
	}
	return name
}

// untilFirst returns when the first call may pass, by the naive book.
func (j *jostle) untilFirst() time.Duration {
	name := j.first()
	if name == "" {
		return ratelimit.Never
	}
	c := j.calls[name]
	retry, _, _ := j.book.decide(time.Now(), &projectCall{Project: "p", Model: c.model}, int64(c.requests), int64(c.tokens))
	return retry
}

// wrong records the calls that have passed since its last call, and returns what is wrong:
// more has passed than the limits allow, a call has passed before its turn, or the first has
// not passed although it may.
func (j *jostle) wrong() string {
	first := j.first()
	for _, name := range j.all() {
		c := j.calls[name]
		if use := j.uses[name]; use != nil {
			if use.slots > 0 && time.Since(use.at) > 5*time.Minute { // ended before its lease does, because waiting calls do not know of that end
				j.settle(name, happening{do: "commit", used: c.tokens})
				first = j.first()
			}
			continue
		}
		use := &naiveUse{at: j.start.Add(j.at[name]), project: "p", model: c.model, requests: int64(c.requests), ofProject: int64(c.tokens)}
		if projectLimits(j.book.windows["p"]...).MaxConcurrent > 0 {
			use.slots = 1 // without a limit, slots are not counted
		}
		j.uses[name], j.book.uses = use, append(j.book.uses, use)
		for _, w := range j.book.windows["p"] {
			if sum := j.book.count(use.at, w.period, j.book.ofProject("p", w)); sum > w.count {
				return fmt.Sprintf("with %s, %d of %+v", name, sum, w)
			}
		}
		if f := j.calls[first]; first != "" && (f.priority > c.priority || f.priority == c.priority && slices.Index(j.came, first) < slices.Index(j.came, name)) {
			return fmt.Sprintf("%s has passed before %s", name, first)
		}
	}
	if first != "" && j.untilFirst() == 0 {
		return fmt.Sprintf("%s waits, although it may pass", first)
	}
	return ""
}

// Calls of one project that wait for the project's limits pass in order, whichever models they
// are for, each as soon as the naive book allows.
func TestCallsForSeveralModelsPassInTurn(t *testing.T) {
	q := quotas{"m": plenty, "n": {MaxRPM: 1000, MaxTPM: 100_000, MaxConcurrent: 1000}}
	for name, open := range map[string]func(t *testing.T) *ratelimit.RateLimiter{
		"memory":        func(t *testing.T) *ratelimit.RateLimiter { return onStore(t, store.NewMemory(), q) },
		"another store": func(t *testing.T) *ratelimit.RateLimiter { return onStore(t, another{store.NewMemory()}, q) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				windows := narrow(rt)
				all := rapid.SliceOfN(happenings, 1, 40).Draw(rt, "happenings")
				var wrong string
				synctest.Test(t, func(t *testing.T) {
					w := newTurns(t, open(t), project.Config{Default: projectLimits(windows...)})
					j := &jostle{w, &naiveBook{quotas: q, windows: map[string][]window{"p": windows}}, map[string]happening{}, map[string]*naiveUse{}}
					wrong = j.live(all)
					time.Sleep(5 * time.Minute) // longer than any call may wait
				})
				if wrong != "" {
					rt.Fatal(wrong)
				}
			})
		})
	}
}

// While a call of one project asks the store in its turn, calls of other projects for the same
// model are not denied.
func TestNoisyWaitersDenyNobody(t *testing.T) {
	const away = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		rl := onStore(t, slowly{store.NewMemory(), away / 2}, quotas{"m": plenty})
		projects := withProjects(t, rl, project.Config{Limits: map[string]project.Limit{"loud": {RequestsPerMinute: 1}, "quiet": {RequestsPerMinute: 1 << 40}}})
		if _, d, err := rl.TryAcquireCall(t.Context(), of("loud")); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loud sync.WaitGroup
		loud.Go(func() { rl.AcquireCall(ctx, of("loud")) })
		defer loud.Wait()
		defer cancel()
		time.Sleep(away + away/2) // it asks for the second time, so it is in line now
		synctest.Wait()
		urgent := of("loud")
		urgent.Priority = 1
		for what, wake := range map[string]func(){
			"it has asked":         func() {},
			"its limit was set":    func() { projects.SetLimit("loud", project.Limit{RequestsPerMinute: 1}) },
			"its time has come":    func() { time.Sleep(time.Minute - 2*away) },
			"another of it waits":  func() { loud.Go(func() { rl.AcquireCall(ctx, urgent) }) },
			"something came back":  func() { projects.Reset(ctx, "nobody") },
			"it may have had less": func() { projects.SetLimit("loud", project.Limit{RequestsPerMinute: 1, RequestsPerHour: 1}) },
		} {
			wake()
			synctest.Wait() // the call is on its way to the store
			if _, d, err := rl.TryAcquireCall(ctx, of("quiet")); err != nil || !d.Allowed {
				t.Errorf("%s: %q, %v, %v", what, d.Limit, d.RetryAfter, err)
			}
		}
	})
}
