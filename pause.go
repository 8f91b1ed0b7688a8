package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/llm"
)

// DefaultMaxPause is the MaxPause of a [Config] that has none.
const DefaultMaxPause = 5 * time.Minute

const pauseSetting = "pause/" // and the model's name

// Paused returns how much longer the provider of a model takes no calls of it: see
// [RateLimiter.Heed].
func (rl *RateLimiter) Paused(model string) time.Duration {
	s, now, ok := rl.pauseOf(model)
	if !ok {
		return 0
	}
	return time.Duration(max(s.Until-now, 0))
}

// pauseOf returns the pause of a model, if there is one, and the time. A pause that is
// found to have ended is told of.
func (rl *RateLimiter) pauseOf(model string) (s feedback.Pause, now int64, ok bool) {
	if _, ok = rl.pauses.Get(model); !ok { // nearly always: the clock is not needed
		return s, 0, false
	}
	now = rl.engine.Now()
	s, ok = rl.pauseAt(model, now)
	return s, now, ok
}

// pauseAt is pauseOf at a time.
func (rl *RateLimiter) pauseAt(model string, now int64) (s feedback.Pause, ok bool) {
	if s, ok = rl.pauses.Get(model); !ok || now < s.Word {
		return s, ok
	}
	rl.resume(model, now, func(s feedback.Pause) bool { return s.Word <= now })
	return feedback.Pause{}, false
}

// isPaused reports whether a model is paused, and at most a probe may pass.
func (rl *RateLimiter) isPaused(model string) bool {
	_, _, ok := rl.pauseOf(model)
	return ok
}

// pause lets no call of a model pass for as long as its provider has said, but for
// probes.
func (rl *RateLimiter) pause(ctx context.Context, model string, said llm.Limits, most time.Duration) {
	rl.pauseOf(model) // tells of one that has ended
	now := rl.engine.Now()
	began, news := rl.pauses.Extend(model, now, feedback.Refusal{At: now, Length: said.Pause, Most: most, Cause: said.Cause})
	length := max(min(said.Pause, feedback.Longest, most), 0)
	rl.observeProvider(ctx, Event{Kind: EventPaused, Model: model, RetryAfter: length, Cause: said.Cause, Began: began})
	if news {
		rl.post(ctx, model, posting{From: now, Until: now + int64(length)})
	}
}

// resume ends a model's pause if it is one that was meant, tells observers, and lets
// waiting calls go on. It reports whether there was one.
func (rl *RateLimiter) resume(model string, now int64, meant func(s feedback.Pause) bool) bool {
	s, ok := rl.pauses.End(model, now, meant)
	if !ok {
		return false
	}
	if s.Cause != "" {
		lasted := time.Duration(min(now, s.Word) - s.From)
		rl.observeProvider(context.Background(), Event{Kind: EventResumed, Model: model, Waited: lasted, Cause: s.Cause})
	}
	rl.engine.Wake(rl.find(model).scope)
	return true
}

// unpause ends a model's pause, if it is one that was meant, for all limiters that
// share the store.
func (rl *RateLimiter) unpause(model string, meant func(s feedback.Pause) bool) {
	now := rl.engine.Now()
	if rl.resume(model, now, meant) {
		rl.post(context.Background(), model, posting{Ended: now + 1})
	}
}

// posting is a pause as a setting of a store, in Unix nanoseconds: from when and until
// when it is, or that every pause which was heard of before Ended has ended. Machines go
// by it as far as their clocks agree. A limiter may hear a posting after its end: the
// end that comes next covers it, because the posting says from when it is.
type posting struct {
	From  int64 `json:"from_ns,omitempty"` // 0: an older version has posted it
	Until int64 `json:"until_ns,omitempty"`
	Ended int64 `json:"ended_ns,omitempty"`
}

// post lets those who share the store know of a pause. Models without a quota may
// have any names, so they are not told of: they will hear it from the provider.
func (rl *RateLimiter) post(ctx context.Context, model string, said posting) {
	p, ok := rl.keeper.(*posted)
	if !ok || (*rl.quotas.Load())[model] == nil {
		return
	}
	values := map[string]posting{model: said}
	if _, err := settings.Put(context.WithoutCancel(ctx), p.keeper, pauseSetting, values, false); err != nil {
		rl.engine.Miss(err)
	}
}

// hearPauses takes over the pauses that others have posted.
func (rl *RateLimiter) hearPauses(values map[string]string) {
	posted, _ := settings.Parse(values, pauseSetting, checkPosting, rl.engine.Miss)
	now := rl.engine.Now()
	for model, p := range posted {
		if s, _ := rl.pauses.Get(model); p.Until > max(s.Word, now) {
			rl.pauses.Extend(model, now, feedback.Refusal{At: cmp.Or(p.From, now), Length: time.Duration(p.Until - now), Most: rl.maxPause})
		}
		rl.resume(model, now, func(s feedback.Pause) bool { return s.Heard < p.Ended })
	}
}

func checkPosting(model string, p posting) error {
	if least := min(p.From, p.Until, p.Ended); least < 0 {
		return fmt.Errorf("ratelimit: a time of %d ns: it must not be negative", least)
	}
	return modelname.Check(model)
}
