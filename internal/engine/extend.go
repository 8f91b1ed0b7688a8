package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
)

// extensions are what a call reserves as its answer comes, beyond what it has reserved at first, in scopes that cut.
// Calls without such a scope have none.
type extensions struct {
	first Ask // what the call has reserved at first

	mu    sync.Mutex
	all   []extension
	total Ask  // first and all extensions
	ended bool // no more of them are taken
}

// extension is what one extension has taken of each unit.
type extension struct {
	amounts Amounts
	receipt store.Receipt
}

// Denial is why a reservation was not extended.
type Denial struct {
	Scope      *Scope // whose limit it is
	Limit      *Limit
	RetryAfter time.Duration
	Left       int64 // of what the limit counts
}

var (
	errEnded     = errors.New("ratelimit: the reservation has ended")
	errExtended  = errors.New("ratelimit: a reservation that can be extended cannot be kept by the store")
	errExtension = errors.New("ratelimit: an extension has output tokens and a price, and nothing else")
)

// Extend reserves more for a call, tokens of its output and a price in billionths of a dollar, in all scopes that cut,
// or in none if one of them denies it. It asks neither gates nor shares: these count what was used when the call ends. A
// call that is not charged to such a scope needs nothing more.
func (r *Reservation) Extend(ctx context.Context, more llm.Tokens, dollars price.Amount) (*Denial, error) {
	x := r.extensions
	if x == nil {
		return nil, nil
	}
	ask := Ask{Split: true}
	if err := ask.split(more); err != nil {
		return nil, err
	}
	if err := checkPrice(dollars); err != nil {
		return nil, err
	}
	ask.Amounts[Dollars] = int64(dollars)
	if more.Input != 0 {
		return nil, errExtension
	}
	if r.ended.Load() {
		return nil, errEnded
	}
	if w := r.weights(); !w.IsZero() {
		ask.weighParts(w, more)
	}
	taken := extension{amounts: ask.Amounts}
	denial, err := r.takeExtension(ctx, &taken)
	if denial != nil || err != nil {
		return denial, err
	}
	if !x.add(&taken, &ask) { // the call has ended meanwhile
		r.settleExtension(&taken, func(*plan, Unit) int64 { return 0 })
		return nil, errEnded
	}
	r.holdExtension(&taken, 1)
	return nil, nil
}

// Extends reports whether the call extends its reservation. That of no reservation is false.
func (r *Reservation) Extends() bool { return r != nil && r.extensions != nil }

// extended is a charge by which a reservation is extended.
type extended struct {
	*plan
	charge *charge
	at     int // the place of its first limit in the plan's
}

// extended returns the charges by which amounts are reserved.
func (r *Reservation) extended(amounts *Amounts) (list []extended) {
	for i := range r.charged {
		p, at := r.charged[i].plan, 0
		for k := range p.charges {
			c := &p.charges[k]
			if p.rules.Cut[c.unit] && amounts[c.unit] > 0 {
				list = append(list, extended{p, c, at})
			}
			at += len(c.Limits)
		}
	}
	return list
}

// takeExtension takes the amounts of an extension, or nothing.
func (r *Reservation) takeExtension(ctx context.Context, x *extension) (*Denial, error) {
	e, list := r.engine, r.extended(&x.amounts)
	switch {
	case e.closed.Load():
		return nil, store.ErrClosed
	case len(list) == 0:
		return nil, nil
	}
	if err := e.catchUp(ctx); err != nil && !e.remote { // as in takeStore
		return nil, err
	}
	charges := make([]store.Charge, len(list))
	for i, c := range list {
		charges[i] = *c.charge.unpaced()
		charges[i].N = x.amounts[c.charge.unit]
	}
	receipt, said, err := e.store.Take(ctx, charges)
	if err != nil {
		return nil, err
	}
	x.receipt = receipt
	return denialOf(list, said), nil
}

// denialOf returns the limit that denies longest, or nil if none does.
func denialOf(list []extended, said []limit.Decision) (d *Denial) {
	for _, c := range list {
		for i := range min(len(c.charge.Limits), len(said)) {
			v, l := &said[i], &c.rules.Limits[c.limits[c.at+i]]
			switch {
			case v.Allowed:
			case d == nil || v.RetryAfter > d.RetryAfter:
				d = &Denial{c.scope.Real(), l, v.RetryAfter, v.Remaining}
			case l.Unit == d.Limit.Unit:
				d.Left = min(d.Left, v.Remaining)
			}
		}
		said = said[min(len(c.charge.Limits), len(said)):]
	}
	return d
}

// add adds an extension that was taken, unless the call has ended.
func (x *extensions) add(taken *extension, ask *Ask) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.all = append(x.all, *taken)
	for u := range units {
		x.total.Amounts[u] += ask.Amounts[u]
	}
	x.total.FreeInput += ask.FreeInput
	x.total.FreeOutput += ask.FreeOutput
	return true
}

// end prevents further extensions. A call without any may have nil.
func (x *extensions) end() {
	if x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = true
	}
}

// more reports whether extensions have taken of a unit.
func (x *extensions) more(u Unit) bool { return x != nil && x.total.Amounts[u] > x.first.Amounts[u] }

// actual returns how much of a unit was used of what an extension has taken, if so much was used of everything: what
// was taken first was used first, and the last extension has what is left over. first is what the call has taken before
// all extensions.
func (x *extensions) actual(k int, u Unit, first, used int64) int64 {
	if used < 0 {
		return -1
	}
	last := 0
	for i := range x.all {
		if n := x.all[i].amounts[u]; n > 0 {
			last = i
			if i < k {
				first += n
			}
		}
	}
	n := max(used-first, 0)
	if k < last {
		n = min(n, x.all[k].amounts[u])
	}
	return n
}

// settleExtensions corrects what extensions have taken to what was used of them. A store that settles nothing later is
// asked for all of them at the same time; the caller waits for that.
func (r *Reservation) settleExtensions(used *spent) *sync.WaitGroup {
	x, wg := r.extensions, new(sync.WaitGroup)
	spent := *used // that of the caller may be on its stack
	for k := range x.all {
		taken := &x.all[k]
		r.holdExtension(taken, -1)
		settle := func() {
			r.settleExtension(taken, func(p *plan, u Unit) int64 {
				return x.actual(k, u, p.rules.Amount(u, &r.asked), spent.of(p.rules, u))
			})
		}
		if r.engine.later != nil {
			settle()
		} else {
			wg.Go(settle)
		}
	}
	return wg
}

// settleExtension corrects what an extension has taken. If all of it was used, nobody has to be asked.
func (r *Reservation) settleExtension(x *extension, actual func(*plan, Unit) int64) {
	e, list := r.engine, r.extended(&x.amounts)
	amounts := make([]int64, len(list))
	corrects := false
	for i, c := range list {
		u := c.charge.unit
		amounts[i] = actual(c.plan, u)
		corrects = corrects || amounts[i] >= 0 && amounts[i] != x.amounts[u]
	}
	if corrects && x.receipt != nil {
		e.correct(correction{receipt: x.receipt, actual: amounts})
	}
}

// holdExtension notes what calls under way hold of scopes: more with a sign of 1, less with -1.
func (r *Reservation) holdExtension(x *extension, sign int64) {
	for _, c := range r.extended(&x.amounts) {
		c.scope.Real().heldOf()[c.charge.unit].Add(sign * x.amounts[c.charge.unit])
	}
}
