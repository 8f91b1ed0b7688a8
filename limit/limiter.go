package limit

import (
	"hash/maphash"
	"slices"
)

// Limiter applies limits to keys. A function returns the key of a request, such as a user,
// an address or a model. Keys do not affect each other, and a new key has used nothing. K
// should be a concrete type: if it is an interface, values of different types that are
// equal as bits share one counter.
//
// A counter belongs to a key and a limit. If a function chooses the limits, a key whose
// limit changes begins a new counter; but all sliding logs of a key share one history,
// which stays.
//
// A Limiter is safe for concurrent use.
type Limiter[In any, K comparable] struct{ doors[In] }

// NewLimiter returns a limiter that applies the same limits to every key.
// Without limits it allows everything. A limit that is not valid admits
// nothing: see [Limit.Validate].
func NewLimiter[In any, K comparable](key func(In) K, limits ...Limit) *Limiter[In, K] {
	limits = slices.Clone(limits)
	return newLimiter(key, func(In) []Limit { return limits }, newBook(limits))
}

// NewLimiterFunc returns a limiter that calls a function for the limits of each request,
// which may be none. The function should choose among few limits: for each of them, a
// key has a counter until that counter is full again. The function must not change a
// slice that it has returned.
func NewLimiterFunc[In any, K comparable](key func(In) K, limits func(In) []Limit) *Limiter[In, K] {
	return newLimiter(key, limits, newBook(nil))
}

func newLimiter[In any, K comparable](key func(In) K, limits func(In) []Limit, b *book) *Limiter[In, K] {
	seed := maphash.MakeSeed()
	hash := func(in In) uint64 { return max(maphash.Comparable(seed, key(in)), 1) }
	return &Limiter[In, K]{doors[In]{[]part[In]{{book: b, hash: hash, limits: limits}}}}
}

// WithCost returns a limiter over the same counters in which the cost of a request is the
// result of a function, instead of 1. Methods that name an amount do not use it.
func (l *Limiter[In, K]) WithCost(cost func(In) int64) *Limiter[In, K] {
	priced := l.parts[0]
	priced.cost = cost
	return &Limiter[In, K]{doors[In]{[]part[In]{priced}}}
}

// Len returns the number of counters in memory: those in use, and full ones that are not
// forgotten yet.
func (l *Limiter[In, K]) Len() int { return l.parts[0].book.len() }
