package project_test

import (
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// A longer window that is added counts what is known to be used, and goes on to
// count it once the shorter one does not.
func TestAddedWindowCountsWhatWasUsed(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{RequestsPerMinute: 10}}))
				c := project.Call{Project: "p", Requests: 10}
				if d := spend(t, l, c); !d.Allowed {
					t.Fatalf("%+v", d)
				}
				time.Sleep(30 * time.Second)
				setLimit(t, l, "p", project.Limit{RequestsPerMinute: 10, RequestsPerHour: 10})
				c.Requests = 1
				for _, wait := range []time.Duration{0, 31 * time.Second, 30 * time.Minute} {
					time.Sleep(wait)
					d := spend(t, l, c)
					if d.Allowed || d.Exceeded != "hour" || left(t, l, "p")["hour"] != 0 {
						t.Errorf("%v later: %t, %q, %v, left: %v", wait, d.Allowed, d.Exceeded, d.RetryAfter, left(t, l, "p"))
					}
				}
			})
		})
	}
}
