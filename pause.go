package ratelimit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/llm"
)

// pauses is until when the providers of models take no calls: Unix nanoseconds of
// the limiter's clock.
type pauses struct {
	until atomic.Pointer[map[string]int64] // replaced, never changed; nil: none
	mu    sync.Mutex                       // held while it is replaced
}

const (
	mostPaused   = 4096           // models
	longest      = 24 * time.Hour // pause
	samePause    = 250 * time.Millisecond
	pauseSetting = "pause/" // and the model's name
)

// left returns how much longer a model is paused.
func (p *pauses) left(model string, now int64) time.Duration {
	until := p.until.Load()
	if until == nil {
		return 0
	}
	return time.Duration(max((*until)[model]-now, 0))
}

// extend pauses models until a time, unless they are for longer. It reports whether
// that makes a difference.
func (p *pauses) extend(model string, now, until int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until = min(until, now+int64(longest))
	was := now + int64(p.left(model, now))
	if until <= was {
		return false
	}
	live := p.live(now)
	if len(live) >= mostPaused && was == now {
		return false
	}
	live[model] = until
	p.until.Store(&live)
	return until-was > int64(samePause)
}

// end ends the pause of a model.
func (p *pauses) end(model string, now int64) (was bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := p.live(now)
	_, was = live[model]
	delete(live, model)
	p.until.Store(&live)
	return was
}

// live returns a copy of the pauses that have not ended.
func (p *pauses) live(now int64) map[string]int64 {
	live := map[string]int64{}
	if until := p.until.Load(); until != nil {
		maps.Copy(live, *until)
	}
	maps.DeleteFunc(live, func(_ string, until int64) bool { return until <= now })
	return live
}

// pause lets no call of a model pass for as long as its provider has said.
func (rl *RateLimiter) pause(ctx context.Context, model string, said llm.Limits) {
	now := rl.clock()
	until := now + int64(min(max(said.Pause, 0), longest))
	news := rl.pauses.extend(model, now, until)
	rl.observeProvider(ctx, Event{Kind: EventPaused, Model: model, RetryAfter: said.Pause, Cause: said.Cause})
	if news {
		rl.post(ctx, model, until)
	}
}

// unpause ends a model's pause.
func (rl *RateLimiter) unpause(model string) {
	if rl.pauses.end(model, rl.clock()) {
		rl.post(context.Background(), model, 0)
	}
}

// posting is a pause as a setting of a store.
type posting struct {
	Until int64 `json:"until_ms"` // Unix milliseconds; 0: it has ended
}

// post lets those who share the store know of a pause. Models without a quota may
// have any names, so they are not told of: they will hear it from the provider.
func (rl *RateLimiter) post(ctx context.Context, model string, until int64) {
	p, ok := rl.keeper.(*posted)
	if !ok || (*rl.quotas.Load())[model] == nil {
		return
	}
	up := int64(time.Millisecond) - 1
	values := map[string]posting{model: {(until + up) / int64(time.Millisecond)}}
	if _, err := settings.Put(context.WithoutCancel(ctx), p.keeper, pauseSetting, values, false); err != nil {
		rl.miss(err)
	}
}

// hearPauses takes over the pauses that others have posted.
func (rl *RateLimiter) hearPauses(values map[string]string) {
	posted, _ := settings.Parse(values, pauseSetting, checkPosting, rl.miss)
	now := rl.clock()
	for model, p := range posted {
		if p.Until == 0 {
			if rl.pauses.end(model, now) {
				rl.find(model).line.Wake()
			}
			continue
		}
		rl.pauses.extend(model, now, p.Until*int64(time.Millisecond))
	}
}

func checkPosting(model string, p posting) error {
	if p.Until < 0 || p.Until > maxPosted {
		return fmt.Errorf("ratelimit: until_ms of %d: it must be from 0 to %d", p.Until, int64(maxPosted))
	}
	return checkName(model)
}

const maxPosted = math.MaxInt64 / int64(time.Millisecond)
