package redisstore

import (
	"math/bits"

	"dappco.re/go/core/go-ratelimit/limit"
)

// maxAmount is the largest amount that is counted: all larger ones count as this.
const maxAmount = 1 << 62

// share is a node's share of every limit. rank, from 0 to nodes-1, says which of the nodes it is.
type share struct{ rank, nodes int }

// whole is the share of a node that has every limit to itself.
var whole = share{0, 1}

// of returns the node's share of c. The shares of all nodes add up to c.
func (p share) of(c int64) int64 {
	return scale(c, int64(p.rank)+1, int64(p.nodes), 0) - scale(c, int64(p.rank), int64(p.nodes), 0)
}

// limit returns the node's share of a limit, and whether that is more than zero. If it is zero, part
// is a limit of the same kind with which usage can be counted, and nothing may pass.
func (p share) limit(l limit.Limit) (part limit.Limit, some bool) {
	part = l.WithCount(p.of(l.Count())).WithBurst(p.of(l.Burst()))
	if part.Validate() != nil {
		return l.WithCount(1).WithBurst(1), false
	}
	return part, true
}

// isBucket reports whether the limit is a bucket: GCRA, TokenBucket or LeakyBucket.
func isBucket(l limit.Limit) bool { return l.Algorithm() <= limit.LeakyBucket }

// drainedIn returns how much of a bucket drains in a time, rounded up.
func drainedIn(l limit.Limit, ns int64) int64 {
	return scale(l.Count(), ns, int64(l.Period()), 1)
}

// scale returns n*numerator/denominator, rounded up if up is 1 and down if it is 0, but at most
// maxAmount.
func scale(n, numerator, denominator, up int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(numerator))
	if hi >= uint64(denominator) {
		return maxAmount
	}
	q, r := bits.Div64(hi, lo, uint64(denominator))
	if up == 1 && r > 0 {
		q++
	}
	return int64(min(q, maxAmount))
}
