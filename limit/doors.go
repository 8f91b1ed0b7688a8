package limit

import (
	"context"
	"math"
)

// doors is what a limiter and a combination of limiters have in common: all ways to ask
// them. Each ends in decide.
type doors[In any] struct{ parts []part[In] }

// part is one limiter of a combination.
type part[In any] struct {
	book   *book
	demand func(in In, n int64) demand
	index  int
}

// itsCost stands for the result of the cost functions if the caller has named no amount.
// No caller can name it, since amount turns all negative amounts into -1.
const itsCost = math.MinInt64

func amount(n int64) int64 { return max(n, -1) }

// demands appends a demand for each limiter.
func (c *doors[In]) demands(to []demand, in In, n int64) []demand {
	for _, p := range c.parts {
		d := p.demand(in, n)
		d.index = p.index
		if last := len(to) - 1; last >= 0 && to[last].book == d.book {
			to[last].n = max(to[last].n, d.n)
			continue
		}
		to = append(to, d)
	}
	return to
}

// Allow reports whether in may pass now, and charges it if so.
func (c *doors[In]) Allow(in In) bool { return c.take(in, itsCost).Allowed }

// AllowN is Allow for an amount of n in place of in's cost.
func (c *doors[In]) AllowN(in In, n int64) bool { return c.take(in, amount(n)).Allowed }

// Take charges n to in's key under every limit, or nothing if one denies. The decision
// says which limit decided, what is left of it, and when to come back.
func (c *doors[In]) Take(in In, n int64) Decision { return c.take(in, amount(n)) }

// Spend is Take for in's cost.
func (c *doors[In]) Spend(in In) Decision { return c.take(in, itsCost) }

func (c *doors[In]) take(in In, n int64) Decision {
	var few [4]demand
	return decide(c.demands(few[:0], in, n), toTake, present, nil)
}

// Peek returns the decision that Allow would make, and charges nothing. What it says
// remains is what remains now.
func (c *doors[In]) Peek(in In) Decision {
	var few [4]demand
	return decide(c.demands(few[:0], in, itsCost), toPeek, present, nil)
}

// Wait charges in as soon as it may pass. Calls that wait for the same counters are
// served first come, first served, and while they wait, Allow and Take deny other
// requests for these counters. A wait that ctx ends takes nothing, and returns ctx's
// error. If in cannot pass before ctx's deadline, Wait fails at once. If it can never
// pass, the error is [ErrNever].
func (c *doors[In]) Wait(ctx context.Context, in In) error { return c.wait(ctx, in, itsCost) }

// WaitN is Wait for an amount of n in place of in's cost.
func (c *doors[In]) WaitN(ctx context.Context, in In, n int64) error {
	return c.wait(ctx, in, amount(n))
}

func (c *doors[In]) wait(ctx context.Context, in In, n int64) error {
	var few [4]demand
	return wait(ctx, c.demands(few[:0], in, n), math.MaxInt)
}

// Reserve takes the expected cost of in, which is corrected when the cost is known:
//
//	r, d := limiter.Reserve(in)
//	if !d.Allowed {
//		return d.RetryAfter
//	}
//	defer r.Cancel() // does nothing after Settle
//	…
//	r.Settle(used)
func (c *doors[In]) Reserve(in In) (*Reservation, Decision) { return c.reserve(in, itsCost) }

// ReserveN is Reserve for an amount of n in place of in's cost.
func (c *doors[In]) ReserveN(in In, n int64) (*Reservation, Decision) {
	return c.reserve(in, amount(n))
}

func (c *doors[In]) reserve(in In, n int64) (*Reservation, Decision) {
	r := &Reservation{demands: c.demands(nil, in, n)}
	d := decide(r.demands, toTake, present, r)
	if !d.Allowed {
		return nil, d
	}
	return r, d
}
