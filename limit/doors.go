package limit

import (
	"context"
	"math"
)

// doors has the methods that limiters and combinations of limiters have in common. Each
// of them ends in decide, unless a counter of one word can answer.
type doors[In any] struct{ parts []part[In] }

// part is one limiter of a combination.
type part[In any] struct {
	book   *book
	hash   func(In) uint64 // returns the hash of the request's key
	limits func(In) []Limit
	cost   func(In) int64 // nil: every request costs 1
	index  int            // the index of the limiter among those that were combined
}

// itsCost, as an amount, means the cost of the request. No caller can pass it, since the
// function amount turns all negative amounts into -1.
const itsCost = math.MinInt64

func amount(n int64) int64 { return max(n, -1) }

// amount returns n, or the cost of a request if n is itsCost.
func (p *part[In]) amount(in In, n int64) int64 {
	switch {
	case n != itsCost:
		return n
	case p.cost == nil:
		return 1
	default:
		return amount(p.cost(in))
	}
}

// demands appends a demand for each limiter, and one for a limiter that occurs twice.
func (c *doors[In]) demands(to []demand, in In, n int64) []demand {
	for i := range c.parts {
		p := &c.parts[i]
		d := demand{book: p.book, hash: p.hash(in), limits: p.limits(in), n: p.amount(in, n), index: p.index}
		if last := len(to) - 1; last >= 0 && to[last].book == d.book {
			to[last].n = max(to[last].n, d.n)
			continue
		}
		to = append(to, d)
	}
	return to
}

// quick returns the book of the only limiter if spend can decide on an amount of n, and
// otherwise nil.
func (c *doors[In]) quick(in In, n int64) (b *book, hash uint64, cost int64) {
	if len(c.parts) != 1 || c.parts[0].book.words == nil {
		return nil, 0, 0
	}
	p := &c.parts[0]
	if n = p.amount(in, n); n <= 0 || n > p.book.gcra.limit.burst {
		return nil, 0, 0
	}
	return p.book, p.hash(in), n
}

// Allow reports whether in may pass now, and charges it if so.
func (c *doors[In]) Allow(in In) bool { return c.allow(in, itsCost) }

// AllowN is Allow for an amount of n in place of in's cost.
func (c *doors[In]) AllowN(in In, n int64) bool { return c.allow(in, amount(n)) }

func (c *doors[In]) allow(in In, n int64) bool {
	if b, hash, cost := c.quick(in, n); b != nil {
		if _, allowed, ok := b.spend(hash, cost, toTake); ok {
			return allowed
		}
	}
	return c.decide(in, n, toTake).Allowed
}

// Take charges n to in's key under every limit, or nothing if a limit denies. The
// decision says which limit decided, how much is left of it, and when to come back.
func (c *doors[In]) Take(in In, n int64) Decision { return c.ask(in, amount(n), toTake) }

// Spend is Take for in's cost.
func (c *doors[In]) Spend(in In) Decision { return c.ask(in, itsCost, toTake) }

// Peek returns the decision that Allow would make, and charges nothing. Its Used and
// Remaining are those before the request.
func (c *doors[In]) Peek(in In) Decision { return c.ask(in, itsCost, toPeek) }

func (c *doors[In]) ask(in In, n int64, why purpose) Decision {
	if b, hash, cost := c.quick(in, n); b != nil {
		if backlog, allowed, ok := b.spend(hash, cost, why); ok {
			return b.gcra.verdict(backlog, cost, allowed).By(b.gcra.limit)
		}
	}
	return c.decide(in, n, why)
}

func (c *doors[In]) decide(in In, n int64, why purpose) Decision {
	var few [4]demand
	return decide(c.demands(few[:0], in, n), why, present, nil)
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
	if b, hash, cost := c.quick(in, n); b != nil && ctx.Err() == nil {
		if _, allowed, ok := b.spend(hash, cost, toTake); ok && allowed {
			return nil
		}
	}
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
