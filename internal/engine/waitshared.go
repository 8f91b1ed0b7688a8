package engine

import (
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// inPools is a waiting call as the pools of its scopes know it.
type inPools []inPool

// inPool is a waiting call as the pool of one of its scopes knows it.
type inPool struct {
	scope   *Scope
	rules   *Rules
	sharing *sharing
	waiting fair.Waiting
}

// turn notes what the call waits for: whether it is not the limits of the pool, and if it is one of what calls hold, the
// name of that or of its share.
func (p *inPool) turn(e *Engine, own bool, name string) {
	held := slices.IndexFunc(p.sharing.limits, func(i int) bool {
		l := &p.rules.Limits[i]
		return !own && l.Unit.InFlight() && l.Name == strings.TrimSuffix(name, ShareEnd)
	})
	if p.waiting.Turn(own, held) {
		p.tell(e)
	}
}

// tell reports to other processes which members wait for what calls hold.
func (p *inPool) tell(e *Engine) {
	if f := e.fleet.Load(); f != nil {
		f.changed(p.scope, p.sharing)
	}
}

// waitInPools enters a call that waits into the pools of its scopes. said is what its scopes have answered, if they
// were asked.
func (all Scopes) waitInPools(e *Engine, c *Call, said *Outcome) (pools inPools) {
	var o Outcome
	o.begin(e, c.part, all)
	in, own := o.pools(e, c, false)
	if in |= o.scarce(said); in == 0 {
		return nil
	}
	f := e.join()
	for _, cl := range o.claims(c, in, own, make(claims, 0, mostClaims)) {
		if cl.scope.Kind != Shared && cl.pool.Empty() && said.asked {
			cl.pool.Seed(cl.member, cl.terms, e.clock(), cl.used(said, nil))
		}
		pools = append(pools, inPool{cl.scope, cl.rules, cl.sharing, cl.pool.Wait(cl.member, cl.terms, e.clock())})
		if f != nil {
			f.changed(cl.scope, cl.sharing)
		}
	}
	return pools
}

// wantInPools records in the pools of a call's shared scopes that the call was turned away, and does not wait. So its
// flow's share is not lent to calls that wait, until the flow comes again. said is what its scopes have answered, if
// they were asked, and counted is whether the pools have counted that it asked.
func (all Scopes) wantInPools(e *Engine, c *Call, said *Outcome, counted bool) {
	var o Outcome
	o.begin(e, c.part, all)
	in, own := o.pools(e, c, false)
	if in == 0 {
		return
	}
	for _, cl := range o.claims(c, in, own, make(claims, 0, mostClaims)) {
		if cl.scope.Kind == Shared && (!said.asked || said.wants(cl.scope)) {
			cl.pool.Want(cl.member, cl.terms, e.clock(), cl.amounts(), counted)
		}
	}
}

// scarce returns the own scopes that would be divided if there were others, and whose limits deny the call:
// another one that comes should find out that it waits.
func (o *Outcome) scarce(said *Outcome) (in uint32) {
	all := o.all()
	for i := range all {
		s := all[i].Scope
		if by := said.Of(s); by != nil && s.Kind != Shared && all[i].plan.rules.shared() != nil && by.denies() && said.wants(s) {
			in |= 1 << i
		}
	}
	return in
}

// turn enters into the pools what the call has found in its turn: o is what its scopes answered, and aside is whether
// its own scopes deny it longest.
func (all inPools) turn(e *Engine, o *Outcome, aside bool) {
	for i := range all {
		p := &all[i]
		name, wants := "", o.wants(p.scope)
		if s := o.Of(p.scope); wants && s != nil {
			name = s.NameOf()
		}
		if p.scope.Kind != Shared {
			aside = !wants
		}
		p.turn(e, aside, name)
	}
}

// behind enters into the pools that the call waits behind others, which wait for a limit, of their own or not.
func (all inPools) behind(e *Engine, ahead fair.Ahead) {
	for i := range all {
		if p := &all[i]; (p.scope.Kind == Shared) == ahead.Own || p.sharing.held {
			p.turn(e, ahead.Own && p.scope.Kind == Shared, ahead.By)
		}
	}
}

// leave takes the call out of the pools, because it waits no more.
func (all inPools) leave(e *Engine) {
	for i := range all {
		if p := &all[i]; p.waiting.Leave(e.clock()) {
			p.tell(e)
		}
	}
}

// mostUnasked is for how long a call that its share denies does not ask a store that several processes
// share, as long as this process knows of nothing by which it would pass.
const mostUnasked = 3 * time.Second

// stillDenied answers a waiting call that its share has denied, if it would be denied again as far
// as this process knows. So a call that asks often asks the store rarely.
func (w *wait) stillDenied() (a fair.Answer, denied bool) {
	e, now := w.engine, w.engine.clock()
	by := w.result.Outcome.shared()
	if e.private || by == nil || now-w.asked >= int64(mostUnasked) || e.closed.Load() || w.scopes.closed() != nil {
		return a, false
	}
	var o Outcome
	o.begin(e, w.call.part, w.scopes)
	in, own := o.pools(e, w.call, true)
	for _, cl := range o.claims(w.call, in, own, make(claims, 0, mostClaims)) {
		if cl.scope != by.Scope {
			continue
		}
		if d := cl.pool.StillDenies(cl.member, now, cl.amounts(), nil); d.Denied {
			return cl.denial(d, now).answer(), true
		}
	}
	return a, false
}

// answer is the answer to a waiting call that the share denies: it asks again later, and others have their turns.
func (s *Share) answer() fair.Answer {
	a := fair.Answer{Again: s.again(), Yield: !s.own, Aside: s.own, Held: s.Limit.Unit.InFlight(), By: s.Name, Guess: true}
	if a.Yield && s.Group {
		a.Group = s.Of
	}
	return a
}

// again returns when a call that a share denies asks again. The share may grow at any time,
// because others may want less than was expected. The more share a limit, the more ask, and the rarer each of them does.
func (s *Share) again() time.Duration {
	often := max(min(s.Limit.Limit.Period()/600, SlotGuess), 10*time.Millisecond)
	return min(s.RetryAfter, often*time.Duration(1+s.Members/32))
}

// share returns the share that denies the call, or nil.
func (o *Outcome) share() *Share {
	if s := o.shared(); s != nil {
		return s.share
	}
	return nil
}

// shared returns the standing in which a share denies the call, or nil.
func (o *Outcome) shared() *Standing {
	all := o.all()
	for i := range all {
		if all[i].share != nil {
			return &all[i]
		}
	}
	return nil
}
