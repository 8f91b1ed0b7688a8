package ratelimit

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// Asked is what each limit has answered to a call: see [Call].Asked. The zero Asked is ready to use,
// and may be used again for another call, which spares its memory.
type Asked struct{ kept engine.Asked }

// LimitAnswer is what one limit has answered to a call.
type LimitAnswer struct {
	Owner string // whose limit it is, as in [project.Decision]; empty: the model's
	Limit string // its name, as in [Event]
	Unit  string // "requests", "tokens", "calls" at a time, or "nanodollars"

	Max       int64
	Used      int64 // before the call
	Reserved  int64 // the part of Used that calls under way in this process held, if the limit reserves the most of a call
	Elsewhere int64 // what others use of the account, as the provider reports it
	Needed    int64 // by the call

	RetryAfter time.Duration // until the limit lets the call pass: zero if it does, [Never] if it cannot
	ResetAfter time.Duration // until nothing is used of it, if nothing else passes; zero if that is not known

	Shadow bool        // the limit is in shadow: it counts, and denies nothing
	Share  DeniedShare // of a project that has used its share of the limit; zero for any other answer
}

// keep copies what the limits have answered, if the caller wants to know.
func (a *Asked) keep(p *preparedCall, r *engine.Result) {
	if a != nil {
		a.kept.Keep(&p.Call, r)
	}
}

// Engine returns the engine's part. It is for package gateway alone.
func (a *Asked) Engine() *engine.Asked { return &a.kept }

// Forget makes a that of a call that no limit was asked about.
func (a *Asked) Forget() { a.kept.Forget() }

// Clone returns a copy that does not change when a is used again.
func (a *Asked) Clone() *Asked { return &Asked{a.kept.Clone()} }

// Limits returns what each limit has answered: those of the model, of the call's project and of all
// above it, of its key and of its run. It is empty if none was asked.
func (a *Asked) Limits() (list []LimitAnswer) {
	for _, each := range a.kept.Answers() {
		list = append(list, limitAnswer(&each))
	}
	return list
}

func limitAnswer(a *engine.Answer) LimitAnswer {
	l := LimitAnswer{Limit: engine.PausedName, Unit: "calls", Needed: 1, RetryAfter: a.RetryAfter, ResetAfter: a.ResetAfter}
	l.Shadow = a.Scope.Kind == engine.Shadow
	if !a.Scope.OfModel() {
		l.Owner = a.Scope.Name
	}
	if a.Limit == nil {
		return l
	}
	l.Limit, l.Unit, l.Max, l.Used, l.Reserved, l.Needed = a.Limit.Name, a.Limit.Unit.Counted(), a.Limit.Limit.Burst(), a.Used, a.Held, a.Needed
	if s, ok := a.Rules.Setup.(*setup); ok && s.missing != nil && a.Limit.ID < int(kind.Models) {
		l.Elsewhere = s.missing.N[a.Limit.ID]
		l.Max += l.Elsewhere // which the limit was lowered by
	}
	if a.Share != nil {
		l.Limit, l.Max, l.Elsewhere = a.Share.Name, a.Share.Share, 0
		l.Share = DeniedShare{int(a.Share.Share), int(a.Share.Used), a.Share.Members}
	}
	return l
}

// Denier returns whose limit it is that denies the call or that earlier calls wait for, as in
// [LimitAnswer]. That is not known of a limit of a project that earlier calls wait for.
func (d *Decision) Denier() (owner string, known bool) {
	if d.Code == DecisionProjectLimit || d.Code == "" {
		return d.Project.Owner, d.Project.Owner != ""
	}
	return "", d.Limit != ""
}

// DecideCall returns the decision that TryAcquireCall would, and takes nothing: see Decide. An error
// says that the call is not valid, or that the store could not be asked.
func (rl *RateLimiter) DecideCall(ctx context.Context, c Call) (d Decision, err error) {
	var prepared preparedCall
	var scopes callScopes
	n := rl.prepare(&c, &prepared, &scopes)
	if prepared.unlimited {
		rl.fillUnlimited(&prepared, &d)
		return d, nil
	}
	var r engine.Result
	err = rl.engine.Look(ctx, &prepared.Call, scopes[:n], &r)
	if err != nil && prepared.Invalid == nil {
		return lost(err), err
	}
	c.Asked.keep(&prepared, &r)
	rl.fillDecision(&prepared, &r, &d)
	return d, err
}

// WaitingCall is a call that waits for its turn.
type WaitingCall struct {
	Tag            any // the call's own
	Project, Model string
	Tokens         int64 // that it asks for

	Since    time.Time
	Until    time.Time // when it gives up; zero: when its context ends
	Limit    string    // that it waits for, as in [Event]
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
			Tag: w.Call.Tag, Project: w.Call.Project, Model: w.Call.Model, Tokens: w.Call.Ask.Amounts[engine.AllTokens],
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
