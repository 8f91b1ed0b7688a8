package admission

import (
	"context"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fewCharges is as many as most calls have.
const fewCharges = 8

// take takes what a call asks for, if every limit of every scope lets it pass. A denial
// returns no reservation and no error.
func (e *Engine) take(ctx context.Context, c *Call, o *Outcome) (*Reservation, error) {
	if e.closed.Load() {
		return nil, store.ErrClosed
	}
	gated := closedScope(c)
	if gated == nil {
		return e.takeLimits(ctx, c, o)
	}
	probe, closed := gated.gate.Admit(e.clock())
	if closed != (Closed{}) {
		return nil, e.lookThrough(ctx, c, o, gated, closed)
	}
	res, err := e.takeLimits(ctx, c, o)
	switch {
	case probe == 0:
	case res == nil:
		gated.gate.GiveBack(e.clock(), probe)
	default:
		res.gated, res.probe = gated, probe
	}
	return res, err
}

// closedScope returns the scope whose gate may be closed, or nil.
func closedScope(c *Call) *Scope {
	for _, s := range c.Scopes {
		if s.gate != nil && !s.gate.Idle() {
			return s
		}
	}
	return nil
}

// lookThrough says what the limits behind a closed gate say.
func (e *Engine) lookThrough(ctx context.Context, c *Call, o *Outcome, gated *Scope, closed Closed) error {
	err := e.peekLimits(ctx, c, o)
	if s := o.Of(gated); s != nil {
		s.Closed, o.Denied = closed, true
	}
	return err
}

// takeLimits takes what a call asks for of every limit, or nothing.
func (e *Engine) takeLimits(ctx context.Context, c *Call, o *Outcome) (*Reservation, error) {
	o.begin(e, c)
	if e.memory != nil {
		return e.takeInMemory(ctx, c, o)
	}
	if err := e.catchUp(ctx); err != nil && !e.remote { // a remote store may know what to do without
		return nil, err
	}
	list := o.charges(nil, &c.Ask)
	if len(list) == 0 {
		o.hear(nil)
		return e.newReservation(c, o), nil
	}
	receipt, said, err := e.store.Take(ctx, list)
	if err != nil {
		return nil, err
	}
	o.hear(said)
	if o.Denied {
		return nil, e.reconsider(ctx, c, o)
	}
	res := e.newReservation(c, o)
	res.receipt = receipt
	return res, nil
}

func (e *Engine) takeInMemory(ctx context.Context, c *Call, o *Outcome) (*Reservation, error) {
	var few [fewCharges]store.Charge
	var hold store.Hold
	said, allowed, err := e.memory.TakeInto(ctx, o.charges(few[:0], &c.Ask), o.fewSaid[:0], &hold)
	if err != nil {
		return nil, err
	}
	o.hear(said)
	if !allowed {
		return nil, e.reconsider(ctx, c, o)
	}
	res := e.newReservation(c, o)
	res.hold = hold
	return res, nil
}

// peek says what take would, and takes nothing.
func (e *Engine) peek(ctx context.Context, c *Call, o *Outcome) error {
	if e.closed.Load() {
		return store.ErrClosed
	}
	gated := closedScope(c)
	if gated == nil {
		return e.peekLimits(ctx, c, o)
	}
	closed := gated.gate.Look(e.clock())
	if closed == (Closed{}) {
		return e.peekLimits(ctx, c, o)
	}
	return e.lookThrough(ctx, c, o, gated, closed)
}

func (e *Engine) peekLimits(ctx context.Context, c *Call, o *Outcome) error {
	o.begin(e, c)
	if err := e.peekStandings(ctx, &c.Ask, o); err != nil {
		return err
	}
	return e.reconsider(ctx, c, o)
}

func (e *Engine) peekStandings(ctx context.Context, ask *Ask, o *Outcome) error {
	var said []limit.Decision
	var err error
	if e.memory != nil {
		var few [fewCharges]store.Charge
		said, _, err = e.memory.PeekInto(ctx, o.charges(few[:0], ask), o.fewSaid[:0])
	} else if list := o.charges(nil, ask); len(list) > 0 {
		said, err = e.store.Peek(ctx, list)
	}
	if err == nil {
		o.hear(said)
	}
	return err
}

// begin makes an outcome ready to hear what the limits of a call's scopes say.
func (o *Outcome) begin(e *Engine, c *Call) {
	o.Denied = false
	o.standings = o.fewStandings[:0]
	for _, s := range c.Scopes {
		o.standings = append(o.standings, Standing{Scope: s, plan: s.planFor(e, c.Part)})
	}
}

// charges appends what the scopes are charged.
func (o *Outcome) charges(list []store.Charge, ask *Ask) []store.Charge {
	for i := range o.standings {
		list = o.standings[i].plan.append(list, ask)
	}
	return list
}

// hear enters what a store said, in the order of charges.
func (o *Outcome) hear(said []limit.Decision) {
	o.asked, o.said = true, said
	for i := range o.standings {
		s := &o.standings[i]
		n := len(s.plan.limits)
		s.said, said = said[:n:n], said[n:]
		o.Denied = o.Denied || s.denied()
	}
}

// reconsider corrects when lowered limits let a call pass that they have denied.
func (e *Engine) reconsider(ctx context.Context, c *Call, o *Outcome) error {
	if !o.Denied {
		return nil
	}
	for i := range o.standings {
		s := &o.standings[i]
		if s.Scope.gate == nil || s.plan.rules == nil || s.plan.rules == s.Scope.rules.Load() {
			continue
		}
		ask, corrected := c.Ask, *s // the call and the outcome may be on the caller's stack
		corrected.said = slices.Clone(s.said)
		if err := s.Scope.gate.Reconsider(ctx, e, &corrected, &ask); err != nil {
			return err
		}
		copy(s.said, corrected.said)
	}
	return nil
}

// ever says what the limits say to a call if nothing is used.
func (o *Outcome) ever(e *Engine, c *Call) {
	o.begin(e, c)
	var said []limit.Decision
	for _, charge := range o.charges(nil, &c.Ask) {
		for _, l := range charge.Limits {
			said = append(said, new(limit.Account).Check(l, 0, charge.N))
		}
	}
	o.hear(said)
}
