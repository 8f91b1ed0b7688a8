package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Acquire takes what the call asks for as soon as it may pass, in its turn. It fails at
// once with an error that wraps [limit.ErrNever] if the call is larger than a limit; with
// [fair.ErrCrowded] if too many calls of its flow wait; with a [limit.DeadlineError] if the
// call would have to wait for longer than it may, or than until the deadline of ctx; and
// with ctx's error when ctx ends. Then nothing is taken.
func (e *Engine) Acquire(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	err := e.acquire(ctx, c, scopes, r, false)
	c.Asked.keep(c, r)
	if e.observer != nil {
		e.Observe(ctx, c, r, err)
	}
	return err
}

// AwaitCapacity returns when the call would pass, and takes nothing.
func (e *Engine) AwaitCapacity(ctx context.Context, c *Call, scopes Scopes, r *Result) error {
	return e.acquire(ctx, c, scopes, r, true)
}

// acquire asks at once, unless calls that wait come first, and then in turn. A call that passes at
// once needs no heap but for its reservation.
func (e *Engine) acquire(ctx context.Context, c *Call, scopes Scopes, r *Result, peeks bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ratelimit: not waiting: %w", ctx.Err())
	}
	if err := c.check(scopes); err != nil {
		return err
	}
	wakes := scopes.wakes()
	if r.Ahead, r.Behind = e.ahead(c, scopes); !r.Behind {
		var err error
		if r.Reservation, err = e.ask(ctx, c, scopes, &r.Outcome, peeks); err != nil || !r.Outcome.Denied {
			return err
		}
	}
	call := *c // the caller's may be on its stack
	call.again = !r.Behind
	w := &wait{engine: e, call: &call, scopes: slices.Clone(scopes), result: *r, peeks: peeks, start: e.clock(), most: c.patience(ctx), wakes: wakes}
	err := w.inLine(ctx)
	*r = w.result
	return err
}

// ask asks the limits once, and takes what the call asks for unless it only peeks.
func (e *Engine) ask(ctx context.Context, c *Call, scopes Scopes, o *Outcome, peeks bool) (*Reservation, error) {
	if peeks {
		return nil, e.peek(ctx, c, scopes, o)
	}
	return e.take(ctx, c, scopes, o)
}

// wait is a call that waits for its turn.
type wait struct {
	engine *Engine
	call   *Call
	scopes Scopes
	result Result
	peeks  bool          // it takes nothing
	start  int64         // when it began to wait
	most   time.Duration // how long it may wait: see patience
	wakes  uint64        // of its scopes, before it asked without having the turn
	lost   int           // races against other machines
	asked  int64         // when it asked the store last, in its turn
	pools  inPools
	rules  []*Rules // of its scopes, when it entered their pools

	waitsFor atomic.Pointer[WaitsFor] // nil before that is known

	// giveUp ends the wait. If new rules can never admit the call, impossible is their answer.
	giveUp     context.CancelFunc
	impossible atomic.Pointer[Outcome]
}

// inLine waits with a call that was denied or is behind others, and asks the limits whenever the call has the turn.
func (w *wait) inLine(ctx context.Context) (err error) {
	e, r := w.engine, &w.result
	stands := false // in line
	defer func() { w.conclude(stands, err) }()
	if w.call.MaxWait > 0 {
		ctx, w.giveUp = context.WithTimeout(ctx, w.call.MaxWait)
	} else {
		ctx, w.giveUp = context.WithCancel(ctx)
	}
	defer w.giveUp()
	t := w.scopes.ticket(e, w.call)
	if r.Behind {
		w.waitsFor.Store(&WaitsFor{Limit: r.Ahead.By, At: w.start + int64(r.Ahead.Again), Guess: r.Ahead.Guess, Behind: true})
	}
	defer e.enlist(w, t.Flow)()
	var first fair.Answer // to the call before it had the turn
	if !r.Behind {
		if first, err = w.answer(); err != nil {
			return err
		}
		t.Denied, t.Answer = !first.Aside && !first.Yield, first
	}
	if ends, err := w.needNotWait(ctx); ends {
		return err
	}
	w.joinPools(first.Aside)
	defer func() { w.pools.leave(e) }()
	stands = true
	return w.stand(ctx, t, first)
}

