package ratelimit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// model is what this process knows of one model: the scope with the limits of its quota, and
// what its provider has reported. It implements [engine.Gate] for its scope.
type model struct {
	limiter *RateLimiter
	name    string
	scope   *engine.Scope
	setup   atomic.Pointer[setup]

	elsewhere atomic.Pointer[feedback.Elsewhere] // what others use of the account; nil: nothing
	compared  atomic.Bool                        // the provider's answers are compared with the quota
	snapshot  usageSnapshot
	learned   int64 // when the quota was last learned; guarded by the limiter's setting

	mu sync.Mutex // guards changes of elsewhere
}

// newModel returns a model with a quota, whose scope is known to the engine.
func (rl *RateLimiter) newModel(name string, q state.Quota) *model {
	m := &model{limiter: rl, name: name}
	m.scope = rl.engine.NewShared(state.KeyPrefix(name), name, m)
	rl.engine.Miss(m.setQuota(q))
	return m
}

// charge adds the model's scope to the others that a call is charged to: before them, or behind them if it counts the
// call and does not deny it. A nil model adds nothing.
func (m *model) charge(c *Call, own engine.Scopes) engine.Scopes {
	switch {
	case m == nil:
		return own
	case c.ShadowModel:
		return append(own, m.scope.Shadow())
	}
	return slices.Insert(own, 0, m.scope)
}

// modelOf returns the model that a call was charged to, and what its limits have answered: nil if they were not asked.
func modelOf(r *engine.Result) (*model, *engine.Standing) {
	all := r.Outcome.All()
	for i := range all {
		if m, ok := all[i].Scope.Real().Gate().(*model); ok {
			return m, &all[i]
		}
	}
	return nil, nil
}

// quota returns the quota that the rules of the model's scope are made from.
func (m *model) quota() *state.Quota { return &m.setup.Load().quota }

// setQuota replaces the quota, and the limits of the model's scope.
func (m *model) setQuota(q state.Quota) error {
	before := m.setup.Swap(newSetup(q))
	err := m.limiter.engine.SetRules(m.scope, newRules(q))
	if err == nil {
		err = m.limiter.engine.SetQueue(m.name, m.scope.Key, int64(q.MaxEnqueuedTokens))
	}
	if err != nil && before != nil {
		m.setup.Store(before)
	}
	return err
}

// Idle implements [engine.Gate]: the model has no pause, and nobody else uses its account.
func (m *model) Idle() bool {
	if m.elsewhere.Load() != nil {
		return false
	}
	_, paused := m.limiter.pauses.Get(m.name)
	return !paused
}

// Look implements [engine.Gate]: it returns for how long a pause denies a call.
func (m *model) Look(now int64) engine.Closed {
	if s, ok := m.limiter.pauseAt(m.name, now); ok && now < s.Probe {
		return closedBy(&s, now)
	}
	return engine.Closed{}
}

// Admit implements [engine.Gate]: during a pause it admits a call as the probe, or denies it.
func (m *model) Admit(now int64) (probe int64, closed engine.Closed) {
	if _, ok := m.limiter.pauseAt(m.name, now); !ok {
		return 0, closed
	}
	probe, denying := m.limiter.pauses.Admit(m.name, now)
	if denying != (feedback.Pause{}) {
		closed = closedBy(&denying, now)
	}
	return probe, closed
}

// ProbeEnded implements [engine.Gate]. A probe that the provider has served ends the pause. After any other, another call
// may be the probe: after a rest if the provider has refused it.
func (m *model) ProbeEnded(now, probe int64, found engine.Probe) {
	switch found {
	case engine.ProbeServed:
		m.limiter.unpause(m.name, func(s feedback.Pause) bool { return s.Number == probe })
	case engine.ProbeRefused:
		m.limiter.pauses.GiveBack(m.name, now, probe, feedback.ProbeRest)
	default:
		m.limiter.pauses.GiveBack(m.name, now, probe, 0)
	}
}

// closedBy returns for how long a pause denies calls, and when the next probe may pass.
func closedBy(s *feedback.Pause, now int64) engine.Closed {
	return engine.Closed{For: time.Duration(s.Until - now), Probe: time.Duration(min(s.Probe, s.Ends) - now)}
}

// look returns the model's usage, and charges nothing.
func (m *model) look(ctx context.Context) (*engine.Standing, error) {
	return m.limiter.engine.LookAt(ctx, m.scope)
}

// accounts returns the model's usage, and the time in Unix nanoseconds at which it was read.
func (m *model) accounts(ctx context.Context) (state.Accounts, int64, error) {
	return m.limiter.engine.Read(ctx, m.scope)
}
