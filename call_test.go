package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
	"pgregory.net/rapid"
)

// window is one limit of a project.
type window struct {
	name   string
	count  int64
	period time.Duration
}

func (w window) tokens() bool { return strings.HasPrefix(w.name, "tokens") }

// slotsWindow returns a limit of n slots.
func slotsWindow(n int64) window { return window{project.Concurrent, n, 10 * time.Minute} }

func (w window) ofSlots() bool { return w.name == project.Concurrent }

// projectCall is a [ratelimit.Call] with the limits of its project.
type projectCall struct {
	Model     string
	Estimated int
	Tokens    ratelimit.Tokens
	Requests  int
	Project   string
	Limits    func() *project.Limit // nil: the project keeps its limits
	MaxWait   time.Duration
	Priority  int
	Shadow    bool
}

// on sets the limits of the call's project, and returns the call.
func (c projectCall) on(rl *ratelimit.RateLimiter) ratelimit.Call {
	if c.Limits != nil {
		setLimits(rl, c.Project, c.Limits())
	}
	return ratelimit.Call{
		Model: c.Model, Estimated: c.Estimated, Tokens: c.Tokens, Requests: c.Requests, Project: c.Project,
		MaxWait: c.MaxWait, Priority: c.Priority, Shadow: c.Shadow,
	}
}

func tryAcquireCall(rl *ratelimit.RateLimiter, ctx context.Context, c projectCall) (*ratelimit.Reservation, ratelimit.Decision, error) {
	return rl.TryAcquireCall(ctx, c.on(rl))
}

func acquireCall(rl *ratelimit.RateLimiter, ctx context.Context, c projectCall) (*ratelimit.Reservation, ratelimit.Decision, error) {
	return rl.AcquireCall(ctx, c.on(rl))
}

// projectsOf returns the project limiter of rl. A project without limits of its own has none
// at all.
func projectsOf(rl *ratelimit.RateLimiter) *project.Limiter {
	return projectsWith(rl, project.Config{MaxWaiting: 1 << 20})
}

func projectsWith(rl *ratelimit.RateLimiter, cfg project.Config) *project.Limiter {
	cfg.Default = &project.Limit{}
	made, _ := projectLimiters.LoadOrStore(rl, sync.OnceValue(func() *project.Limiter {
		projects, err := rl.NewProjects(cfg)
		if err != nil {
			panic(err)
		}
		return projects
	}))
	return made.(func() *project.Limiter)()
}

var projectLimiters sync.Map

// setLimits sets the limits of a project, unless it has these already.
func setLimits(rl *ratelimit.RateLimiter, id string, l *project.Limit) {
	if projects := projectsOf(rl); projects.Limit(id) != *l {
		if err := projects.SetLimit(id, *l); err != nil && project.CheckID(id) == nil {
			panic(err)
		}
	}
}

// projectLimits returns the limit of a project with these windows.
func projectLimits(windows ...window) *project.Limit {
	l := &project.Limit{}
	for _, w := range windows {
		*map[string]*int{
			"requests_per_minute": &l.RequestsPerMinute, "requests_per_hour": &l.RequestsPerHour, "requests_per_day": &l.RequestsPerDay, "tokens_per_minute": &l.TokensPerMinute,
			"tokens_per_hour": &l.TokensPerHour, "tokens_per_day": &l.TokensPerDay, project.Concurrent: &l.MaxConcurrent,
		}[w.name] = int(w.count)
	}
	return l
}

// only returns a func that returns the limits.
func only(l *project.Limit) func() *project.Limit {
	return func() *project.Limit { return l }
}

// perMinute returns limits on requests and tokens a minute; zero is no limit.
func perMinute(requests, tokens int64) func() *project.Limit {
	var list []window
	if requests > 0 {
		list = append(list, window{"requests_per_minute", requests, time.Minute})
	}
	if tokens > 0 {
		list = append(list, window{"tokens_per_minute", tokens, time.Minute})
	}
	return only(projectLimits(list...))
}

