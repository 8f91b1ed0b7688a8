package limit

import (
	"context"
	"hash/maphash"
	"slices"
)

// Limiter holds keys to limits. A function returns the key of a request: a user, an
// address, a model. Keys do not affect each other, and a new key has used nothing. K
// should be a concrete type: if it is an interface, values of different types that are
// equal as bits share one counter.
//
// A counter belongs to a key and a limit. If a function chooses the limits, a key whose
// limit changes begins a new counter; but all sliding logs of a key share one history,
// which stays.
//
// A Limiter is safe for concurrent use.
type Limiter[In any, K comparable] struct {
	doors[In]
	book   *book
	seed   maphash.Seed
	key    func(In) K
	limits func(In) []Limit
	cost   func(In) int64
}

// NewLimiter returns a limiter that holds every key to the same limits. With
// no limits it allows everything. A limit that is not valid admits nothing:
// see [Limit.Validate].
func NewLimiter[In any, K comparable](key func(In) K, limits ...Limit) *Limiter[In, K] {
	limits = slices.Clone(limits)
	return newLimiter(key, func(In) []Limit { return limits }, newBook(limits))
}

// NewLimiterFunc returns a limiter that calls a function for the limits of each request,
// which may be none. The function should choose among few limits: each limit that a
// key meets has a counter of its own until that is full again. It must not change a
// slice that it has returned.
func NewLimiterFunc[In any, K comparable](key func(In) K, limits func(In) []Limit) *Limiter[In, K] {
	return newLimiter(key, limits, newBook(nil))
}

func newLimiter[In any, K comparable](key func(In) K, limits func(In) []Limit, b *book) *Limiter[In, K] {
	l := &Limiter[In, K]{book: b, seed: maphash.MakeSeed(), key: key, limits: limits}
	l.parts = []part[In]{{book: b, demand: l.demand}}
	return l
}

// WithCost returns a limiter over the same counters in which the cost of a request is the
// result of a function, instead of 1. Methods that name an amount do not use it.
func (l *Limiter[In, K]) WithCost(cost func(In) int64) *Limiter[In, K] {
	priced := *l
	priced.cost = cost
	priced.parts = []part[In]{{book: l.book, demand: priced.demand}}
	return &priced
}

// Len returns the number of counters in memory: those in use, and those that are not yet
// forgotten.
func (l *Limiter[In, K]) Len() int { return l.book.len() }

func (l *Limiter[In, K]) costOf(in In) int64 {
	if l.cost == nil {
		return 1
	}
	return amount(l.cost(in))
}

func (l *Limiter[In, K]) hash(in In) uint64 {
	return max(maphash.Comparable(l.seed, l.key(in)), 1)
}

func (l *Limiter[In, K]) demand(in In, n int64) demand {
	if n == itsCost {
		n = l.costOf(in)
	}
	return demand{book: l.book, hash: l.hash(in), limits: l.limits(in), n: n}
}

// Allow reports whether in may pass now, and charges it if so.
func (l *Limiter[In, K]) Allow(in In) bool { return l.AllowN(in, l.costOf(in)) }

// AllowN is Allow for an amount of n in place of in's cost.
func (l *Limiter[In, K]) AllowN(in In, n int64) bool {
	if l.book.quick(n) {
		if _, allowed, ok := l.book.spend(l.hash(in), n, toTake); ok {
			return allowed
		}
	}
	return l.doors.AllowN(in, n)
}

// Take charges n to in's key under every limit, or nothing if one denies. The decision
// says which limit decided, what is left of it, and when to come back.
func (l *Limiter[In, K]) Take(in In, n int64) Decision {
	if l.book.quick(n) {
		if backlog, allowed, ok := l.book.spend(l.hash(in), n, toTake); ok {
			return l.book.gcra.verdict(backlog, n, allowed).by(l.book.gcra.limit)
		}
	}
	return l.doors.Take(in, n)
}

// Spend is Take for in's cost.
func (l *Limiter[In, K]) Spend(in In) Decision { return l.Take(in, l.costOf(in)) }

// Peek returns the decision that Allow would make, and charges nothing. What it says
// remains is what remains now.
func (l *Limiter[In, K]) Peek(in In) Decision {
	n := l.costOf(in)
	if l.book.quick(n) {
		if backlog, allowed, ok := l.book.spend(l.hash(in), n, toPeek); ok {
			return l.book.gcra.verdict(backlog, n, allowed).by(l.book.gcra.limit)
		}
	}
	return l.doors.Peek(in)
}

// Wait charges in as soon as it may pass. Calls that wait for the same counters are
// served first come, first served, and while they wait, Allow and Take deny other
// requests for these counters. A wait that ctx ends takes nothing, and returns ctx's
// error. If in cannot pass before ctx's deadline, Wait fails at once. If it can never
// pass, the error is [ErrNever].
func (l *Limiter[In, K]) Wait(ctx context.Context, in In) error {
	return l.WaitN(ctx, in, l.costOf(in))
}

// WaitN is Wait for an amount of n in place of in's cost.
func (l *Limiter[In, K]) WaitN(ctx context.Context, in In, n int64) error {
	if l.book.quick(n) && ctx.Err() == nil {
		if _, allowed, ok := l.book.spend(l.hash(in), n, toTake); ok && allowed {
			return nil
		}
	}
	return l.doors.WaitN(ctx, in, n)
}
