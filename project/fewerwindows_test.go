package project_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// fails is a store that fails when it is told to.
type fails struct {
	*store.Memory
	now atomic.Bool
}

var errFails = errors.New("it fails")

func (f *fails) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if f.now.Load() {
		return nil, nil, errFails
	}
	return f.Memory.Take(ctx, charges)
}

// A limit loses windows while a call waits, and then the store fails: the decision is
// the last that the call was told, of the windows that there were.
func TestFewerWindowsAndAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fails{Memory: store.NewMemory()}
		many := project.Limit{RequestsPerMinute: 1, RequestsPerHour: 5, RequestsPerDay: 6, TokensPerMinute: 7, TokensPerHour: 8, TokensPerDay: 9, TokensPerMonth: 10, MaxConcurrent: 11}
		l := newLine(newLimiter(t, project.Config{Default: &many, Store: s}))
		c := project.Call{Project: "p", Estimated: 1}
		l.join(t.Context(), "a", c)
		l.join(t.Context(), "b", c)
		l.sleep(time.Second)
		s.now.Store(true)
		setLimit(t, l.Limiter, "p", project.Limit{RequestsPerDay: 9})
		synctest.Wait()
		l.failed(t, "b", time.Second, errFails)
		if _, d := l.result("b"); d.Allowed || d.Exceeded != "minute" || len(d.Windows()) != 7 || d.Windows()[5].Window.Count != 9 || d.RetryAfter != time.Minute {
			t.Errorf("%t, %q, %v, %+v", d.Allowed, d.Exceeded, d.RetryAfter, d.Windows())
		}
	})
}