// remaining returns what is left of each of a project's limits.
func remaining(t testing.TB, rl *ratelimit.RateLimiter, id string, limits func() *project.Limit) (left []int64) {
	t.Helper()
	setLimits(rl, id, limits())
	d, err := projectsOf(rl).Peek(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Windows() {
		left = append(left, s.Remaining)
	}
	if most := limits().MaxConcurrent; most > 0 {
		left = append(left, int64(most)-d.Concurrent)
	}
	return left
}

// wantLeft fails the test unless so much is left of a project's limits, and so many requests
// and tokens are used of the model.
func wantLeft(t testing.TB, rl *ratelimit.RateLimiter, c projectCall, rpm, tpm int, left ...int64) {
	t.Helper()
	if got := remaining(t, rl, c.Project, c.Limits); !slices.Equal(got, left) {
		t.Errorf("%s has %d left; want %d", c.Project, got, left)
	}
	if s := rl.Stats(c.Model); s.RPM != rpm || s.TPM != tpm {
		t.Errorf("%q has used %d requests and %d tokens; want %d and %d", c.Model, s.RPM, s.TPM, rpm, tpm)
	}
}

// tryCall makes a call, which must be valid.
func tryCall(t testing.TB, rl *ratelimit.RateLimiter, c projectCall) (*ratelimit.Reservation, ratelimit.Decision) {
	t.Helper()
	res, d, err := tryAcquireCall(rl, t.Context(), c)
	if err != nil || (res != nil) != d.Allowed {
		t.Fatalf("%+v: %v, %+v, %v", c, res, d, err)
	}
	return res, d
}

// everyLedger runs a test on a limiter in memory, on a store in memory and on a
// file, each in a bubble.
func everyLedger(t *testing.T, q quotas, test func(t *testing.T, rl *ratelimit.RateLimiter)) {
	for _, ledger := range ledgers {
		t.Run(ledger, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl := openLedger(t, ledger, filepath.Join(t.TempDir(), "limits"), ratelimit.Config{Quotas: q})
				t.Cleanup(func() { closeFile(t, rl) })
				test(t, rl)
			})
		})
	}
}

// A call without an estimate takes no tokens of the model, and one token of its project until
// it is settled. Debts delay it all the same.
func TestCallOfNoTokens(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 3, MaxTPM: 10}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		c := projectCall{Model: "m", Project: "p", Limits: perMinute(2, 10)}
		res, _ := tryCall(t, rl, c)
		wantLeft(t, rl, c, 1, 0, 1, 9)
		res.Commit(0, 0)
		wantLeft(t, rl, c, 1, 0, 1, 10)
		q := projectCall{Model: "m", Project: "q", Limits: perMinute(0, 10)}
		res, _ = tryCall(t, rl, q)
		wantLeft(t, rl, q, 2, 0, 9)
		res.Commit(7, 7) // makes a debt of the model's and of the project's tokens
		wantLeft(t, rl, q, 2, 14, 0)
		if _, d := tryCall(t, rl, c); d.Allowed || d.Limit != "max_tpm" {
			t.Errorf("%+v", d)
		}
		wantLeft(t, rl, c, 2, 14, 1, 10)
		for _, model := range []string{"m", "unknown", ""} {
			q.Model = model
			if _, d := tryCall(t, rl, q); d.Allowed || d.RetryAfter != time.Minute {
				t.Errorf("%q: %+v", model, d)
			}
		}
	})
}

// Calls that are not valid are refused, and charged nothing.
func TestCallInvalid(t *testing.T) {
	everyLedger(t, quotas{"m": {MaxRPM: 3}}, func(t *testing.T, rl *ratelimit.RateLimiter) {
		for _, tt := range []struct {
			name string
			call projectCall
			says string
		}{
			{"negative", projectCall{Estimated: -1}, "-1 tokens"},
			{"too many", projectCall{Estimated: math.MaxInt}, "tokens"},
			{"a negative part", projectCall{Tokens: ratelimit.Tokens{Input: 1, Output: -2}}, "-2 tokens"},
			{"both", projectCall{Estimated: 1, Tokens: ratelimit.Tokens{Input: 1}}, "both"},
			{"negative requests", projectCall{Requests: -1}, "-1 requests"},
			{"too many requests", projectCall{Requests: math.MaxInt}, "requests"},
		} {
			for _, model := range []string{"m", "unknown", ""} {
				c := tt.call
				c.Model, c.Project, c.Limits = model, "p", perMinute(3, 0)
				res, d, err := tryAcquireCall(rl, t.Context(), c)
				if res != nil || d.Allowed || d.Code != ratelimit.DecisionInvalidTokens || d.RetryAfter != ratelimit.Never {
					t.Errorf("%s: %v, %+v", tt.name, res, d)
				}
				if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), tt.says) || !strings.Contains(d.Reason(), tt.says) {
					t.Errorf("%s: %v, %q; want it to say %q", tt.name, err, d.Reason(), tt.says)
				}
				res, d, err = acquireCall(rl, t.Context(), c)
				if res != nil || d.Allowed || d.Code != ratelimit.DecisionInvalidTokens || err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: %v, %+v, %v", tt.name, res, d, err)
				}
				wantLeft(t, rl, c, 0, 0, 3)
			}
		}
	})
}

