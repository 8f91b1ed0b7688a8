package ratelimit

import (
	"cmp"
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Heed takes into account what a provider reports of its limits in its answer to a
// call of a model:
//
//   - Its limits replace the maxima of a quota that is Auto.
//   - If it has less left than the quota, others use the same account. The quota is lowered
//     by the difference until their usage does not count any more. It is never raised above
//     what it would be without Heed.
//   - If it has throttled the call, the model is paused for as long as the provider asks:
//     for all calls of this limiter, and on Redis for all limiters there.
//
// A pause is no longer than [Config.MaxPause]. After it, and now and then in a long one,
// a single call passes as a probe. If the provider takes the probe, the pause ends for
// all: see [project.Reservation.Served].
//
// Package llmhttp calls Heed for you. To call it yourself, read the provider's response
// with llmhttp.ReadLimits.
func (rl *RateLimiter) Heed(ctx context.Context, model string, said llm.Limits) {
	rl.HeedWithin(ctx, model, said, rl.maxPause)
}

// HeedWithin is Heed with maxPause in place of [Config.MaxPause], which is also used if
// maxPause is 0.
func (rl *RateLimiter) HeedWithin(ctx context.Context, model string, said llm.Limits, maxPause time.Duration) {
	if m := (*rl.quotas.Load())[model]; m != nil && len(said.Windows) > 0 {
		limits := providerLimitsOf(said.Windows)
		rl.learn(ctx, m, &limits)
		rl.compareWithProvider(ctx, m, &limits)
	}
	if said.Cause != "" && modelname.Check(model) == nil {
		rl.pause(ctx, model, said, cmp.Or(max(maxPause, 0), rl.maxPause))
	}
}

// learn replaces the maxima of a quota that is Auto by the limits that the provider reports.
func (rl *RateLimiter) learn(ctx context.Context, m *model, said *providerLimits) {
	if q := *m.quota(); !q.Auto || said.applyTo(q) == q {
		return
	}
	rl.setting.Lock()
	defer rl.setting.Unlock()
	now := rl.engine.Now()
	was := *m.quota() // SetQuota may have changed it before the lock was held
	q := said.applyTo(was)
	if !was.Auto || q == was || m.learned != 0 && now < m.learned+int64(relearn) {
		return
	}
	m.learned = now
	if err := rl.setQuotaLocked(m.name, q); err != nil {
		rl.engine.Miss(err)
		return
	}
	for d := range kind.Models {
		if most := *q.Max(d); most != *was.Max(d) {
			rl.observeProvider(ctx, event.Event{Kind: event.Learned, Model: m.name, Limit: d.Name(), Said: int64(most)})
		}
	}
}

// providerLimits has the limits that a provider reports, by kind. Where it reports several
// windows of one kind, the strictest counts.
type providerLimits [kind.Models]llm.Window

func providerLimitsOf(windows []llm.Window) (s providerLimits) {
	for d := range s {
		s[d].Remaining = -1
	}
	for _, w := range windows {
		d, ok := kind.Reported(string(w.Unit), w.Per)
		if !ok {
			continue
		}
		strictest := &s[d]
		strictest.Per = w.Per
		if w.Limit > 0 && (strictest.Limit == 0 || w.Limit < strictest.Limit) {
			strictest.Limit = w.Limit
		}
		if w.Remaining >= 0 && (strictest.Remaining < 0 || w.Remaining < strictest.Remaining) {
			strictest.Remaining, strictest.Reset = w.Remaining, w.Reset
		}
	}
	return s
}

// reset returns how long it takes until nothing of a dimension is used any more at the
// provider, or 0 where that is not known.
func (s *providerLimits) reset(d kind.Kind) time.Duration {
	if s[d].Reset <= 0 && s[d].Per == time.Minute {
		return time.Minute
	}
	return min(s[d].Reset, feedback.MaxPause)
}

// relearn is the least time between two changes of a quota by learn. Each change may be a write
// that every node of the store follows, and the provider's answers may differ from each other.
const relearn = time.Second

// applyTo returns q with the maxima that the provider reports. Anthropic reports limits of input
// and output tokens, and not always of their total. Where it does not, the total is raised to
// the sum of the two.
func (s *providerLimits) applyTo(q state.Quota) state.Quota {
	for d := range kind.Models {
		if most := s[d].Limit; most > 0 && most <= state.MaxQuota {
			*q.Max(d) = int(most)
		}
	}
	if parts := s[kind.MaxInputTPM].Limit + s[kind.MaxOutputTPM].Limit; s[kind.MaxTPM].Limit == 0 && q.MaxTPM > 0 && parts <= state.MaxQuota {
		q.MaxTPM = max(q.MaxTPM, int(parts))
	}
	return q
}

// observeProvider sends the observer an event about what the provider of e.Model has reported.
func (rl *RateLimiter) observeProvider(ctx context.Context, e event.Event) {
	o := rl.engine.Observer()
	if o == nil {
		return
	}
	e.RemainingMinute = -1
	e.Limited = (*rl.quotas.Load())[e.Model] != nil
	o.Observe(ctx, e)
}
