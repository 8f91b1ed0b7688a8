package admit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

func TestJudge(t *testing.T) {
	here := t.Context()
	gone, cancel := context.WithCancel(here)
	cancel()
	late, cancel := context.WithDeadline(here, time.Unix(0, 0))
	defer cancel()

	allowed := project.Decision{Allowed: true}
	denied := project.Decision{Limit: "requests_per_minute", RetryAfter: time.Minute}
	never := project.Decision{Limit: "requests_per_minute", RetryAfter: project.Never}
	var unknown project.Decision
	wrap := func(err error) error { return fmt.Errorf("ratelimit: waiting: %w", err) }
	for _, c := range []struct {
		name string
		ctx  context.Context
		d    project.Decision
		err  error
		want Answer
	}{
		{"allowed", here, allowed, nil, Pass},
		{"allowed at the last moment", gone, allowed, nil, Pass},
		{"denied", here, denied, nil, Later},
		{"too large", here, never, nil, Never},
		{"too large to wait", here, never, wrap(project.ErrNever), Never},
		{"invalid", here, unknown, wrap(project.ErrInvalid), Invalid},
		{"too many wait", here, denied, wrap(project.ErrCrowded), Later},
		{"waited too long", here, denied, wrap(context.DeadlineExceeded), Later},
		{"waited until its own deadline", late, denied, wrap(context.DeadlineExceeded), Later},
		{"gone while it waited", gone, denied, wrap(context.Canceled), Left},
		{"gone before it asked", gone, unknown, wrap(context.Canceled), Left},
		{"lost", here, unknown, errors.New("lost"), Lost},
		{"lost while it waited", here, denied, errors.New("lost"), Lost},
		{"the store was too slow", here, unknown, wrap(context.DeadlineExceeded), Lost},
		{"asked after its deadline", late, unknown, wrap(context.DeadlineExceeded), Left},
		{"the limiter was closed while it waited", here, denied, wrap(context.Canceled), Lost},
	} {
		r := Result{Decision: c.d, Err: c.err}
		if got := r.judge(c.ctx); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestCeil(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0:                               0,
		1:                               1,
		time.Second:                     1,
		time.Second + 1:                 2,
		time.Minute:                     60,
		math.MaxInt64:                   9_223_372_037,
		9_223_372_036 * time.Second:     9_223_372_036,
		59*time.Second + 999_999_999:    60,
		-time.Second - time.Millisecond: -1,
	} {
		if got := ceilSeconds(d); got != want {
			t.Errorf("%d: %d, want %d", d, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, time.Hour: 3600} {
		r := Result{Decision: project.Decision{RetryAfter: d}}
		if got := r.Seconds(); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
}
