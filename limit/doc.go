// Package limit is the arithmetic of rate limits: how much may pass in how
// long, for any number of keys, exactly.
//
// A [Limit] is a value: 100 a minute, 10 a second with a burst of 20, 1000 a
// day that resets at midnight in Los Angeles. It names one of six algorithms.
// A [Limiter] holds any number of keys to any number of limits; [Combine]
// makes several limiters one. A [Queue] paces what passes through it.
//
//	perUser := limit.NewLimiter(userOf, limit.PerSecond(10), limit.PerDay(10_000))
//	if !perUser.Allow(request) {
//		…
//	}
//
// # What holds
//
// Never more than the limit passes, whatever the number of goroutines. A
// request that several limits govern is charged to all of them or to none, and
// a denial takes nothing. Every decision reads the clock once, works in whole
// numbers, and is exact: [Decision.RetryAfter] ends at the first nanosecond at
// which the same request passes. Callers that wait are served first come, first
// served. Time and memory for a decision do not grow with traffic.
//
// # Memory
//
// A counter is full when nothing that its key has used counts any more. A full
// counter is the same as one that was never used, so it is forgotten: decisions
// sweep the table as they go, a small piece at a time. A limiter starts no
// goroutine and needs no Close.
//
// A limiter does not store keys. It knows a key by a 64-bit hash under a random
// seed, so the memory for a key does not depend on the key's length. Two keys
// with the same hash would share one counter, which can only make the limiter
// stricter; among a million keys the odds that any two do are 1 in 37 million,
// and nobody who does not know the seed can choose such keys.
package limit
