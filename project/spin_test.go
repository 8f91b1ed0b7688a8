package project_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// asked is a store that counts how often it is asked, and has enough at some point.
type asked struct {
	*store.Memory
	times atomic.Int64
}

func (a *asked) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if a.times.Add(1) > 1000 {
		return nil, nil, errors.New("asked a thousand times")
	}
	return a.Memory.Take(ctx, charges)
}

// Who is woken and denied again asks once, and then waits.
func TestAskingInVainIsNotRepeated(t *testing.T) {
	for what, wake := range map[string]func(l *project.Limiter){
		"the same limit":  func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 10}) },
		"a smaller limit": func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 9}) },
		"one window more": func(l *project.Limiter) { l.SetLimit("p", project.Limit{TokensPerMinute: 10, TokensPerHour: 10}) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counts := &asked{Memory: store.NewMemory()}
				l := newLimiter(t, project.Config{Default: &project.Limit{TokensPerMinute: 10}, Store: counts})
				start := time.Now()
				var all sync.WaitGroup
				for _, tokens := range []int{1, 9, 5, 5} { // the last two wait
					all.Go(func() {
						if _, _, err := l.Acquire(t.Context(), project.Call{Project: "p", Estimated: tokens}); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				time.Sleep(time.Second)
				before := counts.times.Load()
				wake(l)
				synctest.Wait()
				if n := counts.times.Load() - before; n > 1 {
					t.Errorf("asked %d times", n)
				}
				all.Wait()
				if waited := time.Since(start); waited < time.Minute {
					t.Errorf("all have passed after %v", waited)
				}
			})
		})
	}
}
