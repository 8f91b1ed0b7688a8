package admission

import (
	"context"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// Reservation is what a call has taken before it is known what it uses.
type Reservation struct {
	engine *Engine
	hold   store.Hold // by which the store in memory knows what was taken
	ask    Ask        // as it was charged to the shared scope
	ended  atomic.Bool

	limited        bool // for observers, as the next two
	project, model string

	plans    []*plan // by which it was charged
	fewPlans [2]*plan

	*special // &ordinary, unless any of it is set: see set
}

// special is what few reservations have. Only for those memory is allocated.
type special struct {
	receipt store.Receipt      // by which any store but that in memory knows what was taken
	probe   int64              // the number of the probe that the call is, or 0
	gated   *Scope             // whose gate it probes
	renewal *renewal           // of its slots for longer than a lease; nil: none
	flow    string             // of the call, if it has waited in a line
	line    *line.Line         // in which it has had a turn, or nil
	after   func(t llm.Tokens) // is told what the call has used; may be nil
}

// ordinary is the special part of a reservation that has none.
var ordinary special

// set returns the special part of a reservation for a change of it.
func (r *Reservation) set() *special {
	if r.special == &ordinary {
		r.special = new(special)
	}
	return r.special
}

func (e *Engine) newReservation(c *Call, o *Outcome) *Reservation {
	r := &Reservation{engine: e, ask: c.Ask, project: c.Project, model: c.Model, limited: c.Limited, special: &ordinary}
	r.plans = r.fewPlans[:0]
	all := o.all()
	for i := range all {
		p := all[i].plan
		r.plans = append(r.plans, p)
		if !c.Ask.Split && p.rules != nil && p.scope.line != nil {
			r.ask.Amounts[Input] = p.rules.Amount(Input, &c.Ask)
			r.ask.Amounts[Output] = p.rules.Amount(Output, &c.Ask)
		}
	}
	return r
}

// Commit corrects what was reserved to what the call has used. Of a part that is not
// known, which is negative, what was reserved stands. Only the first Commit or Cancel
// counts; it reports whether it was that.
func (r *Reservation) Commit(t llm.Tokens) bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	t.Input, t.Output = max(t.Input, -1), max(t.Output, -1)
	t.FreeInput, t.FreeOutput = min(max(t.FreeInput, 0), max(t.Input, 0)), min(max(t.FreeOutput, 0), max(t.Output, 0))
	if r.after != nil {
		r.after(t)
	}
	if r.probe != 0 {
		r.gated.gate.Committed(r.engine.clock(), r.probe, max(t.Input, t.Output))
	}
	used := r.used(t)
	r.settle(&used)
	r.observe(event.Settled, t)
	return true
}

// used returns what a call has used of each unit: -1 of a part that is not known, of which
// what was reserved stands in every scope.
func (r *Reservation) used(t llm.Tokens) Amounts {
	used := r.ask.Amounts
	used[Slots] = 0
	if !r.ask.Split {
		used[Input], used[Output] = -1, -1
	}
	input, output := t.Input-t.FreeInput, t.Output-t.FreeOutput // that count
	if input >= 0 {
		used[Input] = bounded(input)
	}
	if output >= 0 {
		used[Output] = bounded(output)
	}
	switch {
	case r.ask.Split || input >= 0 && output >= 0:
		used[Tokens] = used[Input] + used[Output]
		used[AllTokens] = used[Tokens] + r.free(t)
	case input >= 0:
		used[Tokens] = max(used[Tokens], used[Input])
		used[AllTokens] = max(used[AllTokens], bounded(t.Input))
	case output >= 0:
		used[Tokens] = max(used[Tokens], used[Output])
		used[AllTokens] = max(used[AllTokens], bounded(t.Output))
	}
	return used
}

// free returns how many of the tokens the provider does not count. Of a part that is not
// known, as many as were expected.
func (r *Reservation) free(t llm.Tokens) int64 {
	n := bounded(t.FreeInput) + bounded(t.FreeOutput)
	if t.Input < 0 {
		n += r.ask.FreeInput
	}
	if t.Output < 0 {
		n += r.ask.FreeOutput
	}
	return n
}

// Cancel gives back what was reserved, for a call that was never sent.
func (r *Reservation) Cancel() bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	if r.probe != 0 {
		r.gated.gate.GiveBack(r.engine.clock(), r.probe)
	}
	r.settle(&Amounts{})
	r.observe(event.Cancelled, llm.Tokens{})
	return true
}

// AfterCommit lets fn be told what the call has used, before it is settled.
func (r *Reservation) AfterCommit(fn func(t llm.Tokens)) { r.set().after = fn }

// Unlimited returns the reservation of a call that no limit governs.
func (e *Engine) Unlimited(c *Call) *Reservation { return e.newReservation(c, new(Outcome)) }

// Ended reports whether the reservation was committed or cancelled.
func (r *Reservation) Ended() bool { return r.ended.Load() }

// Served tells that the provider has taken the call, before it is known what it uses.
func (r *Reservation) Served() {
	if r.probe != 0 {
		r.gated.gate.Served(r.probe)
	}
}

// settle corrects what was taken, and lets calls go on that wait for what is given back.
func (r *Reservation) settle(used *Amounts) {
	e := r.engine
	if r.renewal != nil {
		r.renewal.end(r)
	}
	if e.memory != nil {
		var few [fewCharges]store.Amount
		var fewUsed [fewCharges]int64
		e.memory.SettleHold(&r.hold, r.taken(few[:0]), r.actual(fewUsed[:0], used))
	} else if r.receipt != nil {
		e.correct(correction{r.receipt, r.actual(nil, used)})
	}
	if r.line != nil {
		inShared := r.inShared(*used)
		r.line.Charge(r.flow, r.costMore(&inShared))
	}
	for _, p := range r.plans {
		if p.scope.gate != nil && e.memory == nil {
			p.scope.gate.Settled(r.ask.Amounts, r.inShared(*used))
		}
		e.Wake(p.scope)
	}
}

// inShared returns what a call has used of the shared scope.
func (r *Reservation) inShared(used Amounts) Amounts {
	for _, u := range [...]Unit{Input, Output} {
		if used[u] < 0 {
			used[u] = r.ask.Amounts[u]
		}
	}
	return used
}

// taken appends what was taken, for the store in memory.
func (r *Reservation) taken(list []store.Amount) []store.Amount {
	for _, p := range r.plans {
		list = p.amounts(list, &r.ask)
	}
	return list
}

// actual appends amounts in the order of the charges.
func (r *Reservation) actual(list []int64, used *Amounts) []int64 {
	for _, p := range r.plans {
		for _, u := range p.units {
			list = append(list, used[u])
		}
	}
	return list
}

// costMore returns how much more of the shared scope the call has used than its turn has
// cost. A slot that it gives back it has had.
func (r *Reservation) costMore(used *Amounts) (more int64) {
	had := Ask{Amounts: *used, Split: true}
	had.Amounts[Slots] = r.ask.Amounts[Slots]
	for _, p := range r.plans {
		if p.scope.line == r.line && p.rules != nil {
			taken := r.ask
			taken.Split = true
			more = p.share(&had) - p.share(&taken)
		}
	}
	return more
}

// observe tells of the end of a reservation.
func (r *Reservation) observe(kind event.Kind, used llm.Tokens) {
	if o := r.engine.observer; o != nil {
		o.Observe(context.Background(), event.Event{
			Kind: kind, Project: r.project, Model: r.model, Limited: r.limited, RemainingMinute: -1,
			Estimated: r.ask.Amounts[Tokens], Used: used,
		})
	}
}
