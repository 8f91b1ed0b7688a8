package project_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// Who would wait for as long as it may, or longer, is told at once; who waits behind others, when
// its time is over. Nothing is charged.
func TestMaxWait(t *testing.T) {
	inLine(t, project.Config{Default: &project.Limit{RequestsPerMinute: 1}}, func(t *testing.T, l *line, c project.Call) {
		l.join(t.Context(), "first", c)
		l.sleep(20 * time.Second)
		c.MaxWait = 40 * time.Second
		l.join(t.Context(), "too long", c)
		l.failed(t, "too long", 20*time.Second, context.DeadlineExceeded)
		if _, d := l.result("too long"); d.Allowed || d.Exceeded != "minute" || d.RetryAfter != 40*time.Second {
			t.Errorf("%t, %q, %v", d.Allowed, d.Exceeded, d.RetryAfter)
		}
		c.MaxWait = 41 * time.Second
		l.join(t.Context(), "just right", c)
		c.MaxWait = 50 * time.Second
		l.join(t.Context(), "behind", c)
		l.sleep(time.Minute)
		l.passed(t, "first", "just right")
		l.sleep(80 * time.Second)
		l.failed(t, "behind", time.Minute, context.DeadlineExceeded) // since now it is told
		l.passed(t, "first", "just right")
		l.sleep(2 * time.Minute)
		use(t, l.Limiter, "p", 1)
	})
	l := limited(t, project.Limit{})
	for door, err := range everyDoor(l, project.Call{Project: "p", MaxWait: -1}) {
		if !errors.Is(err, project.ErrInvalid) {
			t.Errorf("%s: %v", door, err)
		}
	}
}
