package project_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// ofRanks runs a test on a model that takes one call at a time, which somebody makes.
func ofRanks(t *testing.T, test func(t *testing.T, l *line)) {
	quota := ratelimit.ModelQuota{MaxConcurrent: 1, MaxTPM: 100}
	limits := map[string]project.Limit{"low": {Priority: -1000, Weight: 1 << 20}, "usual": {}, "high": {Priority: 1}, "highest": {Priority: 1000}}
	for name, rl := range map[string]func(t testing.TB) *ratelimit.RateLimiter{
		"memory": func(t testing.TB) *ratelimit.RateLimiter { return models(t, quota) },
		"store":  func(t testing.TB) *ratelimit.RateLimiter { return modelsOn(t, store.NewMemory(), quota) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(newLimiter(t, project.Config{Models: rl(t), Limits: limits}))
				l.join(t.Context(), "now", of("usual"))
				test(t, l)
			})
		})
	}
}

func of(id string) project.Call { return project.Call{Project: id, Model: "m"} }

// next ends a call, and wants another to be the next that passes.
func (l *line) next(t testing.TB, ends, passes string) {
	t.Helper()
	before := len(l.all())
	l.commit(ends, 0, 0)
	synctest.Wait()
	if res, _ := l.result(passes); res == nil || len(l.all()) != before+1 {
		t.Fatalf("%q have passed; want %q to be the next", l.all(), passes)
	}
}

// Projects of a higher priority have their turns first, whoever came first, and however
// heavy the others are. Those of the calls have no part in it.
func TestProjectPriority(t *testing.T) {
	ofRanks(t, func(t *testing.T, l *line) {
		for _, id := range []string{"low", "usual", "high", "highest"} {
			l.join(t.Context(), id, of(id))
			urgent := of(id)
			urgent.Priority = -len(l.came)
			l.join(t.Context(), id+" too", urgent)
		}
		l.passed(t, "now")
		l.next(t, "now", "highest")
		l.next(t, "highest", "highest too")
		l.next(t, "highest too", "high")
		l.join(t.Context(), "late", of("highest"))
		l.next(t, "high", "late")
		l.next(t, "late", "high too")
		l.next(t, "high too", "usual")
		l.next(t, "usual", "usual too")
		l.next(t, "usual too", "low")
		l.next(t, "low", "low too")
	})
}

// A project waits as long as those of a higher priority do, and no longer than it may.
func TestLowPriorityStarves(t *testing.T) {
	ofRanks(t, func(t *testing.T, l *line) {
		patient := of("low")
		patient.MaxWait = 3 * time.Second
		l.join(t.Context(), "low", patient)
		last := "now"
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.join(t.Context(), name, of("high"))
			time.Sleep(time.Second)
			l.next(t, last, name)
			last = name
		}
		l.failed(t, "low", 3*time.Second, context.DeadlineExceeded)
	})
}

// Who comes while others wait passes if it comes before all of them: at once, if there
// is room for it.
func TestHighPriorityPassesThoseWhoWait(t *testing.T) {
	ofRanks(t, func(t *testing.T, l *line) {
		l.cancel("now")
		all := of("usual")
		all.Estimated = 60
		l.join(t.Context(), "first", all)
		l.commit("first", 60, 0)
		l.join(t.Context(), "waits", all) // for the minute to be over
		small := all
		small.Estimated = 10
		for id, allowed := range map[string]bool{"low": false, "usual": false, "high": true} {
			small.Project = id
			res, d, err := l.Take(t.Context(), small)
			if err != nil || d.Allowed != allowed {
				t.Errorf("%s: %t, %q, %v, %v", id, d.Allowed, d.Exceeded, d.RetryAfter, err)
			}
			res.Cancel()
		}
		l.sleep(time.Minute)
		l.passed(t, "now", "first", "waits")
	})
}

// A priority that is set counts from the next call of the project that has to wait.
func TestPriorityIsSet(t *testing.T) {
	ofRanks(t, func(t *testing.T, l *line) {
		l.join(t.Context(), "high", of("high"))
		l.join(t.Context(), "low", of("low"))
		setLimit(t, l.Limiter, "low", project.Limit{Priority: 2})
		l.next(t, "now", "high")
		l.join(t.Context(), "high too", of("high"))
		l.join(t.Context(), "low too", of("low"))
		l.next(t, "high", "low")
		l.next(t, "low", "low too")
		l.next(t, "low too", "high too")
	})
}

// A project of a higher priority that waits for what it may use itself leaves the model
// to others.
func TestHighPriorityStepsAside(t *testing.T) {
	ofRanks(t, func(t *testing.T, l *line) {
		setLimit(t, l.Limiter, "high", project.Limit{Priority: 5, RequestsPerMinute: 1})
		l.join(t.Context(), "high", of("high"))
		l.join(t.Context(), "high too", of("high"))
		l.join(t.Context(), "usual", of("usual"))
		l.next(t, "now", "high")
		l.next(t, "high", "usual")
		l.join(t.Context(), "usual too", of("usual"))
		l.sleep(time.Minute)
		l.next(t, "usual", "high too")
		l.next(t, "high too", "usual too")
	})
}