// conclude completes the result of a wait that has ended with err: how long the call has stood in line, and
// behind whom it was if no limit was asked.
func (w *wait) conclude(stands bool, err error) {
	r := &w.result
	if stands {
		r.Waited = w.sofar()
		if r.Reservation != nil {
			r.Reservation.waited = r.Waited
		}
	}
	if r.Behind = err != nil && !r.Outcome.asked; !r.Behind {
		return
	}
	if ahead, waiting := w.engine.ahead(w.call, w.scopes); waiting {
		r.Ahead = ahead
	}
}

// needNotWait reports whether the wait ends before it begins: the call never passes, or would have to wait for
// longer than it may and cannot overtake those before it. Or it has overtaken them, and err is nil.
func (w *wait) needNotWait(ctx context.Context) (ends bool, err error) {
	r := &w.result
	if o := w.never(); o != nil {
		return true, w.neverBy(o)
	}
	again := max(r.Ahead.Again, w.scopes.closedFor(w.engine))
	if !r.Behind || r.Ahead.Guess || !w.tooLong(again) {
		return false, nil
	}
	if !w.peeks && !r.Ahead.Own {
		if passed, err := w.engine.overtakes(ctx, w.call, w.scopes, r); passed || err != nil {
			return true, err
		}
	}
	return true, w.late(again)
}

// joinPools enters the call as waiting into the pools of shares. aside says that it waits for limits of its own.
func (w *wait) joinPools(aside bool) {
	r := &w.result
	w.enterPools()
	if !r.Behind {
		w.pools.turn(w.engine, &r.Outcome, aside)
	} else {
		w.pools.behind(w.engine, r.Ahead)
	}
}

// enterPools enters the call as waiting into the pools of its scopes, by their present rules.
func (w *wait) enterPools() {
	w.rules = w.scopes.rules()
	w.pools = w.scopes.waitInPools(w.engine, w.call, &w.result.Outcome)
}

// rules returns the rules of each scope.
func (all Scopes) rules() []*Rules {
	list := make([]*Rules, len(all))
	for i, s := range all {
		list[i] = s.rules.Load()
	}
	return list
}

// stand waits in the line of the shared scope or, without one, in the hall. first is what the call was
// answered before it had the turn.
func (w *wait) stand(ctx context.Context, t fair.Ticket, first fair.Answer) (err error) {
	e := w.engine
	t.Call = w.call
	t.Overtake = func(first any, deniedFor time.Duration) (fair.Answer, error) {
		return w.overtake(ctx, first, deniedFor)
	}
	inTurn := func() (fair.Answer, error) {
		if rest := first.Again - w.sofar(); rest > 0 && !e.private && w.scopes.wakes() == w.wakes && !e.closed.Load() {
			a := first
			a.Again = rest
			first = fair.Answer{}
			return a, nil // nothing was given back since: it would be denied again
		}
		return w.ask(ctx)
	}
	if shared := w.scopes.line(); shared == nil {
		err = e.hall.Wait(ctx, t, inTurn)
	} else {
		err = shared.Wait(ctx, t, inTurn)
	}
	if o := w.impossible.Load(); o != nil && err != nil {
		return w.neverBy(o)
	}
	return err
}

// ask asks the limits once.
func (w *wait) ask(ctx context.Context) (fair.Answer, error) {
	if a, denied := w.stillDenied(); denied {
		return a, nil
	}
	w.asked = w.engine.clock()
	said := new(Outcome) // an error leaves what was said before
	res, err := w.engine.ask(ctx, w.call, w.scopes, said, w.peeks)
	w.call.again = true
	if err != nil {
		return fair.Answer{}, err
	}
	w.result.Reservation, w.result.Outcome = res, *said
	a, err := w.answer()
	if said.Denied && !slices.Equal(w.rules, w.scopes.rules()) { // there may be other pools
		w.pools.leave(w.engine)
		w.enterPools()
	}
	w.pools.turn(w.engine, said, a.Aside)
	return a, err
}

