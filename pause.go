package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/llm"
)

// DefaultMaxPause is the MaxPause of a [Config] that has none.
const DefaultMaxPause = 5 * time.Minute

const pausePrefix = "pause/" // the model's name follows

// Paused returns how much longer the provider of a model takes no calls of it: see
// [RateLimiter.Heed].
func (rl *RateLimiter) Paused(model string) time.Duration {
	s, now, ok := rl.pauseOf(model)
	if !ok {
		return 0
	}
	return time.Duration(max(s.Until-now, 0))
}

// PauseCause returns why the provider of a model takes no calls of it. It is empty if the model is not
// paused, and if only another limiter on the store knows why.
func (rl *RateLimiter) PauseCause(model string) llm.Cause {
	s, _, _ := rl.pauseOf(model)
	return s.Cause
}

// pauseOf returns the pause of a model, if there is one, and the time. If it finds that a
// pause has ended, it sends the event of that.
func (rl *RateLimiter) pauseOf(model string) (s feedback.Pause, now int64, ok bool) {
	if _, ok = rl.pauses.Get(model); !ok { // the usual case, which does not read the clock
		return s, 0, false
	}
	now = rl.engine.Now()
	s, ok = rl.pauseAt(model, now)
	return s, now, ok
}

// pauseAt is pauseOf for a caller that has read the clock.
func (rl *RateLimiter) pauseAt(model string, now int64) (s feedback.Pause, ok bool) {
	if s, ok = rl.pauses.Get(model); !ok || now < s.Ends {
		return s, ok
	}
	rl.resume(model, now, func(s feedback.Pause) bool { return s.Ends <= now })
	return feedback.Pause{}, false
}

// isPaused reports whether a model is paused, so that at most a probe may pass.
func (rl *RateLimiter) isPaused(model string) bool {
	_, _, ok := rl.pauseOf(model)
	return ok
}

// pause pauses a model for as long as its provider demands, and no longer than most. Only
// probes pass.
func (rl *RateLimiter) pause(ctx context.Context, model string, said llm.Limits, most time.Duration) {
	rl.pauseOf(model) // sends the event of an earlier pause that has ended
	now := rl.engine.Now()
	began, news := rl.pauses.Extend(model, now, feedback.Throttle{At: now, Length: said.Pause, Max: most, Cause: said.Cause})
	length := max(min(said.Pause, feedback.MaxPause, most), 0)
	rl.observeProvider(ctx, event.Event{Kind: event.Paused, Model: model, RetryAfter: length, Cause: said.Cause, Began: began})
	if news {
		rl.storePause(ctx, model, storedPause{From: now, Until: now + int64(length)})
	}
}

// resume ends a model's pause if ends returns true for it. It sends the event, and lets
// waiting calls go on. It reports whether a pause has ended.
func (rl *RateLimiter) resume(model string, now int64, ends func(s feedback.Pause) bool) bool {
	s, ok := rl.pauses.End(model, now, ends)
	if !ok {
		return false
	}
	if s.Cause != "" {
		lasted := time.Duration(min(now, s.Ends) - s.From)
		rl.observeProvider(context.Background(), event.Event{Kind: event.Resumed, Model: model, Waited: lasted, Cause: s.Cause})
	}
	rl.engine.Wake(rl.find(model).scope)
	return true
}

// unpause is resume for all limiters on the store.
func (rl *RateLimiter) unpause(model string, ends func(s feedback.Pause) bool) {
	now := rl.engine.Now()
	if rl.resume(model, now, ends) {
		rl.storePause(context.Background(), model, storedPause{Ended: now + 1})
	}
}

// storedPause is a pause as a setting of a store. It says either from when until when the
// pause is, or that every pause that was reported before Ended has ended. Times are Unix
// nanoseconds, so nodes agree as far as their clocks do. A node may read a pause only after
// the pause was ended; the next end that it reads still ends that pause, because of From.
type storedPause struct {
	From  int64 `json:"from_ns,omitempty"` // 0: an older version has posted it
	Until int64 `json:"until_ns,omitempty"`
	Ended int64 `json:"ended_ns,omitempty"`
}

// storePause writes a pause to the store, for the other nodes. Pauses of models without a quota
// are not written, because clients may invent any number of names: each node learns of those
// pauses from the provider.
func (rl *RateLimiter) storePause(ctx context.Context, model string, said storedPause) {
	k, ok := rl.keeper.(*settingsKeeper)
	if !ok || (*rl.quotas.Load())[model] == nil {
		return
	}
	values := map[string]storedPause{model: said}
	if _, err := settings.Put(context.WithoutCancel(ctx), k.store, pausePrefix, values, false); err != nil {
		rl.engine.Miss(err)
	}
}

// loadPauses takes over the pauses that other nodes have written to the store.
func (rl *RateLimiter) loadPauses(values map[string]string) {
	stored, _ := settings.Parse(values, pausePrefix, checkStoredPause, rl.engine.Miss)
	now := rl.engine.Now()
	for model, p := range stored {
		if s, _ := rl.pauses.Get(model); p.Until > max(s.Ends, now) {
			rl.pauses.Extend(model, now, feedback.Throttle{At: cmp.Or(p.From, now), Length: time.Duration(p.Until - now), Max: rl.maxPause})
		}
		rl.resume(model, now, func(s feedback.Pause) bool { return s.Heard < p.Ended })
	}
}

func checkStoredPause(model string, p storedPause) error {
	if least := min(p.From, p.Until, p.Ended); least < 0 {
		return fmt.Errorf("ratelimit: a time of %d ns: it must not be negative", least)
	}
	return modelname.Check(model)
}
