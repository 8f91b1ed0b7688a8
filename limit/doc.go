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
// numbers, and is exact: what [Decision.RetryAfter] says is the first
// nanosecond at which the same request passes. Those who wait are served first
// come, first served. Time and memory for a decision do not grow with traffic.
//
// # Memory
//
// A counter of which all is left again, which is full, is the same as one that was
// never used, so it is forgotten: decisions sweep the table as they go, a small piece at a time.
// A limiter starts no goroutine and needs no Close.
//
// Keys are not kept. A key is known by a 64-bit hash under a random seed of
// the limiter, so what a key costs does not depend on its length. Two keys
// with one hash would share one counter, which can only make the limiter
// stricter; among a million keys the odds that any two do are 1 in 37 million,
// and nobody who does not know the seed can choose such keys.
package limit
