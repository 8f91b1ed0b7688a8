package engine

import (
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// Limit is one of the limits of a scope.
type Limit struct {
	Name   string           // as decisions and events have it
	ID     int              // the door's own number for it
	Window *decision.Window // as the limits of projects, keys and runs are reported; nil for other limits, and for calls at a time
	Unit   Unit
	Limit  limit.Limit
	Free   bool // it denies nothing: its count is boundless, and it only counts what is used

	// Pace is set if the limit is a bucket that spreads evenly what another limit of the unit admits. A call that is
	// larger than the burst passes when the bucket is full; what exceeds the burst is a debt, for which later calls wait.
	Pace bool

	// Elsewhere is what others use of the account, by which the limit was lowered: see [Rules.Lowered].
	Elsewhere int64

	// Budget is set if observers get an event when the limit reaches a threshold.
	Budget bool
}

const (
	// Boundless is the count of a limit that only counts.
	Boundless = 1 << 62

	// SlotGuess is when to ask again for a slot: nobody knows when a call ends.
	SlotGuess = time.Second
)

// AtATime returns a limit of n that calls under way hold at a time: slots, or tokens in flight. In a store that other
// processes use, the engine counts by a shorter period.
func AtATime(n int64) limit.Limit { return limit.New(n, Lease).Using(limit.SlidingLog) }

// Rules are what holds in a scope, made ready for calls. They are replaced, never changed. What every call
// needs comes first, so that it is together in the processor's cache.
type Rules struct {
	limited   bool                    // some limit denies
	divisible bool                    // some limit may be divided among flows
	capped    bool                    // MaxShare is set
	sharing   atomic.Pointer[sharing] // nil: nothing is divided among flows
	plans     [parts]plan

	Limits []Limit // of several that deny equally long, the first decides
	Setup  any     // what the door made them from

	// LeastTokens is how many of AllTokens a call takes at least until it ends, so that a debt
	// holds up a caller who never estimates.
	LeastTokens int64

	Count llm.TokenWeights // of a shared scope, for Tokens, Input and Output

	// Most says of which units the limits reserve the most that a call can use, in place of what it is expected
	// to use.
	Most [units]bool

	// Cut says of which units the limits let streams reserve more as they come: see [Reservation.Extend]. Most is set
	// for these as well: a call that does not extend its reservation reserves the most.
	Cut [units]bool

	Rank       int // of the scope's calls in the line of another scope: higher comes first
	Weight     int // of the scope among those of its rank: 0 is 1
	MaxWaiting int // how many of its calls may wait for one other scope: 0 is any number

	// MinShare and MaxShare are the parts of every limit of a shared scope, and of the scopes
	// above it, that the scope's calls have at least and at most; a MaxShare of 0 is all.
	// MinShare is kept free while the calls come, or always: see [Engine.Dedicate].
	MinShare, MaxShare float64

	Reserve float64 // the part of a shared scope's limits that is kept for flows that come anew

	scope    *Scope
	shadowOf *Rules              // the rules whose limits these count by, and do not deny; nil: they deny
	budgets  *budgets            // nil: none of the limits is a budget
	smallest [units]int64        // the least count of the unit's limits; 0: it has none
	hard     bool                // some limit reserves the most of a call
	slots    bool                // some limit is on what calls hold while they are under way
	ample    [units]atomic.Int64 // of how large calls the limits have room for very many, so that it does not matter what these reserve
}

// Part is the part of a scope's limits that a call is charged to.
type Part uint8

const (
	Whole        Part = iota // every limit: the call makes a reservation
	WithoutSlots             // all limits but those on calls under way: nobody says when the call ends
	RequestsOnly             // the limits on requests: the call has no tokens either

	// Batch is WithoutSlots for many calls that the provider makes when it likes. What they use is
	// no rate: limits of less than an hour on anything but requests count it, and do not deny it.
	Batch
	parts
)

func (p Part) has(u Unit) bool {
	return p == Whole || u == Requests || (p == WithoutSlots || p == Batch) && !u.InFlight()
}

// of returns a limit as it holds for a call of the part.
func (p Part) of(l *Limit) limit.Limit {
	if p.onlyCounts(l) {
		return boundless(l.Limit)
	}
	return l.Limit
}

// onlyCounts reports whether a limit counts calls of the part, and does not deny them.
func (p Part) onlyCounts(l *Limit) bool {
	return p == Batch && l.Unit != Requests && l.Limit.Period() < time.Hour
}

// onlyCounts reports whether a limit counts calls of the plan, and does not deny them.
func (p *plan) onlyCounts(l *Limit) bool { return p == &p.rules.plans[Batch] && Batch.onlyCounts(l) }

// of returns a limit of the rules as it holds for a call of a part.
func (r *Rules) of(l *Limit, part Part) limit.Limit {
	switch {
	case l.Unit.InFlight() && r.shadowOf != nil:
		return r.scope.engine.slots(Boundless)
	case l.Unit.InFlight():
		return r.scope.engine.slots(l.Limit.Count())
	case r.shadowOf != nil:
		return boundless(l.Limit)
	}
	return part.of(l)
}

// slots returns a limit of n that calls under way hold at a time, as the engine's store counts them.
func (e *Engine) slots(n int64) limit.Limit { return limit.New(n, e.lease).Using(limit.SlidingLog) }

// plan is what a store is asked for a call in one scope.
type plan struct {
	scope   *Scope
	rules   *Rules // nil: the scope limits nothing
	charges []charge
	limits  []int    // for each decision of the store on charges, the place of its limit in Rules.Limits
	holds   []charge // what calls under way have reserved, of each unit that counts it in the store; they deny nothing
}

// charge is the charge of one unit in a plan: what the store is asked for a call.
type charge struct {
	store.Charge // prepared, of nothing
	unit         Unit
	burst        int64 // of the limit that paces the unit; 0: none does
}

// ready makes the rules ready for the calls of a scope.
func (r *Rules) ready(s *Scope) error {
	r.scope, r.capped = s, r.MaxShare > 0
	for i := range r.Limits {
		l := &r.Limits[i]
		r.slots = r.slots || l.Unit.InFlight()
		if l.Budget && r.budgets == nil {
			r.budgets = &budgets{notified: make([]atomic.Pointer[notified], len(r.Limits))}
		}
		if l.Free {
			continue
		}
		r.limited = true
		r.divisible = r.divisible || r.shadowOf == nil && r.divides(l)
		if n := l.Limit.Count(); r.smallest[l.Unit] == 0 || n < r.smallest[l.Unit] {
			r.smallest[l.Unit] = n
		}
		r.hard = r.hard || r.Most[l.Unit]
	}
	for part := range parts {
		if err := r.plan(part); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rules) plan(part Part) error {
	p := &r.plans[part]
	p.scope, p.rules = r.scope, r
	for u := range units {
		var limits []limit.Limit
		burst := int64(0)
		for i := range r.Limits {
			if l := &r.Limits[i]; l.Unit == u && part.has(u) {
				limits = append(limits, r.of(l, part))
				p.limits = append(p.limits, i)
				if l.Pace && r.shadowOf == nil {
					burst = l.Limit.Burst()
				}
			}
		}
		if limits == nil {
			continue
		}
		prepared, err := store.Prepare(r.Key(u), limits)
		if err != nil {
			return err
		}
		p.charges = append(p.charges, charge{prepared, u, burst})
		if err := r.planHold(part, p, u); err != nil {
			return err
		}
	}
	return nil
}

// Key returns the key of the scope's counters of a unit.
func (r *Rules) Key(u Unit) string { return r.scope.Key + u.String() }

// Amount returns how much of a unit a call is charged.
func (r *Rules) Amount(u Unit, ask *Ask) int64 {
	n := ask.Amounts[u]
	if r.Most[u] {
		most := ask.Most
		if r.Cut[u] && ask.First != nil {
			most = ask.First
		}
		if most != nil {
			n = max(n, most.Amounts[u])
		}
	}
	switch {
	case !ask.Split && (u == Input || u == Output):
		n = min(ask.Amounts[Tokens], r.smallest[u])
	case u == AllTokens && ask.Amounts[Requests] > 0:
		n = max(n, r.LeastTokens)
	}
	return n
}

// append appends what a call is charged.
func (p *plan) append(list []store.Charge, ask *Ask) []store.Charge {
	for i := range p.charges {
		c := &p.charges[i]
		n := p.rules.Amount(c.unit, ask)
		list = append(list, *c.of(n))
		list[len(list)-1].N = n
	}
	return list
}

// of returns the prepared charge for a call of n.
func (c *charge) of(n int64) *store.Charge {
	if c.burst > 0 && n > c.burst {
		return c.larger(n)
	}
	return &c.Charge
}

// larger returns the charge with a burst of n in the limit that paces its unit. A bucket of this
// burst lets a call of n pass when it is full, and only then. What was used stays when the burst of a
// limit changes, so the next call finds the debt.
func (c *charge) larger(n int64) *store.Charge {
	limits := slices.Clone(c.Limits)
	for k := range limits {
		if limits[k].Algorithm() == limit.GCRA {
			limits[k] = limits[k].WithBurst(n)
		}
	}
	larger, err := store.Prepare(c.Key, limits)
	if err != nil { // no such call can ever pass
		return &c.Charge
	}
	return &larger
}

// unpaced returns the prepared charge under limits that let anything pass at once which does not exceed the limit that
// is paced.
func (c *charge) unpaced() *store.Charge {
	if c.burst == 0 {
		return &c.Charge
	}
	return c.larger(min(c.burst, Boundless>>20) << 20)
}

// has reports whether a limit of such a name, or one that the share of such a name is of, has a part in the
// plan.
func (p *plan) has(name string) bool {
	name = strings.TrimSuffix(name, ShareEnd)
	for _, i := range p.limits {
		if p.rules.Limits[i].Name == name {
			return true
		}
	}
	return false
}

// share returns how much of its scope a call takes, of the limit of which it takes
// most: fair.WholeTurn is all.
func (p *plan) share(ask *Ask) (most int64) {
	for i := range p.charges {
		if u := p.charges[i].unit; p.rules.smallest[u] > 0 {
			most = max(most, shareOf(p.rules.Amount(u, ask), p.rules.smallest[u]))
		}
	}
	return most
}

func shareOf(n, of int64) int64 {
	if n >= of {
		return fair.WholeTurn
	}
	hi, lo := bits.Mul64(uint64(n), fair.WholeTurn)
	share, _ := bits.Div64(hi, lo, uint64(of))
	return int64(share)
}