// A call that the store cannot decide on is denied, and charged to neither scope.
func TestCallStoreLost(t *testing.T) {
	e := newElsewhere()
	rl := onStore(t, e, quotas{"m": {MaxRPM: 3}})
	for _, model := range []string{"m", "unknown", ""} {
		c := projectCall{Model: model, Project: "p" + model, Limits: perMinute(3, 0)}
		lost := errors.New("lost")
		e.lose(lost)
		res, d, err := tryAcquireCall(rl, t.Context(), c)
		if res != nil || err != lost || d.Allowed || d.Code != ratelimit.DecisionStoreLost {
			t.Errorf("%v, %+v, %v", res, d, err)
		}
		if res, _, err := acquireCall(rl, t.Context(), c); res != nil || err != lost {
			t.Errorf("%v, %v", res, err)
		}
		e.lose(nil)
		wantLeft(t, rl, c, 0, 0, 3)
	}
}

// The model is charged only if the store has also charged the project.
func TestCallOfAClosedProjectStore(t *testing.T) {
	rl := inMemory(t, quotas{"m": {MaxRPM: 3}})
	rl.Store().Close()
	c := projectCall{Model: "m", Project: "p", Limits: perMinute(3, 0)}
	res, d, err := tryAcquireCall(rl, t.Context(), c)
	if res != nil || !errors.Is(err, store.ErrClosed) || d.Code != ratelimit.DecisionStoreLost {
		t.Errorf("%v, %+v, %v", res, d, err)
	}
	if s := rl.Stats("m"); s.RPM != 0 {
		t.Errorf("%+v; want nothing charged", s)
	}
}

// naiveUse is the usage of one call, and when it began.
type naiveUse struct {
	at               time.Time
	project, model   string
	requests, tokens int64
	ofProject        int64 // tokens of the project: at least one until the call is settled
	slot             bool
	slots            int64 // how many slots of its project the call has
	split            bool
	input, output    int64
	ended            bool
}

// naiveBook is a list of all calls so far. The usage of a window is the sum over the calls in
// it.
type naiveBook struct {
	uses    []*naiveUse
	quotas  quotas
	windows map[string][]window
}

// count returns how much the matching calls have used in the period before a time.
func (b *naiveBook) count(at time.Time, period time.Duration, of func(*naiveUse) int64) (sum int64) {
	for _, u := range b.uses {
		if u.at.Add(period).After(at) {
			sum += of(u)
		}
	}
	return sum
}

func (b *naiveBook) ofProject(project string, w window) func(*naiveUse) int64 {
	return func(u *naiveUse) int64 {
		switch {
		case u.project != project:
			return 0
		case w.tokens():
			return u.ofProject
		case w.ofSlots():
			return u.slots
		}
		return u.requests
	}
}

// dim is one limit of a model.
type dim struct {
	name   string
	most   int64
	n      int64
	period time.Duration
	of     func(*naiveUse) int64
}

func (b *naiveBook) dims(model string, c *projectCall, n, tokens int64) (list []dim) {
	q := b.quotas[model]
	of := func(get func(*naiveUse) int64) func(*naiveUse) int64 {
		return func(u *naiveUse) int64 {
			if u.model != model {
				return 0
			}
			return get(u)
		}
	}
	for _, d := range []dim{
		{"max_rpm", int64(q.MaxRPM), n, time.Minute, of(func(u *naiveUse) int64 { return u.requests })},
		{"max_tpm", int64(q.MaxTPM), tokens, time.Minute, of(func(u *naiveUse) int64 { return u.tokens })},
		{"max_concurrent", int64(q.MaxConcurrent), 1, 10 * time.Minute, of(func(u *naiveUse) int64 {
			if u.slot {
				return 1
			}
			return 0
		})},
	} {
		if d.most > 0 {
			list = append(list, d)
		}
	}
	return list
}

