package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Heed takes into account what a provider has said of its limits in its answer to a
// call of a model:
//
//   - Its limits replace the maxima of a quota that is Auto.
//   - Where it has less left than the quota, others use the same account: the quota
//     gives no more than that, until it says otherwise or what is used elsewhere has
//     come back. Never does it give more than it would without.
//   - Where it has refused the call, the model is paused for as long as it said, for
//     all who share the limiter; on Redis, for all limiters there.
//
// Package llmhttp calls it; others read a response with [llm.ReadLimits].
func (rl *RateLimiter) Heed(ctx context.Context, model string, said llm.Limits) {
	if m := (*rl.quotas.Load())[model]; m != nil && len(said.Windows) > 0 {
		rl.learn(ctx, m, said.Windows)
		rl.heedOthers(ctx, m, said.Windows)
	}
	if said.Cause != "" && checkName(model) == nil {
		rl.pause(ctx, model, said)
	}
}

// learn lets what the provider grants replace the maxima of a quota that is Auto.
func (rl *RateLimiter) learn(ctx context.Context, m *model, windows []llm.Window) {
	q := m.rules.Load().quota
	if !q.Auto {
		return
	}
	for _, w := range windows {
		d, ok := dimensionOf(w)
		if !ok || w.Limit < 1 || w.Limit > maxQuota || int64(q.max(d)) == w.Limit {
			continue
		}
		q = q.with(d, int(w.Limit))
		rl.observeProvider(ctx, Event{Kind: EventLearned, Model: m.name, Limit: facts[d].name, Said: w.Limit})
	}
	if q == m.rules.Load().quota {
		return
	}
	if err := rl.SetQuota(m.name, q); err != nil {
		rl.miss(err)
	}
}

// dimensionOf returns the dimension of a quota that is the window of a provider's.
func dimensionOf(w llm.Window) (d dimension, ok bool) {
	switch [2]any{w.Unit, w.Per} {
	case [2]any{llm.Requests, time.Minute}:
		return rpm, true
	case [2]any{llm.Requests, llm.Day}:
		return rpd, true
	case [2]any{llm.AllTokens, time.Minute}:
		return tpm, true
	case [2]any{llm.AllTokens, llm.Day}:
		return tpd, true
	case [2]any{llm.InputTokens, time.Minute}:
		return inputTPM, true
	case [2]any{llm.OutputTokens, time.Minute}:
		return outputTPM, true
	}
	return 0, false
}

// with returns the quota with another maximum.
func (q ModelQuota) with(d dimension, most int) ModelQuota {
	*[dimensions]*int{&q.MaxRPD, &q.MaxRPM, &q.MaxTPM, &q.MaxInputTPM, &q.MaxOutputTPM, &q.MaxTPD, &q.MaxConcurrent}[d] = most
	return q
}

func (rl *RateLimiter) observeProvider(ctx context.Context, e Event) {
	if rl.observer == nil {
		return
	}
	e.RemainingMinute = -1
	e.Limited = (*rl.quotas.Load())[e.Model] != nil
	rl.observer.Observe(ctx, e)
}
