package project_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// Spend waits in turn for as long as it may.
func TestSpendWaits(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1, TokensPerMinute: 5}}, func(t *testing.T, l *line, c project.Call) {
		c.MaxWait = 70 * time.Second
		if d := spend(t, l.Limiter, c); !d.Allowed || len(d.Windows()) != 1 {
			t.Fatalf("%+v", d)
		}
		if d := spend(t, l.Limiter, c); !d.Allowed || time.Since(l.start) != time.Minute {
			t.Fatalf("after %v: %+v", time.Since(l.start), d)
		}
		c.MaxWait = 10 * time.Second
		d, err := l.Spend(t.Context(), c)
		if d.Allowed || !errors.Is(err, context.DeadlineExceeded) || d.Exceeded != "minute" || d.RetryAfter != time.Minute || time.Since(l.start) != time.Minute {
			t.Errorf("after %v: %t, %q, %v, %v", time.Since(l.start), d.Allowed, d.Exceeded, d.RetryAfter, err)
		}
		if left := left(t, l.Limiter, "p"); left["minute"] != 0 || left["tokens-minute"] != 5 {
			t.Errorf("left: %v", left)
		}
		c.Estimated = 6
		if _, err := l.Spend(t.Context(), c); !errors.Is(err, project.ErrNever) {
			t.Errorf("%v; want %v", err, project.ErrNever)
		}
	})
}