// answer returns what the limits have said to the call.
func (w *wait) answer() (fair.Answer, error) {
	e, said := w.engine, &w.result.Outcome
	if !said.Denied {
		return fair.Answer{Done: true}, nil
	}
	least := said.longest(0)
	if least == limit.Never {
		return fair.Answer{}, w.neverBy(said)
	}
	if least > 0 && w.tooLong(least) { // when a call under way ends, nobody knows: the context ends the wait for that
		return fair.Answer{}, w.late(least)
	}
	shared, own := said.waits(SlotGuess)
	if s := said.share(); s != nil && (own == 0 || s.own && shared == 0) {
		w.waitsFor.Store(&WaitsFor{Limit: s.Name, Scope: said.shared().Scope, At: e.clock() + int64(s.RetryAfter), Guess: true})
		return s.answer(), nil
	}
	if s := said.share(); s != nil && s.own {
		own = min(own, s.again()) // a gate is closed as well
	}
	again := max(shared, own)
	scope, by, guess := said.waitsFor(own > shared)
	w.waitsFor.Store(&WaitsFor{Limit: by, Scope: scope, At: e.clock() + int64(again), Guess: guess})
	again += e.spread(again, w.lost)
	w.lost++
	return fair.Answer{Again: again, Aside: own > shared, By: by, Guess: guess}, nil
}

// waitsFor returns the limit that a call waits for, and its scope: of its own scopes, or of the shared
// one; and whether it is a guess when that lets the call pass.
func (o *Outcome) waitsFor(own bool) (of *Scope, name string, guess bool) {
	longest := time.Duration(0)
	all := o.all()
	for i := range all {
		s := &all[i]
		wait := s.Wait(SlotGuess)
		if (s.Scope.Kind != Shared) != own || wait <= longest {
			continue
		}
		of, longest, name, guess = s.Scope, wait, s.NameOf(), false
		if i := s.deciding(); i >= 0 {
			l, _ := s.At(i)
			guess = l.Unit.InFlight() || s.IsHeld(i)
		}
	}
	return of, name, guess
}

// never returns what the limits say to a call that could never pass, whatever is used; or nil. A
// gate that lowers limits does not last, so it has no part in this.
func (w *wait) never() *Outcome {
	o := new(Outcome)
	o.begin(nil, w.call.part, w.scopes)
	var said []limit.Decision
	list := o.charges(&w.call.ask)
	for _, charge := range *list {
		for _, l := range charge.Limits {
			said = append(said, new(limit.Account).Check(l, 0, charge.N))
		}
	}
	freeCharges(list)
	o.enter(said, &w.call.ask)
	if o.longest(0) != limit.Never {
		return nil
	}
	return o
}

// neverBy sets the outcome of a call which could never pass, and returns the error.
func (w *wait) neverBy(o *Outcome) error {
	w.result.Outcome = *o
	return fmt.Errorf("%w: the limit %q is smaller", limit.ErrNever, o.Deciding().NameOf())
}

// patience returns how long the call may wait: its MaxWait, and no longer than until the deadline of ctx. Any
// time is [limit.Never].
func (c *Call) patience(ctx context.Context) time.Duration {
	most := limit.Never
	if c.MaxWait > 0 {
		most = c.MaxWait
	}
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(deadline))
	}
	return most
}

// tooLong reports whether the call may not wait for so long any more.
func (w *wait) tooLong(again time.Duration) bool { return again >= w.most-w.sofar() }

// sofar returns how long the call has waited.
func (w *wait) sofar() time.Duration { return time.Duration(w.engine.clock() - w.start) }

