package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// fewCharges is how many charges most calls have at most.
const fewCharges = 6

// take takes what a call asks for, if every limit of every scope admits it. A denial
// returns no reservation and no error.
func (e *Engine) take(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	res, err := e.takeOpen(ctx, c, scopes, o)
	if res != nil && o.shadowed {
		e.overlook(c, o)
	}
	if t := e.thresholds.Load(); t != nil && err == nil {
		e.notice(t, c.Project, o.All(), res != nil)
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
		res.gated, res.probe = gated, probe
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

// takeLimits takes what a call asks for of every limit, or nothing. If a share denies the call by what this process has
// just learned, the call asks once more: others may lend it what is free.
func (e *Engine) takeLimits(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	res, err := e.takeOnce(ctx, c, scopes, o)
	if o.counted && !c.again {
		c.again = true
		res, err = e.takeOnce(ctx, c, scopes, o)
		c.again = false
	}
	return res, err
}

// takeOnce is takeLimits of a call that asks once.
func (e *Engine) takeOnce(ctx context.Context, c *Call, scopes Scopes, o *Outcome) (*Reservation, error) {
	o.begin(e, c.part, scopes)
	in, own := o.pools(e, c, false)
	switch {
	case in == 0:
		return e.takeStore(ctx, c, o, nil)
	case in&(in-1) != 0:
		return e.takeMany(ctx, c, o, in, own)
	}
	var room [1]claim
	return e.takeShared(ctx, c, o, o.claims(c, in, own, room[:0]))
}

// takeStore takes what a call asks for of the store, or nothing. What calls of the same flow have used beyond what they
// asked for lately is taken as well, as far as its claims know.
func (e *Engine) takeStore(ctx context.Context, c *Call, o *Outcome, all claims) (*Reservation, error) {
	e.join()
	if err := e.catchUp(ctx); err != nil && !e.remote { // a remote store may know what to do without
		return nil, err
	}
	var receipt store.Receipt
	var said []limit.Decision
	if list := o.charges(&c.ask); len(*list) > 0 {
		all.raise(o, *list)
		var err error
		receipt, said, err = e.store.Take(ctx, *list)
		freeCharges(list)
		if err != nil {
			return nil, err
		}
	}
	if err := o.answered(said, &c.ask); err != nil {
		return nil, err
	}
	if o.Denied {
		return nil, e.reconsider(ctx, c, o)
	}
	return e.newReservation(c, o, receipt), nil
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
	o.begin(e, c.part, scopes)
	if err := e.peekStandings(ctx, &c.ask, o); err != nil {
		return err
	}
	e.peekShares(c, o)
	return e.reconsider(ctx, c, o)
}

func (e *Engine) peekStandings(ctx context.Context, ask *Ask, o *Outcome) (err error) {
	if e.remote { // a file that another process has locked can be read, and nobody should wait for it to look
		e.catchUp(ctx)
	}
	var said []limit.Decision
	if list := o.charges(ask); len(*list) > 0 {
		said, err = e.store.Peek(ctx, *list)
		freeCharges(list)
		if err != nil {
			return err
		}
	}
	return o.answered(said, ask)
}

// answered enters the decisions that the store has just made, and notes which limits have ample room.
func (o *Outcome) answered(said []limit.Decision, ask *Ask) error {
	if err := o.enter(said, ask); err != nil {
		return err
	}
	all := o.all()
	for i := range all {
		all[i].noteRoom()
	}
	return nil
}

// begin makes an outcome ready for what the limits of a call's scopes say.
func (o *Outcome) begin(e *Engine, part Part, scopes Scopes) {
	*o = Outcome{n: len(scopes)}
	if o.n > fewScopes {
		o.many = make([]Standing, o.n)
	}
	all := o.all()
	for i, s := range scopes {
		p := s.planFor(e, part)
		all[i].Scope, all[i].plan = s, p
		o.shadowed = o.shadowed || s.Kind == Shadow
		if p.rules != nil {
			o.noteShares(i, s, p.rules)
		}
	}
}

// noteShares notes whether the limits of a scope may be divided, and whether it has a maximum share of
// those of others.
func (o *Outcome) noteShares(i int, s *Scope, r *Rules) {
	if r.divisible && (s.Kind == Shared || s.below.Load()) {
		o.divided |= 1 << i
	}
	if r.capped {
		o.capped |= 1 << i
	}
}

// also adds a scope to an outcome that has begun. The other scopes keep their plans, even if their rules have changed
// since: what was taken by a plan is corrected by the same plan.
func (o *Outcome) also(s *Scope, part Part) {
	o.many = append(slices.Clone(o.all()), Standing{Scope: s, charged: charged{plan: s.planFor(nil, part)}})
}

// charges returns what the scopes are charged.
func (o *Outcome) charges(ask *Ask) *[]store.Charge {
	list := chargeLists.Get().(*[]store.Charge)
	all := o.all()
	for i := range all {
		*list = all[i].appendHolds(all[i].plan.append(*list, ask), ask)
	}
	return list
}

// chargeLists has lists of charges that are used for one question to the store, and then for another: a store does not
// keep the list.
var chargeLists = sync.Pool{New: func() any {
	list := make([]store.Charge, 0, fewCharges)
	return &list
}}

func freeCharges(list *[]store.Charge) {
	clear(*list)
	*list = (*list)[:0]
	chargeLists.Put(list)
}

// enter gives each scope the decisions of its limits on what a call asks for, and notes whether one denies.
func (o *Outcome) enter(said []limit.Decision, ask *Ask) error {
	o.asked = true
	scopes := o.all()
	for i := range scopes {
		s := &scopes[i]
		n, all := len(s.plan.limits), len(s.plan.limits)+len(s.holds())
		if all > len(said) {
			return errTooFew
		}
		s.said, said = said[:n:all], said[all:]
		if s.denies() {
			o.Denied = true
			s.noteHeld(ask)
		}
	}
	return nil
}

var errTooFew = errors.New("ratelimit: the store has not answered for every limit")

// reconsider corrects when lowered limits let a call pass that they have denied.
func (e *Engine) reconsider(ctx context.Context, c *Call, o *Outcome) error {
	if !o.Denied {
		return nil
	}
	all := o.all()
	for i := range all {
		s := &all[i]
		if s.Scope.gate == nil || s.plan.rules == nil || s.plan.rules == s.Scope.rules.Load() {
			continue
		}
		said, ask := *s, c.ask // the outcome and the call may be on the caller's stack
		if err := s.Scope.gate.Reconsider(ctx, &said, &ask); err != nil {
			return err
		}
	}
	return nil
}
