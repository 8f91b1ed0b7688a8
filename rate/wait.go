package rate

import (
	"context"
	"fmt"
	"time"
)

// Wait waits for one token; see [Limiter.WaitN].
func (lim *Limiter) Wait(ctx context.Context) error {
	return lim.WaitN(ctx, 1)
}

// WaitN waits until n events may happen, and takes n tokens. It fails at once if n is more than the burst (and the
// limit is not [Inf]), or if the wait would outlast the deadline of ctx: then the error wraps
// [context.DeadlineExceeded]. It also fails when ctx ends: then the error is ctx's. If it fails, it has taken no
// tokens.
func (lim *Limiter) WaitN(ctx context.Context, n int) error {
	if err := lim.tooMany(n); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	deadline, limited := ctx.Deadline()
	if b := lim.bucket.Load(); b != nil {
		now := time.Since(epoch)
		if !limited || now <= deadline.Sub(epoch) {
			if ok, _ := b.take(int64(now)-b.start, n, ownClock); ok {
				return nil
			}
		}
	}
	t, maxWait := time.Now(), InfDuration
	if limited {
		maxWait = deadline.Sub(t)
	}
	r := lim.reserve(t, ownClock, n, maxWait)
	if !r.ok {
		if err := lim.tooMany(n); err != nil {
			return err
		}
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline: %w", n, context.DeadlineExceeded)
	}
	delay := r.DelayFrom(t)
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

// tooMany returns an error if n is more than the limiter can ever give at once.
func (lim *Limiter) tooMany(n int) error {
	if b := lim.current(); n > b.maxTokens() {
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, b.burst)
	}
	return nil
}
