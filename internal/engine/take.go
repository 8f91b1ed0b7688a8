package engine

import (
	"context"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fewCharges is how many charges nearly all calls have at most: no memory is allocated for so many.
const fewCharges = 12

// take takes what a call asks for, if every limit of every scope lets it pass. A denial
// returns no reservation and no error.
func (e *Engine) take(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	res, err := e.takeOpen(ctx, c, scopes, o)
	if res != nil && o.shadowed {
		e.overlook(c, o)
	}
	if t := e.thresholds.Load(); t != nil && err == nil {
		e.notice(t, c.Project, o, res != nil)
	}
	return res, err
}

// takeOpen is take, as far as the gates of the scopes are open.
func (e *Engine) takeOpen(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	if e.closed.Load() {
		return nil, store.ErrClosed
	}
	gated := scopes.closed()
	if gated == nil {
		return e.takeLimits(ctx, c, scopes, o)
	}
	if closed := gated.gate.Look(e.clock()); closed != (Closed{}) {
		return nil, e.lookThrough(ctx, c, scopes, o, gated, closed)
	}
	res, err := e.takeLimits(ctx, c, scopes, o)
	if res == nil {
		return nil, err // so it is no probe, for which calls that come meanwhile would wait
	}
	probe, closed := gated.gate.Admit(e.clock())
	if closed != (Closed{}) { // meanwhile: another call is the probe
		res.giveBack()
		return nil, e.lookThrough(ctx, c, scopes, o, gated, closed)
	}
	if probe != 0 {
		res.set().gated, res.set().probe = gated, probe
	}
	return res, nil
}

// closed returns the scope whose gate may be closed, or nil.
func (all Scopes) closed() *Scope {
	for _, s := range all {
		if s.gate != nil && !s.gate.Idle() {
			return s
		}
	}
	return nil
}

// lookThrough says what the limits behind a closed gate say.
func (e *Engine) lookThrough(ctx context.Context, c *Call, scopes Scopes, o *Outcome, gated *Scope, closed Closed) error {
	err := e.peekLimits(ctx, c, scopes, o)
	if s := o.Of(gated); s != nil {
		s.Closed, o.Denied = closed, true
	}
	return err
}

// takeLimits takes what a call asks for of every limit, or nothing.
func (e *Engine) takeLimits(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	o.begin(e, c.Part, scopes)
	in, own := o.pools(e, false)
	switch {
	case in == 0:
		return e.takeStore(ctx, c, o, 0)
	case in&(in-1) != 0:
		return e.takeMany(ctx, c, o, in, own)
	}
	var room [1]claim
	return e.takeShared(ctx, c, o, o.claims(c, in, own, room[:0]))
}

// takeStore takes what a call asks for of the store, or nothing. now is the time that was just read, or
// 0.
func (e *Engine) takeStore(ctx context.Context, c *Call, o *Outcome, now int64) (*Reservation, error) {
	if e.memory != nil {
		if now == 0 {
			now = e.clock()
		}
		return e.takeInMemory(ctx, c, o, now)
	}
	e.join()
	if err := e.catchUp(ctx); err != nil && !e.remote { // a remote store may know what to do without
		return nil, err
	}
	list := o.charges(nil, &c.Ask)
	if len(list) == 0 {
		o.hear(&c.Ask)
		return e.newReservation(c, o, &store.Hold{}), nil
	}
	receipt, said, err := e.store.Take(ctx, list)
	if err != nil {
		return nil, err
	}
	o.enter(said)
	o.hear(&c.Ask)
	if o.Denied {
		return nil, e.reconsider(ctx, c, o)
	}
	res := e.newReservation(c, o, &store.Hold{})
	res.set().receipt = receipt
	return res, nil
}

func (e *Engine) takeInMemory(ctx context.Context, c *Call, o *Outcome, now int64) (*Reservation, error) {
	var few [fewCharges]store.Amount
	var marks [fewCharges]limit.Mark
	hold := store.HoldIn(marks[:])
	_, allowed, err := e.memory.TakeIntoAt(ctx, now, o.amounts(few[:0], &c.Ask), o.said()[:0], &hold)
	if err != nil {
		return nil, err
	}
	if !allowed {
		o.hear(&c.Ask)
		return nil, e.reconsider(ctx, c, o)
	}
	o.asked = true
	return e.newReservation(c, o, &hold), nil
}

// peek says what take would, and takes nothing.
func (e *Engine) peek(ctx context.Context, c *Call, scopes Scopes, o *Outcome) error {
	if e.closed.Load() {
		return store.ErrClosed
	}
	gated := scopes.closed()
	if gated == nil {
		return e.peekLimits(ctx, c, scopes, o)
	}
	closed := gated.gate.Look(e.clock())
	if closed == (Closed{}) {
		return e.peekLimits(ctx, c, scopes, o)
	}
	return e.lookThrough(ctx, c, scopes, o, gated, closed)
}

func (e *Engine) peekLimits(ctx context.Context, c *Call, scopes Scopes, o *Outcome) error {
	o.begin(e, c.Part, scopes)
	if err := e.peekStandings(ctx, &c.Ask, o); err != nil {
		return err
	}
	e.peekShares(c, o)
	return e.reconsider(ctx, c, o)
}

func (e *Engine) peekStandings(ctx context.Context, ask *Ask, o *Outcome) (err error) {
	if e.memory != nil {
		var few [fewCharges]store.Amount
		_, _, err = e.memory.PeekInto(ctx, o.amounts(few[:0], ask), o.said()[:0])
	} else if list := o.charges(nil, ask); len(list) > 0 {
		var said []limit.Decision
		said, err = e.store.Peek(ctx, list)
		o.enter(said)
	}
	if err == nil {
		o.hear(ask)
	}
	return err
}

// begin makes an outcome ready for what the limits of a call's scopes say.
func (o *Outcome) begin(e *Engine, part Part, scopes Scopes) {
	o.Denied, o.shadowed, o.scopes, o.divided, o.capped = false, false, len(scopes), 0, 0
	if o.scopes > len(o.few) {
		o.many = make([]Standing, o.scopes)
	} else if o.many != nil { // to write a pointer costs more than to compare it
		o.many = nil
	}
	all := o.all()
	for i, s := range scopes {
		p, to := s.planFor(e, part), &all[i]
		to.held = 0
		if to.Scope, to.plan, to.Closed = s, p, (Closed{}); to.share != nil { // to write a pointer costs more than to compare it
			to.share = nil
		}
		o.shadowed = o.shadowed || s.real != nil
		if p.rules != nil {
			o.noteShares(i, s, p.rules)
		}
	}
	o.makeRoom()
}

// noteShares notes whether the limits of a scope may be divided, and whether it has a maximum share of
// those of others.
func (o *Outcome) noteShares(i int, s *Scope, r *Rules) {
	if r.divisible && (s.line != nil || s.below.Load()) {
		o.divided |= 1 << i
	}
	if r.capped {
		o.capped |= 1 << i
	}
}

// also lets an outcome that has begun have one more scope. The plans of the others stay, even if their
// rules have changed since: what was taken by them is corrected by them.
func (o *Outcome) also(s *Scope, part Part) {
	all := append(slices.Clone(o.all()), Standing{Scope: s, plan: s.planFor(nil, part)})
	o.scopes = len(all)
	if o.scopes > len(o.few) {
		o.many = all
	} else {
		copy(o.few[:], all)
	}
	o.makeRoom()
}

// makeRoom gives each standing its place among the decisions.
func (o *Outcome) makeRoom() {
	all, n := o.all(), 0
	for i := range all {
		all[i].first = n
		n += all[i].Len()
	}
	if n > len(o.fewSaid) {
		o.manySaid = make([]limit.Verdict, n)
	} else if o.manySaid != nil {
		o.manySaid = nil
	}
}

// amounts appends what the scopes are charged, for the store in memory.
func (o *Outcome) amounts(list []store.Amount, ask *Ask) []store.Amount {
	all := o.all()
	for i := range all {
		list = all[i].plan.amounts(list, ask)
	}
	return list
}

// charges appends what the scopes are charged.
func (o *Outcome) charges(list []store.Charge, ask *Ask) []store.Charge {
	all := o.all()
	for i := range all {
		list = all[i].plan.append(list, ask)
	}
	return list
}

// enter enters the decisions of a store.
func (o *Outcome) enter(said []limit.Decision) {
	for i := range said {
		o.said()[i] = said[i].Verdict()
	}
}

// hear notes that the limits were asked what a call asks for, and whether one denies.
func (o *Outcome) hear(ask *Ask) {
	o.asked = true
	all := o.all()
	for i := range all {
		if s := &all[i]; o.denies(s) {
			o.Denied = true
			o.noteHeld(s, ask)
		}
	}
}

// reconsider corrects when lowered limits let a call pass that they have denied.
func (e *Engine) reconsider(ctx context.Context, c *Call, o *Outcome) error {
	if !o.Denied {
		return nil
	}
	for i := range o.all() {
		s := &o.all()[i]
		if s.Scope.gate == nil || s.plan.rules == nil || s.plan.rules == s.Scope.rules.Load() {
			continue
		}
		ask, corrected := c.Ask, *o // the call and the outcome may be on the caller's stack
		if err := s.Scope.gate.Reconsider(ctx, e, &corrected, &corrected.all()[i], &ask); err != nil {
			return err
		}
		*o = corrected
	}
	return nil
}