// wait returns when n fits into a window. It tries every moment at which usage leaves the
// window.
func (b *naiveBook) wait(now time.Time, most, n int64, period time.Duration, of func(*naiveUse) int64) time.Duration {
	if n > most {
		return ratelimit.Never
	}
	moments := []time.Time{now}
	for _, u := range b.uses {
		if out := u.at.Add(period); out.After(now) {
			moments = append(moments, out)
		}
	}
	slices.SortFunc(moments, time.Time.Compare)
	i := slices.IndexFunc(moments, func(at time.Time) bool { return b.count(at, period, of)+n <= most })
	return moments[i].Sub(now)
}

// decide returns when the call passes, which limit denies it, and when it would pass by its
// slots alone.
func (b *naiveBook) decide(now time.Time, c *projectCall, n, tokens int64) (retry time.Duration, by string, slots bool) {
	var model, own time.Duration
	var never string
	for _, d := range b.dims(c.Model, c, n, tokens) {
		wait := b.wait(now, d.most, d.n, d.period, d.of)
		if wait > 0 && by == "" {
			by = d.name
		}
		if wait == ratelimit.Never && never == "" {
			never = d.name
		}
		if d.name == "max_concurrent" && wait > 0 {
			slots, wait = true, min(wait, time.Second)
		}
		model = max(model, wait)
	}
	if never != "" {
		by = never
	}
	name := ""
	for _, w := range b.windows[c.Project] {
		ask := n
		switch {
		case w.tokens():
			ask = max(tokens, 1)
		case w.ofSlots():
			ask = 1
		}
		wait := b.wait(now, w.count, ask, w.period, b.ofProject(c.Project, w))
		if w.ofSlots() && wait > 0 {
			slots, wait = true, min(wait, time.Second)
		}
		if wait > own {
			own, name = wait, w.name
		}
	}
	if own > model {
		by = name
	}
	return max(own, model), by, slots
}

// deed is one step of a random history of calls.
type deed struct {
	Do              string
	Project, Model  string
	Requests        int
	Tokens          ratelimit.Tokens
	Split           bool
	Which           int
	Prompt, Output  int
	Wait            time.Duration
	UntilLastPasses bool
}

func deeds(t *rapid.T) (quotas, map[string][]window, []deed) {
	some := func(name string, most int) int {
		return rapid.OneOf(rapid.Just(0), rapid.IntRange(1, most)).Draw(t, name)
	}
	q := quotas{"free": {}}
	for _, model := range []string{"m", "n"} {
		q[model] = ratelimit.ModelQuota{MaxRPM: some("rpm", 6), MaxTPM: some("tpm", 60), MaxConcurrent: some("concurrent", 4)}
	}
	windows := map[string][]window{}
	for _, project := range []string{"p", "q"} {
		for _, w := range []window{
			{"requests_per_minute", int64(some("minute", 6)), time.Minute}, {"requests_per_hour", int64(some("hour", 20)), time.Hour},
			{"tokens_per_minute", int64(some("tokens", 60)), time.Minute}, {"tokens_per_day", int64(some("day", 200)), 24 * time.Hour},
			slotsWindow(int64(some("places", 4))),
		} {
			if w.count > 0 {
				windows[project] = append(windows[project], w)
			}
		}
	}
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			Do:              rapid.SampledFrom([]string{"try", "try", "try", "acquire", "commit", "commit", "cancel", "wait", "wait"}).Draw(t, "do"),
			Project:         rapid.SampledFrom([]string{"p", "p", "p", "q", ""}).Draw(t, "project"),
			Model:           rapid.SampledFrom([]string{"m", "m", "m", "n", "free", "unknown", ""}).Draw(t, "model"),
			Requests:        rapid.SampledFrom([]int{0, 0, 1, 2, 3, 7}).Draw(t, "requests"),
			Tokens:          ratelimit.Tokens{Input: rapid.IntRange(0, 30).Draw(t, "input"), Output: rapid.IntRange(0, 30).Draw(t, "output")},
			Split:           rapid.Bool().Draw(t, "split"),
			Which:           rapid.IntRange(0, 30).Draw(t, "which"),
			Prompt:          rapid.IntRange(-1, 40).Draw(t, "prompt"),
			Output:          rapid.IntRange(-1, 40).Draw(t, "used"),
			Wait:            rapid.SampledFrom([]time.Duration{1, time.Second, 20 * time.Second, time.Minute, 10 * time.Minute, time.Hour}).Draw(t, "wait"),
			UntilLastPasses: rapid.Bool().Draw(t, "until the last passes"),
		}
	}), 5, 40).Draw(t, "deeds")
	return q, windows, list
}

