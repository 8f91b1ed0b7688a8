package storetest

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// logCounter models the sliding log: takes of less than a period ago count.
type logCounter struct {
	limit  limit.Limit
	passed []passed // in the order of time
}

func (c *logCounter) rewind(now int64) {
	for i := range c.passed {
		c.passed[i].at = min(c.passed[i].at, now)
	}
}

func (c *logCounter) expire(now int64) { c.passed = c.counts(now) }

func (c *logCounter) setLimit(l limit.Limit, _ int64) { c.limit = l }

// counts returns the takes that count at a time.
func (c *logCounter) counts(now int64) []passed {
	return slices.DeleteFunc(slices.Clone(c.passed), func(p passed) bool { return p.at <= now-int64(c.limit.Period()) })
}

// used returns the sum of these takes.
func (c *logCounter) used(now int64) int64 { return total(c.counts(now)) }

func (c *logCounter) check(now, n int64) answer {
	used := c.used(now)
	a := answer{}
	for _, p := range c.counts(now) {
		if p.n > 0 {
			a.reset = time.Duration(p.at - now + int64(c.limit.Period()))
		}
	}
	switch {
	case never(c.limit, n):
		a.retry = limit.Never
	case n == 0 && used <= c.limit.Count():
		a.allowed = true
	case n <= c.limit.Count()-used:
		a.allowed = true
		used += n
		a.reset = c.limit.Period()
	default:
		for _, p := range c.counts(now) { // n passes when one of them leaves
			if leaves := p.at + int64(c.limit.Period()); n <= c.limit.Count()-c.used(leaves) {
				a.retry = time.Duration(leaves - now)
				break
			}
		}
	}
	a.used, a.remaining = used, max(c.limit.Count()-used, 0)
	return a
}

func (c *logCounter) take(now int64, id int, n int64) takeRecord {
	if n > 0 {
		c.passed = append(slices.Clip(c.passed), passed{id, now, n})
	}
	return takeRecord{id: id, at: now, n: n}
}

// settle corrects the take itself, as long as it counts.
func (c *logCounter) settle(now int64, r takeRecord, actual int64) {
	if r.at > now-int64(c.limit.Period()) {
		correct(c.passed, r.id, actual)
	}
}

func (c *logCounter) clone() counter {
	return &logCounter{limit: c.limit, passed: slices.Clone(c.passed)}
}

func (c *logCounter) String() string { return fmt.Sprintf("%v: %v", c.limit, c.passed) }

// slidingCounter models the sliding counter: takes of this window, and takes of the window before,
// of which as much counts as the period that ends now covers of that window.
type slidingCounter struct {
	limit  limit.Limit
	last   int64 // start of the window of the last take
	passed []passed
}

func (c *slidingCounter) start(t int64) int64 {
	start, _ := alignedTo(c.limit.Period()).of(t)
	return start
}

// rewind moves the takes of both windows to now, up to the largest number. They are not settled
// after that.
func (c *slidingCounter) rewind(now int64) {
	if now >= c.last {
		return
	}
	c.last = c.start(now)
	c.passed = []passed{{at: now, n: min(total(c.passed), 1<<62)}}
}

func (c *slidingCounter) expire(int64) {}

func (c *slidingCounter) setLimit(l limit.Limit, _ int64) { c.limit = l }

func (c *slidingCounter) used(now int64) *big.Rat {
	start, period := c.start(now), int64(c.limit.Period())
	this, before := int64(0), int64(0)
	for _, p := range c.passed {
		switch c.start(p.at) {
		case start:
			this += p.n
		case start - period:
			before += p.n
		}
	}
	covered := big.NewRat(period-(now-start), period)
	return plus(rat(this), covered.Mul(covered, rat(before)))
}

// fits reports whether n pass: whether the estimate is below the limit for each of them, one after
// the other.
func (c *slidingCounter) fits(now, n int64) bool {
	return plus(c.used(now), rat(n-1)).Cmp(rat(c.limit.Count())) < 0
}

// until returns how long it takes until something holds that does not end while nothing passes.
func (c *slidingCounter) until(now int64, holds func(at int64) bool) time.Duration {
	return time.Duration(sort.Search(2*int(c.limit.Period()), func(i int) bool { return holds(now + int64(i)) }))
}

func (c *slidingCounter) check(now, n int64) answer {
	used := c.used(now)
	a := answer{reset: c.until(now, func(at int64) bool { return c.used(at).Sign() == 0 })}
	switch {
	case never(c.limit, n):
		a.retry = limit.Never
	case c.fits(now, n):
		a.allowed = true
		used = plus(used, rat(n))
		if n > 0 {
			a.reset = time.Duration(c.start(now) + 2*int64(c.limit.Period()) - now)
		}
	default:
		a.retry = c.until(now, func(at int64) bool { return c.fits(at, n) })
	}
	a.used = min(down(used), 1<<62) // more where the clock went back, and the window before weighs more than it did
	a.remaining = max(c.limit.Count()-a.used, 0)
	return a
}

// take drops the takes that no window reaches any more, nor will if the clock goes back.
func (c *slidingCounter) take(now int64, id int, n int64) takeRecord {
	if n > 0 {
		c.last = c.start(now)
		c.passed = slices.DeleteFunc(slices.Clone(c.passed), func(p passed) bool { return p.at < c.last-int64(c.limit.Period()) })
		c.passed = append(c.passed, passed{id, now, n})
	}
	return takeRecord{id: id, at: now, n: n}
}

func (c *slidingCounter) settle(_ int64, r takeRecord, actual int64) { correct(c.passed, r.id, actual) }

func (c *slidingCounter) clone() counter {
	return &slidingCounter{limit: c.limit, last: c.last, passed: slices.Clone(c.passed)}
}

func (c *slidingCounter) String() string {
	return fmt.Sprintf("%v: %v, the last in the window from %d", c.limit, c.passed, c.last)
}
