package ratelimit_test

import (
	"context"
	"errors"
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
)

// window is one limit of a project.
type window struct {
	name   string
	count  int64
	period time.Duration
}

// slotsWindow returns a limit of n slots.
func slotsWindow(n int64) window { return window{project.Concurrent, n, 10 * time.Minute} }

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
