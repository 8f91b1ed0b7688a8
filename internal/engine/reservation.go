package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// Reservation is what a call has taken before it is known what it uses. It is small, because
// to allocate it costs as much as to decide on the call.
type Reservation struct {
	plans []*plan    // by which the call was charged in its scopes
	hold  store.Hold // by which the store in memory knows what was taken
	first int64      // tokens that the call asked for: of its input, if split is set, and otherwise all
	other int64      // tokens of its output, if split is set
	price int64      // that the call was expected to have, in billionths of a dollar

	at      int64 // when it was made, if it is in pools
	ended   atomic.Bool
	split   bool
	limited bool   // for observers
	pools   uint32 // the plans by whose places what was taken counts in shares, one bit for each

	*special // &ordinary, unless any of it is set: see set
}

// special holds the fields that few reservations need. Memory is allocated for it only if one of
// them is set.
type special struct {
	requests int64              // as how many the call counts
	free     [2]int64           // tokens that the call asked for and the provider does not count, of its input and output
	receipt  store.Receipt      // by which any store but that in memory knows what was taken
	probe    int64              // the number of the probe that the call is, or 0
	gated    *Scope             // whose gate it probes
	renewal  *renewal           // of its slots for longer than a lease; nil: none
	flow     string             // of the call, if it has waited in a line
	line     *line.Line         // in which it has had a turn, or nil
	after    func(t llm.Tokens) // is told what the call has used; may be nil
	engine   *Engine            // of a call without scopes
	extra    []int64            // what shares were charged beyond what the call asked for, for each limit in pools; nil: nothing
	names    *names             // for observers, if they are not those of the scopes
	entry    *books.Entry       // is booked when the call is committed; nil: the call is not booked
	waited   time.Duration      // how long the call has waited in line
	count    llm.TokenWeights   // of the tokens in the shared scope, if the reservation was deposited
	most     Parts              // the most that the call can use; zero: what is expected
	inexact  bool               // nobody knows for certain what the call has used

	extensions *extensions // nil: the call is not charged to a scope that cuts, or does not extend its reservation
}

// names are those of the project and the model of a call.
type names struct{ project, model string }

// ordinary is the special part of a reservation that has none.
var ordinary = special{requests: 1}

// set returns the special part of a reservation for a change of it.
func (r *Reservation) set() *special {
	if r.special == &ordinary {
		r.special = &special{requests: 1}
	}
	return r.special
}

// small, medium and large are a reservation with room for its plans and its hold, allocated in one piece.
type (
	small struct {
		Reservation
		plans [2]*plan
		marks [4]limit.Mark
	}
	medium struct {
		Reservation
		plans [6]*plan
		marks [7]limit.Mark
	}
	large struct {
		Reservation
		plans [9]*plan
		marks [16]limit.Mark
	}
)

// newReservation returns the reservation of a call. hold is what the store in memory has noted of its
// take.
func (e *Engine) newReservation(c *Call, o *Outcome, hold *store.Hold) *Reservation {
	all := o.all()
	var r *Reservation
	var plans []*plan
	var marks []limit.Mark
	switch n := hold.Len(); {
	case len(all) <= len(small{}.plans) && n <= len(small{}.marks):
		s := new(small)
		r, plans, marks = &s.Reservation, s.plans[:], s.marks[:]
	case len(all) <= len(medium{}.plans) && n <= len(medium{}.marks):
		m := new(medium)
		r, plans, marks = &m.Reservation, m.plans[:], m.marks[:]
	default:
		l := new(large)
		r, plans, marks = &l.Reservation, l.plans[:], l.marks[:]
	}
	hold.CopyTo(&r.hold, marks)
	for i := range all {
		if i == len(plans) {
			plans = append(plans, nil)
		}
		plans[i] = all[i].plan
	}
	r.plans, r.special = plans[:len(all)], &ordinary
	r.note(e, c)
	return r
}

