package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// model is what this process knows of one model: the scope that its quota makes, and what
// its provider says. It is the gate of the scope.
type model struct {
	limiter *RateLimiter
	name    string
	scope   *admission.Scope

	elsewhere atomic.Pointer[feedback.Elsewhere] // used, by the provider's word; nil: nothing
	glance    atomic.Pointer[glance]             // of what a store has said was used; nil: none yet
	learned   int64                              // when its quota was last learned; the limiter's setting guards it

	mu sync.Mutex // guards changes of elsewhere
}

// newModel returns a model of which nothing is used.
func (rl *RateLimiter) newModel(name string, q state.Quota) *model {
	m := &model{limiter: rl, name: name}
	m.scope = rl.engine.NewShared(state.KeyPrefix(name), name, m)
	rl.engine.Miss(rl.engine.SetRules(m.scope, newRules(q)))
	return m
}

// quota returns the model's quota.
func (m *model) quota() *state.Quota { return &setupOf(m.scope.Rules()).quota }

// Idle is [admission.Gate]'s.
func (m *model) Idle() bool {
	if m.elsewhere.Load() != nil {
		return false
	}
	_, paused := m.limiter.pauses.Get(m.name)
	return !paused
}

// Look is [admission.Gate]'s.
func (m *model) Look(now int64) admission.Closed {
	if s, ok := m.limiter.pauseAt(m.name, now); ok && now < s.Probe {
		return closedBy(&s, now)
	}
	return admission.Closed{}
}

// Admit is [admission.Gate]'s.
func (m *model) Admit(now int64) (probe int64, closed admission.Closed) {
	if _, ok := m.limiter.pauseAt(m.name, now); !ok {
		return 0, closed
	}
	probe, denying := m.limiter.pauses.Admit(m.name, now)
	if denying != (feedback.Pause{}) {
		closed = closedBy(&denying, now)
	}
	return probe, closed
}

// GiveBack is [admission.Gate]'s.
func (m *model) GiveBack(now, probe int64) { m.limiter.pauses.GiveBack(m.name, now, probe, 0) }

// Served is [admission.Gate]'s.
func (m *model) Served(probe int64) {
	m.limiter.unpause(m.name, func(s feedback.Pause) bool { return s.Turn == probe })
}

// Committed is [admission.Gate]'s. A call that has used no tokens was refused for what it
// is, and says nothing about the pause.
func (m *model) Committed(now, probe int64, used int) {
	switch {
	case used > 0:
		m.Served(probe)
	case used == 0:
		m.limiter.pauses.GiveBack(m.name, now, probe, feedback.ProbeRest)
	}
}

// closedBy returns for how long a pause lets nothing pass.
func closedBy(s *feedback.Pause, now int64) admission.Closed {
	return admission.Closed{For: time.Duration(s.Until - now), Probe: time.Duration(min(s.Probe, s.Word) - now)}
}

// look fills in o with what is used of the model. It charges nothing.
func (m *model) look(ctx context.Context, o *admission.Outcome) error {
	return m.limiter.engine.LookAt(ctx, m.scope, o)
}

// accounts returns what was used of the model, and as of which time in Unix nanoseconds.
func (m *model) accounts(ctx context.Context) (state.Accounts, int64, error) {
	return m.limiter.engine.Read(ctx, m.scope)
}