// In random histories, every ledger decides as the naive book does: each call is charged to
// its project and its model, or to neither. A project's share only ever denies more than the
// book, and no longer than until the next window.
func TestCallsLikeTheNaiveBook(t *testing.T) {
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		q, windows, list := deeds(rt)
		withFile := rapid.IntRange(0, 3).Draw(rt, "a file takes its time") == 0
		for _, ledger := range ledgers {
			if ledger == ratelimit.BackendSQLite && !withFile {
				continue
			}
			files++
			wrong := ""
			synctest.Test(t, func(t *testing.T) {
				rl := openLedger(t, ledger, filepath.Join(dir, fmt.Sprint(files)), ratelimit.Config{Quotas: q})
				defer closeFile(t, rl)
				wrong = actOut(rl, &naiveBook{quotas: q, windows: windows}, list)
			})
			if wrong != "" {
				rt.Fatalf("%s: %s", ledger, wrong)
			}
		}
	})
}

// actOut takes the steps, and returns where the limiter differs from the book.
func actOut(rl *ratelimit.RateLimiter, b *naiveBook, list []deed) string {
	ctx := context.Background()
	var reserved []*ratelimit.Reservation
	var uses []*naiveUse
	var last time.Duration
	for step, a := range list {
		c := projectCall{Model: a.Model, Project: a.Project, Requests: a.Requests}
		n, tokens := int64(max(a.Requests, 1)), int64(a.Tokens.Input+a.Tokens.Output)
		if a.Split && tokens > 0 {
			c.Tokens = a.Tokens
		} else {
			c.Estimated = int(tokens)
		}
		limits := projectLimits(b.windows[a.Project]...)
		if a.Project != "" {
			c.Limits = only(limits)
		}
		switch a.Do {
		case "try", "acquire":
			retry, by, slots := b.decide(time.Now(), &c, n, tokens)
			if a.Do == "acquire" && (slots || retry > time.Hour && retry != ratelimit.Never) {
				continue // the test would have to know when a slot becomes free
			}
			start := time.Now()
			var res *ratelimit.Reservation
			var d ratelimit.Decision
			var err error
			switch a.Do {
			case "try":
				res, d, err = tryAcquireCall(rl, ctx, c)
				if strings.HasSuffix(d.Limit, "_share") { // which denies only what the limits admit
					if res != nil || err != nil || d.Allowed || retry != 0 || d.RetryAfter <= 0 || d.RetryAfter > time.Minute {
						return fmt.Sprintf("step %d, %+v: %+v, %v, by a share; the limits say %v", step, a, d, err, retry)
					}
					last = d.RetryAfter
					break
				}
				if err != nil || (res != nil) != d.Allowed || d.Allowed != (retry == 0) || d.RetryAfter != retry || d.Limit != by {
					return fmt.Sprintf("step %d, %+v: %+v, %v; want %v, by %q", step, a, d, err, retry, by)
				}
				last = retry
			case "acquire":
				res, d, err = acquireCall(rl, ctx, c)
				if retry == ratelimit.Never {
					if res != nil || !errors.Is(err, ratelimit.ErrNever) || d.RetryAfter != retry || d.Limit != by || time.Since(start) != 0 {
						return fmt.Sprintf("step %d, %+v: %+v, %v; want never, by %q", step, a, d, err, by)
					}
				} else if late := time.Since(start) - retry; res == nil || err != nil || !d.Allowed || late < 0 || late > 2*time.Minute {
					return fmt.Sprintf("step %d, %+v: %+v, %v, after %v; want it after %v", step, a, d, err, time.Since(start), retry)
				}
			}
			if res == nil {
				break
			}
			quota := b.quotas[a.Model]
			use := &naiveUse{
				at: time.Now(), project: a.Project, model: a.Model, requests: n, tokens: tokens, ofProject: max(tokens, 1), slot: quota.MaxConcurrent > 0, slots: 1,
				split: c.Tokens != ratelimit.Tokens{}, input: int64(a.Tokens.Input), output: int64(a.Tokens.Output),
			}
			b.uses = append(b.uses, use)
			reserved, uses = append(reserved, res), append(uses, use)
		case "commit", "cancel":
			if a.Which >= len(reserved) {
				continue
			}
			res, use := reserved[a.Which], uses[a.Which]
			if a.Do == "cancel" {
				res.Cancel()
			} else {
				res.Commit(a.Prompt, a.Output)
			}
			if use.ended {
				break
			}
			use.ended, use.slot, use.slots = true, false, 0
			if a.Do == "cancel" {
				use.requests, use.tokens, use.ofProject = 0, 0, 0
				break
			}
			use.tokens = naiveUsed(use, int64(a.Prompt), int64(a.Output))
			use.ofProject = use.tokens
		case "wait":
			if a.UntilLastPasses && last != ratelimit.Never {
				time.Sleep(last)
			} else {
				time.Sleep(a.Wait)
			}
		}
		if wrong := compare(rl, b); wrong != "" {
			return fmt.Sprintf("step %d, %+v: %s", step, a, wrong)
		}
	}
	return ""
}

