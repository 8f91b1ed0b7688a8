package project_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// While a call that has waited is on its way to a store that is far, nobody of its
// project who comes later takes what it has waited for.
func TestNewcomersComeLater(t *testing.T) {
	limit := project.Limit{TokensPerMinute: 10, RequestsPerMinute: 10}
	for of, c := range map[string]project.Call{"tokens": {Requests: 1, Estimated: 6}, "requests": {Requests: 6}} {
		t.Run(of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wantNewcomersToWait(t, newLine(newLimiter(t, project.Config{Default: &limit, Store: far{store.NewMemory()}})), c)
			})
		})
	}
}

// wantNewcomersToWait wants two calls that wait to pass one after another, whoever
// comes in between and asks for a little less.
func wantNewcomersToWait(t *testing.T, l *line, c project.Call) {
	c.Project = "p"
	l.join(t.Context(), "a", c)
	l.sleep(time.Second)
	l.join(t.Context(), "b", c)
	l.sleep(2 * time.Second)
	l.join(t.Context(), "c", c)
	l.sleep(time.Minute - away)
	var newcomers sync.WaitGroup
	for range 400 { // from before "b" asks until it has passed
		newcomers.Go(func() {
			c := project.Call{Project: "p", Requests: max(c.Requests-1, 1), Estimated: max(c.Estimated-1, 0)}
			d := spend(t, l.Limiter, c)
			_, taken, err := l.Take(t.Context(), c)
			for _, d := range []project.Decision{d, taken} {
				if d.Allowed || d.RetryAfter <= 0 || d.Exceeded == "" || err != nil {
					t.Errorf("at %v: %t, %q, %v, %v", time.Since(l.start), d.Allowed, d.Exceeded, d.RetryAfter, err)
				}
			}
		})
		time.Sleep(100 * time.Microsecond)
	}
	newcomers.Wait()
	l.passed(t, "a", "b")
	l.sleep(2*time.Minute + time.Second)
	l.passed(t, "a", "b", "c")
}
