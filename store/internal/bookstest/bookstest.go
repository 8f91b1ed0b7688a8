// Package bookstest tests what the stores of this module keep beside their counters: the books, and deposits.
package bookstest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// clock is a clock that stands still until it is moved.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.at.Store(time.Date(2026, time.March, 14, 15, 9, 26, 535_897_932, time.UTC).UnixNano())
	return c
}

func (c *clock) now() int64          { return c.at.Load() }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

// charge returns a charge of n to a key.
func charge(key string, n int64, limits ...limit.Limit) store.Charge {
	return store.Charge{Key: key, Limits: limits, N: n}
}

// atOnce runs do on eight goroutines, each with its own random numbers.
func atOnce(do func(random *rand.Rand)) {
	var all sync.WaitGroup
	for i := range uint64(8) {
		all.Go(func() { do(rand.New(rand.NewPCG(i, 1))) })
	}
	all.Wait()
}