// note fills in what the call has asked for.
func (r *Reservation) note(e *Engine, c *Call) {
	r.first, r.price, r.split, r.limited = c.Ask.Amounts[Tokens], c.Ask.Amounts[Dollars], c.Ask.Split, c.Limited
	if c.Ask.Split {
		r.first, r.other = c.Ask.Amounts[Input], c.Ask.Amounts[Output]
	}
	if free := [2]int64{c.Ask.FreeInput, c.Ask.FreeOutput}; free != r.free {
		r.set().free = free
	}
	if n := c.Ask.Amounts[Requests]; n != 1 {
		r.set().requests = n
	}
	for _, p := range r.plans {
		if p.rules == nil || !p.rules.hard {
			continue
		}
		if c.Ask.Most != (Parts{}) {
			r.set().most = c.Ask.Most
		}
		p.scope.Real().hold(p, &c.Ask)
		if c.Ask.First != (Parts{}) && p.rules.Cut != ([units]bool{}) {
			r.set().extensions = &extensions{first: c.Ask.First, total: c.Ask.First}
		}
	}
	if len(r.plans) == 0 {
		r.set().engine = e
	}
	if e.observer != nil {
		if n := (names{c.Project, c.Model}); n != r.ofScopes() {
			r.set().names = &n
		}
	}
}

// ofScopes returns the names of the innermost of the call's own scopes, and of the shared one.
func (r *Reservation) ofScopes() (n names) {
	for _, p := range r.plans {
		switch {
		case p.scope.line != nil:
			n.model = p.scope.Name
		case n.project == "":
			n.project = p.scope.Name
		}
	}
	return n
}

// of returns the engine that has made the reservation.
func (r *Reservation) of() *Engine {
	if len(r.plans) == 0 {
		return r.engine
	}
	return r.plans[0].scope.engine
}

// ask fills in a, which is empty, with what the call asked for. To copy such an array right after
// it was filled in would take longer.
func (r *Reservation) ask(a *Ask) {
	a.Amounts[Requests], a.Amounts[Slots] = r.requests, 1
	a.Split, a.FreeInput, a.FreeOutput = r.split, r.free[0], r.free[1]
	a.Amounts[Tokens] = r.first
	if r.split {
		a.Amounts[Input], a.Amounts[Output] = r.first, r.other
		a.Amounts[Tokens] += r.other
	}
	a.Amounts[AllTokens] = a.Amounts[Tokens] + a.FreeInput + a.FreeOutput
	a.Amounts[Dollars] = r.price
	a.Most = r.most
	if r.extensions != nil {
		a.First = r.extensions.first
	}
}

// inShared returns what the call asked for of the shared scope, where input and output are
// each charged with all tokens if they are not known.
func (r *Reservation) inShared() (a Amounts) {
	var asked Ask
	r.ask(&asked)
	a = asked.Amounts
	for _, p := range r.plans {
		if p.rules == nil || !p.scope.isShared() {
			continue
		}
		for u := range units {
			if r.split && !p.rules.hard || u == Requests {
				continue
			}
			a[u] = p.rules.Amount(u, &asked)
		}
	}
	return a
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
	if r.probe != 0 {
		r.gated.gate.Committed(r.of().clock(), r.probe, max(t.Input, t.Output))
	}
	var asked Ask
	var used spent
	r.ask(&asked)
	r.spent(t, price, &asked, &used)
	r.settle(&asked, &used, r.booking(used.Amounts[Dollars]))
	r.observe(event.Settled, t)
	return true
}

// Inexact tells that what the commit will say is only the least that the call may have used. Scopes that
// reserve the most of a call keep that.
//
// That of no reservation has no effect.
func (r *Reservation) Inexact() {
	if r != nil {
		r.set().inexact = true
	}
}

// weights returns the weights of the tokens in the shared scope.
func (r *Reservation) weights() llm.TokenWeights {
	for _, p := range r.plans {
		if p.scope.isShared() && p.rules != nil {
			return p.rules.Count
		}
	}
	return r.count
}

// Cancel gives back what was reserved, for a call that was never sent.
func (r *Reservation) Cancel() bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	r.extensions.end()
	if r.probe != 0 {
		r.gated.gate.GiveBack(r.of().clock(), r.probe)
	}
	r.giveBack()
	r.observe(event.Cancelled, llm.Tokens{})
	return true
}

