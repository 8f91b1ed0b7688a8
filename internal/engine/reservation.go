package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// Reservation is what a call has taken before it is known what it uses. Each call allocates one, of 512 bytes: the
// allocator treats larger ones in a way that takes longer.
type Reservation struct {
	engine  *Engine
	asked   Ask           // what the call asked for
	charged []charged     // to the scopes of the call
	receipt store.Receipt // nil: nothing was taken

	ended   atomic.Bool
	pools   uint32 // the places of the scopes in whose shares what was taken counts, one bit for each
	inexact bool   // nobody knows for certain what the call has used
	limited bool   // for observers

	project, model string // for observers

	at     int64         // when it was made, if it is in pools
	member *fair.Who     // whom it counts for in them
	taken  []fair.Amount // what shares were charged, for each limit in pools; nil: what the call asked for, and it holds nothing

	probe      int64         // the number of the probe that the call is, or 0
	gated      *Scope        // whose gate it probes
	waited     time.Duration // how long the call has waited in line
	renewal    *renewal      // of its slots; nil: they are not renewed
	extensions *extensions   // nil: the call is not charged to a scope that cuts, or does not extend its reservation

	after   func(t llm.Tokens) // is called with what the call has used; may be nil
	entry   *books.Entry       // is booked when the call is committed; nil: the call is not booked
	counted *llm.Units         // what the call has used beside tokens; nil: what it has asked for
	count   *llm.TokenWeights  // of the tokens in the shared scope, if the reservation was deposited; else nil

	actuals [fewCharges]int64  // room for what was used of each charge, so that most settlements need no other memory
	scopes  [fewScopes]charged // room for charged
}

// newReservation returns the reservation of a call. receipt is that of the store; nil: nothing was taken.
func (e *Engine) newReservation(c *Call, o *Outcome, receipt store.Receipt) *Reservation {
	r := &Reservation{engine: e, asked: c.ask, receipt: receipt, project: c.Project, model: c.Model, limited: c.limited}
	r.charged = r.scopes[:0]
	all := o.all()
	for i := range all {
		r.charged = append(r.charged, all[i].charged)
	}
	if e.lease < Lease && r.hasSlots() {
		r.renewSlots(renewEvery)
	}
	for i := range r.charged {
		p := r.charged[i].plan
		if p.rules == nil || !p.rules.hard {
			continue
		}
		p.scope.Real().hold(p, &r.asked)
		if c.ask.First != nil && p.rules.Cut != ([units]bool{}) {
			r.extensions = &extensions{first: *c.ask.First, total: *c.ask.First}
		}
	}
	return r
}

// Commit corrects what was reserved to the tokens that the call has used. What was reserved
// of dollars stands. See CommitPriced.
func (r *Reservation) Commit(t llm.Tokens) bool { return r.CommitPriced(t, -1) }

// CommitPriced corrects what was reserved to what the call has used, and to its price in
// billionths of a dollar. Of a part that is not known, which is negative, what was reserved
// stands. Only the first commit or Cancel counts; it reports whether it was that.
func (r *Reservation) CommitPriced(t llm.Tokens, price int64) bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	r.extensions.end()
	t.Input, t.Output = max(t.Input, -1), max(t.Output, -1)
	t.FreeInput, t.FreeOutput = min(max(t.FreeInput, 0), max(t.Input, 0)), min(max(t.FreeOutput, 0), max(t.Output, 0))
	if r.after != nil {
		r.after(t)
	}
	if used := max(t.Input, t.Output); used > 0 {
		r.endProbe(ProbeServed)
	} else if used == 0 {
		r.endProbe(ProbeRefused)
	}
	var used spent
	r.spent(t, price, &used)
	r.settle(&used, r.booking(&used.Amounts))
	r.observe(event.Settled, t, used.Amounts[Dollars])
	return true
}

// Inexact marks what the commit will report as only the least that the call may have used. Scopes that
// reserve the most of a call keep that.
//
// That of no reservation has no effect.
func (r *Reservation) Inexact() {
	if r != nil {
		r.inexact = true
	}
}

// Count says what the call has used beside tokens, before it is committed. Without it, what was reserved stands, as it
// does for a unit of which the number is negative.
//
// That of no reservation has no effect.
func (r *Reservation) Count(used llm.Units) {
	if r == nil {
		return
	}
	other := false // than what was reserved
	for i, n := range used {
		asked := r.asked.Amounts[beside[i]]
		if n < 0 {
			n = asked
		}
		used[i] = min(n, MaxTokens)
		other = other || used[i] != asked
	}
	r.counted = nil
	if other {
		counted := used // so that most calls, which use tokens alone, allocate nothing
		r.counted = &counted
	}
}

// weights returns the weights of the tokens in the shared scope.
func (r *Reservation) weights() llm.TokenWeights {
	for i := range r.charged {
		if p := r.charged[i].plan; p.scope.OfModel() && p.rules != nil {
			return p.rules.Count
		}
	}
	if r.count != nil {
		return *r.count
	}
	return llm.TokenWeights{}
}

// Cancel gives back what was reserved, for a call that was never sent.
func (r *Reservation) Cancel() bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	r.extensions.end()
	r.endProbe(ProbeUnsent)
	r.giveBack()
	r.observe(event.Cancelled, llm.Tokens{}, 0)
	return true
}

// giveBack gives back all that was taken.
func (r *Reservation) giveBack() { r.settle(&spent{}, nil) }

