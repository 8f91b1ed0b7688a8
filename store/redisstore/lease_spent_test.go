package redisstore

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// spent is a list of amounts of a limit that were used, with their times.
type spent struct {
	limit limit.Limit
	all   []spending
}

type spending struct{ at, n int64 }

func (s *spent) add(at, n int64) { s.all = append(s.all, spending{at, n}) }

// bound returns where more was used than the limit allows, by its definition alone: windows that
// begin with the first request may hold twice as much in their span.
func (s *spent) bound() error {
	all := slices.Clone(s.all)
	slices.SortStableFunc(all, func(a, b spending) int { return cmp.Compare(a.at, b.at) })
	for last := range all {
		sum := int64(0)
		for first := last; first >= 0; first-- {
			sum += all[first].n
			if !s.allows(all[first].at, all[last].at, sum) {
				return fmt.Errorf("%v: %d were spent in %d ns: %v", s.limit, sum, all[last].at-all[first].at, all[first:last+1])
			}
		}
		if !s.weighs(all[:last+1]) {
			return fmt.Errorf("%v: the last of %v is more than the estimate allows", s.limit, all[:last+1])
		}
	}
	return nil
}

// allows reports whether n may pass from one time to another, both included.
func (s *spent) allows(from, to, n int64) bool {
	period := int64(s.limit.Period())
	switch {
	case s.limit.Algorithm() == limit.SlidingCounter:
		return true
	case s.limit.Algorithm() == limit.SlidingLog:
		return to-from >= period || n <= s.limit.Count()
	case s.limit.Algorithm() != limit.FixedWindow:
		drained := times(to-from, s.limit.Count())
		return times(n, period).Cmp(drained.Add(drained, times(s.limit.Burst(), period))) <= 0
	case kindOf(s.limit) == kindAnchored:
		return to-from >= period || n <= 2*s.limit.Count()
	default:
		_, end := windowAt(s.limit, from)
		return to >= end || n <= s.limit.Count()
	}
}

// weighs reports whether the last amount may have passed, by a sliding counter's estimate.
func (s *spent) weighs(all []spending) bool {
	if s.limit.Algorithm() != limit.SlidingCounter {
		return true
	}
	period, now := int64(s.limit.Period()), all[len(all)-1].at
	start := now - now%period
	var before, used int64
	for _, p := range all {
		switch {
		case p.at >= start:
			used += p.n
		case p.at >= start-period:
			before += p.n
		}
	}
	return times(before, start+period-now).Cmp(times(s.limit.Count()-used+1, period)) < 0
}

func times(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