// naiveUsed returns how many tokens a call has used. For tokens that are not known, it is what
// was reserved.
func naiveUsed(u *naiveUse, prompt, output int64) int64 {
	switch {
	case prompt >= 0 && output >= 0:
		return prompt + output
	case !u.split:
		return max(u.tokens, prompt, output)
	case prompt >= 0:
		return prompt + u.output
	case output >= 0:
		return u.input + output
	}
	return u.tokens
}

// compare returns where the limiter's usage differs from the book's.
func compare(rl *ratelimit.RateLimiter, b *naiveBook) string {
	now := time.Now()
	for model, q := range b.quotas {
		if q == (ratelimit.ModelQuota{}) {
			continue
		}
		s := rl.Stats(model)
		of := func(get func(*naiveUse) int64) func(*naiveUse) int64 {
			return func(u *naiveUse) int64 {
				if u.model == model {
					return get(u)
				}
				return 0
			}
		}
		rpm := b.count(now, time.Minute, of(func(u *naiveUse) int64 { return u.requests }))
		tpm := b.count(now, time.Minute, of(func(u *naiveUse) int64 { return u.tokens }))
		if s.RPM != int(rpm) || s.TPM != int(tpm) {
			return fmt.Sprintf("%s: %+v; want %d requests and %d tokens", model, s, rpm, tpm)
		}
	}
	for id, windows := range b.windows {
		setLimits(rl, id, projectLimits(windows...))
		said, err := projectsOf(rl).Peek(context.Background(), id)
		if err != nil {
			return err.Error()
		}
		found := map[string]int64{project.Concurrent: int64(projectLimits(windows...).MaxConcurrent) - said.Concurrent}
		for _, s := range said.Windows() {
			found[s.Window.Name] = s.Remaining
		}
		for _, w := range windows {
			if left := max(w.count-b.count(now, w.period, b.ofProject(id, w)), 0); found[w.name] != left {
				return fmt.Sprintf("%s, %s: %d left; want %d", id, w.name, found[w.name], left)
			}
		}
	}
	return ""
}

// A call of a model without a quota is charged to each of its project's, its key's and its run's limits once, whether
// its model is counted or not.
func TestCallOfAModelWithoutAQuotaIsChargedOnce(t *testing.T) {
	rl := inMemory(t, nil)
	projects := withProjects(t, rl, project.Config{Default: &project.Limit{RequestsPerMinute: 10}, Runs: project.RunLimit{Calls: 10}})
	res, d, err := rl.TryAcquireCall(t.Context(), ratelimit.Call{Model: "unknown", Project: "p", Run: "r"})
	if res == nil || err != nil {
		t.Fatal(d, err)
	}
	d2, err := projects.PeekCall(t.Context(), project.Call{Project: "p", Run: "r"})
	for _, w := range d2.Windows() {
		if w.Used != 1 || err != nil {
			t.Errorf("%d are used of %s of %s, %v; want 1", w.Used, w.Window.Name, w.Owner, err)
		}
	}
	if len(d2.Windows()) != 2 {
		t.Errorf("%d windows; want one of the project and one of the run", len(d2.Windows()))
	}
}