// late returns the error of a call that may not wait for so long.
func (w *wait) late(again time.Duration) error {
	if !w.peeks {
		w.scopes.wantInPools(w.engine, w.call, &w.result.Outcome, w.result.Outcome.asked)
	}
	return &limit.DeadlineError{Limit: w.result.Limit(), Wait: again, Left: w.most - w.sofar()}
}

// own returns the innermost of the call's own scopes, or nil.
func (all Scopes) own() *Scope {
	for _, s := range all {
		if s.Kind != Shared {
			return s
		}
	}
	return nil
}

// line returns the line of the call's shared scope, or nil.
func (all Scopes) line() *fair.Line {
	for _, s := range all {
		if s.Kind == Shared {
			return s.line
		}
	}
	return nil
}

// wakes returns how often calls that wait for the scopes were woken.
func (all Scopes) wakes() (n uint64) {
	for _, s := range all {
		n += s.wakes.Load()
	}
	return n
}

// closedFor returns for how long the gate of a scope lets nothing pass.
func (all Scopes) closedFor(e *Engine) time.Duration {
	if s := all.closed(); s != nil {
		return s.gate.Look(e.clock()).For
	}
	return 0
}

// plain ends the flow of calls that ask for nothing but requests, so that these do not
// wait behind those of their scope that wait for tokens, or for another call to end.
const plain = "\x00plain"

// flow returns the flow of a call.
func (all Scopes) flow(e *Engine, c *Call) string {
	s := all.own()
	if s == nil {
		return ""
	}
	if slices.ContainsFunc(s.planFor(e, c.part).charges, func(c charge) bool { return c.unit != Requests }) {
		return c.flow(s)
	}
	return c.flow(s) + plain
}

// ticket returns how the call stands in line.
func (all Scopes) ticket(e *Engine, c *Call) fair.Ticket {
	t := fair.Ticket{Flow: all.flow(e, c), Weight: 1, Priority: c.Priority}
	for _, s := range all {
		r := s.rules.Load()
		switch {
		case r == nil:
		case s.Kind == Shared:
			t.Cost = s.planFor(e, c.part).share(&c.ask)
		case s == all.own():
			t.Rank, t.Weight, t.MaxWaiting = r.Rank, max(r.Weight, 1), r.MaxWaiting
			t.Groups = c.groups(s)
		}
	}
	return t
}

// ahead reports whether another call waits that comes before one that comes now. Calls that
// wait for a limit which has no part in this one do not.
func (e *Engine) ahead(c *Call, scopes Scopes) (a fair.Ahead, waiting bool) {
	rank := 0
	if s := scopes.own(); s != nil {
		if !e.hall.Idle() {
			for _, flow := range [...]string{c.flow(s) + plain, c.flow(s)} {
				if a, waiting = e.hall.Ahead(flow); waiting && scopes.haveOwn(e, c.part, a.By) {
					return a, true
				}
			}
		}
		if r := s.rules.Load(); r != nil {
			rank = r.Rank
		}
	}
	if l := scopes.line(); l != nil && l.Waiting() > 0 {
		return l.Ahead(scopes.flow(e, c), rank)
	}
	return fair.Ahead{}, false
}

// haveOwn reports whether one of the call's own scopes has a limit of such a name, and denies by it.
func (all Scopes) haveOwn(e *Engine, part Part, name string) bool {
	for _, s := range all {
		if s.Kind != Shared && s.Kind != Shadow && s.planFor(e, part).has(name) {
			return true
		}
	}
	return false
}

// spread returns how much longer to wait than the limits said, at random, so that machines
// which wait for the same do not all ask at the same instant. Asking early would be in
// vain. A call that has lost such a race comes sooner the next time, before those that have
// not waited as long.
func (e *Engine) spread(wait time.Duration, lost int) time.Duration {
	if !e.remote {
		return 0
	}
	return rand.N(min(wait/16, maxSpread)>>min(lost, 16) + 1)
}

const maxSpread = 10 * time.Millisecond
