package storetest

import (
	"fmt"
	"math/big"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// bucketCounter models all three buckets: a backlog, in nanoseconds until it has drained, as of the
// last take.
type bucketCounter struct {
	limit    limit.Limit
	at       int64
	backlog  *big.Rat
	refunded *big.Rat // the sum of all refunds
}

func newBucketCounter(l limit.Limit) *bucketCounter {
	return &bucketCounter{limit: l, backlog: rat(0), refunded: rat(0)}
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func plus(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

// less returns a - b, or zero where b is larger.
func less(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return rat(0)
	}
	return new(big.Rat).Sub(a, b)
}

func least(of ...*big.Rat) *big.Rat {
	low := of[0]
	for _, r := range of {
		if r.Cmp(low) < 0 {
			low = r
		}
	}
	return low
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func down(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }
func up(r *big.Rat) int64   { return -down(new(big.Rat).Neg(r)) }

// cost returns how long n takes to drain.
func (c *bucketCounter) cost(n int64) *big.Rat {
	return new(big.Rat).Mul(rat(n), big.NewRat(int64(c.limit.Period()), c.limit.Count()))
}

// amount returns how much drains in a time.
func (c *bucketCounter) amount(r *big.Rat) *big.Rat {
	return new(big.Rat).Mul(r, big.NewRat(c.limit.Count(), int64(c.limit.Period())))
}

func (c *bucketCounter) backlogAt(now int64) *big.Rat {
	return less(c.backlog, rat(max(now-c.at, 0)))
}

func (c *bucketCounter) rewind(now int64) { c.at = min(c.at, now) }

func (c *bucketCounter) expire(int64) {}

// setLimit keeps the used amount. Earlier takes are not refunded.
func (c *bucketCounter) setLimit(l limit.Limit, now int64) {
	if l.Count() != c.limit.Count() {
		c.backlog = new(big.Rat).Mul(c.backlogAt(now), big.NewRat(c.limit.Count(), l.Count()))
		c.at = now
	}
	c.limit = l
}

func (c *bucketCounter) check(now, n int64) answer {
	before, room := c.backlogAt(now), c.cost(c.limit.Burst())
	after := plus(before, c.cost(max(n, 0)))
	a := answer{}
	switch {
	case never(c.limit, n):
		a.retry = limit.Never
		after = before
	case after.Cmp(room) <= 0:
		a.allowed = true
	default:
		a.retry = time.Duration(up(less(after, room)))
		after = before
	}
	a.used = up(c.amount(after))
	a.remaining = down(c.amount(less(room, after)))
	a.reset = time.Duration(up(after))
	return a
}

func (c *bucketCounter) take(now int64, id int, n int64) takeRecord {
	if n > 0 {
		c.at, c.backlog = now, plus(c.backlogAt(now), c.cost(n))
	}
	return takeRecord{id: id, at: now, n: n, left: c.backlogAt(now), refunded: c.refunded}
}

// settle refunds no more than the take still holds: at most the backlog after the take, less the
// time since, less every refund since.
func (c *bucketCounter) settle(now int64, r takeRecord, actual int64) {
	if actual > r.n {
		if c.at < r.at { // the take was forgotten since
			c.at, c.backlog = r.at, most(r.left, c.backlogAt(r.at))
		}
		c.backlog = plus(c.backlog, c.cost(actual-r.n))
		return
	}
	stillHeld := less(less(r.left, rat(now-r.at)), less(c.refunded, r.refunded))
	freed := least(c.cost(r.n-actual), stillHeld, c.backlogAt(now))
	c.backlog = less(c.backlog, freed)
	c.refunded = plus(c.refunded, freed)
}

func (c *bucketCounter) clone() counter { return new(*c) }

func (c *bucketCounter) String() string {
	return fmt.Sprintf("%v: a backlog of %v ns at %d, %v ns refunded", c.limit, c.backlog.RatString(), c.at, c.refunded.RatString())
}
