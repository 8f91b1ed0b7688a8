package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/llm"
)

// pauses is when the providers of models take no calls.
type pauses struct {
	spans atomic.Pointer[map[string]span] // replaced, never changed; nil: none
	mu    sync.Mutex                      // held while it is replaced
}

// span is Unix nanoseconds of the limiter's clock.
type span struct{ from, until int64 }

const (
	mostPaused   = 4096           // models
	longest      = 24 * time.Hour // pause
	samePause    = 250 * time.Millisecond
	pauseSetting = "pause/" // and the model's name
)

// until returns when the pause of a model ends, or ended, or 0 for none.
func (p *pauses) until(model string) int64 {
	spans := p.spans.Load()
	if spans == nil {
		return 0
	}
	return (*spans)[model].until
}

// extend pauses models until a time, unless they are for longer. It reports whether
// that makes a difference.
func (p *pauses) extend(model string, now, until int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until = min(until, now+int64(longest))
	was := max(p.until(model), now)
	if until <= was {
		return false
	}
	live := p.live(now)
	if len(live) >= mostPaused && was == now {
		return false
	}
	live[model] = span{now, until}
	p.spans.Store(&live)
	return until-was > int64(samePause)
}

// end ends the pause of a model, if it began before a time. It reports whether there
// was one.
func (p *pauses) end(model string, now, before int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := p.live(now)
	if s, ok := live[model]; !ok || s.from >= before {
		return false
	}
	delete(live, model)
	p.spans.Store(&live)
	return true
}

// live returns a copy of the pauses that have not ended.
func (p *pauses) live(now int64) map[string]span {
	live := map[string]span{}
	if spans := p.spans.Load(); spans != nil {
		maps.Copy(live, *spans)
	}
	maps.DeleteFunc(live, func(_ string, s span) bool { return s.until <= now })
	return live
}

// Paused returns how much longer the provider of a model takes no calls of it: see
// [RateLimiter.Heed].
func (rl *RateLimiter) Paused(model string) time.Duration {
	until := rl.pauses.until(model)
	if until == 0 { // nearly always: the clock is not needed
		return 0
	}
	return time.Duration(max(until-rl.clock(), 0))
}

// pause lets no call of a model pass for as long as its provider has said.
func (rl *RateLimiter) pause(ctx context.Context, model string, said llm.Limits) {
	now := rl.clock()
	length := min(max(said.Pause, 0), longest)
	until := now + int64(length)
	news := rl.pauses.extend(model, now, until)
	rl.observeProvider(ctx, Event{Kind: EventPaused, Model: model, RetryAfter: length, Cause: said.Cause})
	if news {
		rl.post(ctx, model, posting{Until: until})
	}
}

// unpause ends a model's pause.
func (rl *RateLimiter) unpause(model string) {
	now := rl.clock()
	if rl.pauses.end(model, now, now+1) {
		rl.post(context.Background(), model, posting{Ended: now + 1})
	}
}

// posting is a pause as a setting of a store, in Unix nanoseconds: until when it is, or
// before when all that had begun was ended. Machines go by it as far as their clocks agree.
type posting struct {
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
		rl.miss(err)
	}
}

// hearPauses takes over the pauses that others have posted.
func (rl *RateLimiter) hearPauses(values map[string]string) {
	posted, _ := settings.Parse(values, pauseSetting, checkPosting, rl.miss)
	now := rl.clock()
	for model, p := range posted {
		rl.pauses.extend(model, now, p.Until)
		if rl.pauses.end(model, now, p.Ended) {
			rl.find(model).line.Wake()
		}
	}
}

func checkPosting(model string, p posting) error {
	if p.Until < 0 || p.Ended < 0 {
		return fmt.Errorf("ratelimit: a time of %d ns: it must not be negative", min(p.Until, p.Ended))
	}
	return checkName(model)
}
