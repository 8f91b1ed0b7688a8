package limit

import (
	"math/bits"
	"time"
)

// gcra is a bucket limit whose counters are one word. The word is GCRA's theoretical
// arrival time, at which the backlog has drained, in units of 1/unit of a nanosecond: in
// these units, costs are whole numbers. A limit whose numbers are too large for a word
// has cells instead.
type gcra struct {
	limit Limit
	unit  uint64 // the number of units in a nanosecond
	each  uint64 // the cost of an amount of 1, in units
	room  uint64 // the cost of burst, in units
}

// A word has 62 bits for a time. Half of its range is for the age of the segment, which
// is rebased after nine hours at the earliest. The other half is for the backlog, of
// which a third may be debt.
const (
	maxUnit    = 1 << 16
	maxRoom    = 1 << 60
	maxBacklog = maxRoom + maxRoom/2
)

// inOneWord returns l for counters of one word, and whether its numbers fit.
func inOneWord(l Limit) (gcra, bool) {
	if !l.algorithm.bursts() {
		return gcra{}, false
	}
	common := gcd(uint64(l.count), uint64(l.period))
	g := gcra{limit: l, unit: uint64(l.count) / common, each: uint64(l.period) / common}
	hi, room := bits.Mul64(uint64(l.burst), g.each)
	g.room = room
	return g, hi == 0 && room <= maxRoom && g.unit <= maxUnit
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// verdict returns the verdict on n. The backlog, in units, is the one after the take if n
// was allowed, and otherwise the one because of which n was denied.
func (g *gcra) verdict(backlog uint64, n int64, allowed bool) Verdict {
	v := Verdict{Allowed: allowed, ResetAfter: g.duration(backlog)}
	if backlog < g.room {
		v.Remaining = int64((g.room - backlog) / g.each)
		v.Used = g.limit.burst - v.Remaining
	} else {
		v.Used = int64((backlog + g.each - 1) / g.each)
	}
	switch {
	case allowed:
	case g.limit.never(n):
		v.RetryAfter = Never
	default:
		v.RetryAfter = g.duration(backlog + uint64(n)*g.each - g.room)
	}
	return v
}

// duration converts units to whole nanoseconds, rounded up.
func (g *gcra) duration(units uint64) time.Duration {
	if g.unit == 1 { // saves a division
		return time.Duration(units)
	}
	return time.Duration((units + g.unit - 1) / g.unit)
}

// check returns the verdict on a take of n, and the backlog after it, in units.
func (g *gcra) check(backlog uint64, n int64) (uint64, Verdict) {
	if g.limit.never(n) || backlog+uint64(n)*g.each > g.room {
		return backlog, g.verdict(backlog, n, false)
	}
	backlog += uint64(n) * g.each
	return backlog, g.verdict(backlog, 0, true)
}

// backlog converts units to a backlog.
func (g *gcra) backlog(units uint64) backlog {
	common := g.limit.count / int64(g.unit)
	return backlog{int64(units / g.unit), int64(units%g.unit) * common}
}

// units converts a backlog to units.
func (g *gcra) units(b backlog) int64 {
	common := g.limit.count / int64(g.unit)
	return b.NS*int64(g.unit) + b.Parts/common
}

// debt returns the cost of a debt of n in units, at most maxBacklog.
func (g *gcra) debt(n int64) uint64 {
	hi, units := bits.Mul64(uint64(n), g.each)
	if hi > 0 {
		return maxBacklog
	}
	return min(units, maxBacklog)
}