// giveBack gives back all that was taken.
func (r *Reservation) giveBack() {
	var asked Ask
	r.ask(&asked)
	r.settle(&asked, &spent{}, nil)
}

// AfterCommit lets fn be told what the call has used, before it is settled.
func (r *Reservation) AfterCommit(fn func(t llm.Tokens)) { r.set().after = fn }

// Unlimited returns the reservation of a call that no limit governs.
func (e *Engine) Unlimited(c *Call) *Reservation {
	return e.newReservation(c, new(Outcome), new(store.Hold))
}

// Ended reports whether the reservation was committed or cancelled.
func (r *Reservation) Ended() bool { return r.ended.Load() }

// Served tells that the provider has taken the call, before it is known what it uses.
func (r *Reservation) Served() {
	if r.probe != 0 {
		r.gated.gate.Served(r.probe)
	}
}

// settle corrects what was taken, books an entry unless it is nil, and lets calls go on that wait for
// what is given back.
func (r *Reservation) settle(asked *Ask, used *spent, entry *books.Entry) {
	e := r.of()
	if r.renewal != nil {
		r.renewal.end(r)
	}
	var extended *sync.WaitGroup
	if r.extensions != nil {
		extended = r.settleExtensions(asked, used)
	}
	if e.memory != nil {
		var few [fewCharges]store.Settlement
		e.memory.SettleHold(&r.hold, r.settlements(few[:0], asked, used))
		if entry != nil {
			e.memory.Enter(*entry)
		}
	} else if r.receipt != nil || entry != nil {
		e.correct(correction{receipt: r.receipt, actual: r.actual(nil, asked, used), entry: entry})
	}
	if extended != nil {
		extended.Wait()
	}
	if e.thresholds.Load() != nil {
		r.noticeRaise(asked, used)
	}
	if r.pools != 0 {
		r.correctShares(asked, used)
	}
	if r.line != nil {
		r.line.Charge(r.flow, r.costMore(used))
	}
	for _, p := range r.plans {
		scope := p.scope.Real()
		if scope.gate != nil && e.memory == nil {
			asked := r.inShared()
			scope.gate.Settled(asked, used.known(p.rules, &asked))
		}
		scope.giveBack(p, asked)
		e.Wake(scope)
	}
}

// settlements appends what was taken and what was used, for the store in memory.
func (r *Reservation) settlements(list []store.Settlement, asked *Ask, used *spent) []store.Settlement {
	for _, p := range r.plans {
		for i := range p.charges {
			c := &p.charges[i]
			list = append(list, store.Settlement{Of: &c.Charge, Taken: p.rules.Amount(c.unit, asked), Actual: r.firstUsed(p, c.unit, asked, used)})
		}
	}
	return list
}

// actual appends amounts in the order of the charges.
func (r *Reservation) actual(list []int64, asked *Ask, used *spent) []int64 {
	for _, p := range r.plans {
		for i := range p.charges {
			list = append(list, r.firstUsed(p, p.charges[i].unit, asked, used))
		}
	}
	return list
}

// costMore returns how much more of the shared scope the call has used than its turn has
// cost. A slot that it gives back it has had.
func (r *Reservation) costMore(used *spent) (more int64) {
	taken := Ask{Parts: Parts{Amounts: r.inShared()}, Split: true}
	for _, p := range r.plans {
		if p.scope.line == r.line && p.rules != nil {
			had := Ask{Parts: Parts{Amounts: used.known(p.rules, &taken.Amounts)}, Split: true}
			had.Amounts[Slots] = taken.Amounts[Slots]
			more = p.share(&had) - p.share(&taken)
		}
	}
	return more
}

// observe tells of the end of a reservation.
func (r *Reservation) observe(kind event.Kind, used llm.Tokens) {
	o := r.of().observer
	if o == nil {
		return
	}
	n := r.ofScopes()
	if r.names != nil {
		n = *r.names
	}
	var asked Ask
	r.ask(&asked)
	o.Observe(context.Background(), event.Event{
		Kind: kind, Project: n.project, Model: n.model, Limited: r.limited, RemainingMinute: -1,
		Estimated: asked.Amounts[Tokens], Used: used, Count: r.weights(),
	})
}