// Stay ends the reservation of a call whose cost was known: what was reserved stays charged, and no event is sent.
// That of no reservation has no effect.
func (r *Reservation) Stay() {
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return
	}
	if r.pools != 0 {
		var used spent
		r.spent(llm.Tokens{Input: -1, Output: -1}, -1, &used)
		r.correctShares(&used)
	}
	for i := range r.charged {
		p := r.charged[i].plan
		p.scope.Real().giveBack(p, &r.asked)
	}
}

// AfterCommit has fn called with what the call has used, before it is settled.
func (r *Reservation) AfterCommit(fn func(t llm.Tokens)) { r.after = fn }

// Unlimited returns the reservation of a call that no limit governs.
func (e *Engine) Unlimited(c *Call) *Reservation {
	e.Miss(c.check(nil))
	return e.newReservation(c, new(Outcome), nil)
}

// Ended reports whether the reservation was committed or cancelled.
func (r *Reservation) Ended() bool { return r.ended.Load() }

// Served notes that the provider has taken the call, before it is known what it uses.
func (r *Reservation) Served() { r.endProbe(ProbeServed) }

// settle corrects what was taken, books an entry unless it is nil, and wakes the calls that wait for what is given back.
func (r *Reservation) settle(used *spent, entry *books.Entry) {
	e := r.engine
	r.endSlots()
	var extended *sync.WaitGroup
	if r.extensions != nil {
		extended = r.settleExtensions(used)
	}
	if r.pools != 0 {
		r.correctShares(used) // before the store, so that what is free there goes to whoever lacks it
	}
	if r.receipt != nil || entry != nil {
		e.correct(correction{receipt: r.receipt, actual: r.actual(used), entry: entry, charged: r.charged})
	} else {
		e.gaveBack(r.charged)
	}
	if extended != nil {
		extended.Wait()
	}
	if e.thresholds.Load() != nil {
		r.noticeRaise(used)
	}
	for i := range r.charged {
		p := r.charged[i].plan
		scope := p.scope.Real()
		if scope.gate != nil {
			scope.gate.Settled(r.refund(p, used))
		}
		scope.giveBack(p, &r.asked)
		e.wakeHere(scope)
	}
}

// refund returns what a call gives back, by unit, of the charges of plan p after it has used used.
func (r *Reservation) refund(p *plan, used *spent) (back Amounts) {
	for i := range p.charges {
		u := p.charges[i].unit
		if n := used.of(p.rules, u); n >= 0 {
			back[u] = max(p.rules.Amount(u, &r.asked)-n, 0)
		}
	}
	return back
}

// actual returns how much was used, in the order of the charges.
func (r *Reservation) actual(used *spent) []int64 {
	list := r.actuals[:0]
	for i := range r.charged {
		p := r.charged[i].plan
		for k := range p.charges {
			n := r.firstUsed(p, p.charges[k].unit, used)
			if p.charges[k].unit.InFlight() && r.slotsMoved() {
				n = -1
			}
			list = append(list, n)
		}
		for range r.charged[i].holds() {
			list = append(list, 0)
		}
	}
	return list
}

// observe sends the event of the end of a reservation. For a price that is not known, which is negative, the observer
// gets what was reserved.
func (r *Reservation) observe(kind event.Kind, used llm.Tokens, dollars int64) {
	o := r.engine.observer
	if o == nil {
		return
	}
	if dollars < 0 {
		dollars = r.asked.Amounts[Dollars]
	}
	o.Observe(context.Background(), event.Event{
		Kind: kind, Project: r.project, Model: r.model, Limited: r.limited, RemainingMinute: -1,
		Estimated: r.asked.Amounts[Tokens], Used: used, Dollars: price.Amount(dollars), Count: r.weights(),
	})
}

// Book has a call entered in the books when it is committed, in the same step in which what it has
// taken is settled. Its price is that of the commit, and the engine knows how long it has waited. For
// input and output that are negative, the books have what was reserved. A call that is cancelled is
// not booked. Nor is any call if the store keeps no books.
func (r *Reservation) Book(e books.Entry) { r.entry = &e }

// Waited returns how long the call has waited in line.
func (r *Reservation) Waited() time.Duration { return r.waited }

// booking returns the entry of a call that has used so much, or nil if the call is not booked. If the price is
// not known, which is negative, it is what was reserved.
func (r *Reservation) booking(used *Amounts) *books.Entry {
	if r.entry == nil {
		return nil
	}
	e := r.entry // which is not used again
	e.Amounts[books.Nanodollars] = used[Dollars]
	for i, u := range beside {
		e.Amounts[int(books.Beside)+i] = used[u]
	}
	for u, n := range r.reserved() {
		if e.Amounts[u] < 0 {
			e.Amounts[u] = n
		}
	}
	if r.waited > 0 {
		e.Amounts[books.Waited], e.Amounts[books.WaitTime] = 1, int64(r.waited)
	}
	return e
}

// reserved returns what the call was expected to use, as the books count it: all of it as input, if input and output
// are not known apart.
func (r *Reservation) reserved() books.Amounts {
	input := r.asked.Amounts[Input]
	if !r.asked.Split {
		input = r.asked.Amounts[Tokens]
	}
	return books.Amounts{
		books.Input: input + r.asked.FreeInput, books.Output: r.asked.Amounts[Output] + r.asked.FreeOutput,
		books.Nanodollars: r.asked.Amounts[Dollars],
	}
}
