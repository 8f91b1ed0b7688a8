package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// Asked is what each limit has answered to a call: see [Call].Asked. Its method Limits returns the answers, Clone a copy
// that stays, and Forget resets it. The zero Asked is ready to use, and may be used again for another call.
type Asked = engine.Asked

// LimitAnswer is what one limit has answered to a call: whose limit it is (Owner; empty is the model's), its name, and
// in its unit how much of Max was used before the call and how much the call needed.
type LimitAnswer = engine.LimitAnswer

// Denier returns whose limit it is that denies the call or that earlier calls wait for, as in
// [LimitAnswer]. That is not known of a limit of a project that earlier calls wait for.
func (d *Decision) Denier() (owner string, known bool) {
	if d.Code == DecisionProjectLimit || d.Code == "" {
		return d.Owner, d.Owner != ""
	}
	return "", d.Limit != ""
}

// DecideCall returns the decision that TryAcquireCall would, and takes nothing: see Decide. An error
// says that the call is not valid, or that the store could not be asked.
func (rl *RateLimiter) DecideCall(ctx context.Context, c Call) (d Decision, err error) {
	err = rl.decide(ctx, &c, &d)
	return d, err
}

// WaitingCall is a call that waits for its turn.
type WaitingCall struct {
	Tag            any // the call's own
	Project, Model string
	Tokens         int64 // that it asks for

	Since    time.Time
	Until    time.Time // when it gives up; zero: when its context ends
	Limit    string    // that it waits for, as in [event.Event]
	Owner    string    // whose limit it is, as in [LimitAnswer]
	Known    bool      // the owner is known: if not, the call waits behind others
	PassesAt time.Time // when Limit lets the call pass at the earliest; zero: nobody knows
	Position int       // from 1, among the calls that wait for the model; without one, for the project
}

// WaitingCalls returns the calls of this limiter that wait and match, in the order in which calls of
// one model pass if none comes or leaves.
func (rl *RateLimiter) WaitingCalls(match func(tag any, project, model string) bool) (list []WaitingCall) {
	for _, w := range rl.engine.Waits(func(c *engine.Call) bool { return match(c.Tag, c.Project, c.Model) }) {
		c := WaitingCall{
			Tag: w.Call.Tag, Project: w.Call.Project, Model: w.Call.Model, Tokens: w.Tokens,
			Since: state.UTC(w.Since), Limit: w.WaitsFor.Limit, Position: w.Position, Known: w.WaitsFor.Scope != nil,
		}
		if s := w.WaitsFor.Scope; s != nil && !s.OfModel() {
			c.Owner = s.Name
		}
		if w.Call.MaxWait > 0 {
			c.Until = c.Since.Add(w.Call.MaxWait)
		}
		if w.WaitsFor.At > 0 && !w.WaitsFor.Guess {
			c.PassesAt = state.UTC(w.WaitsFor.At)
		}
		list = append(list, c)
	}
	return list
}

// EachWaiting calls do with the project and the model of each call of this limiter that waits, and with
// how long it has waited. do must not take long.
func (rl *RateLimiter) EachWaiting(do func(project, model string, waited time.Duration)) {
	now := rl.engine.Now()
	rl.engine.EachWait(func(c *engine.Call, since int64) { do(c.Project, c.Model, time.Duration(max(now-since, 0))) })
}
