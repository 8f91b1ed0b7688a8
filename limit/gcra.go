package limit

import (
	"math/bits"
	"time"
)

// gcra is a bucket limit made ready for counters of one word: the word is
// GCRA's theoretical arrival time, the instant at which the backlog has
// drained, in units of 1/unit of a nanosecond, in which costs are whole
// numbers. Limits for which those numbers are too large use counters instead.
type gcra struct {
	limit Limit
	unit  uint64 // parts of a nanosecond
	each  uint64 // what one costs, in units
	room  uint64 // what burst costs
}

// A word has 62 bits: half for the age of its segment, which is rebased after
// nine hours at least; the rest for a backlog, of which half may be debt.
const (
	maxUnit    = 1 << 16
	maxRoom    = 1 << 60
	maxBacklog = maxRoom + maxRoom/2
)

// inOneWord returns l made ready, and whether it can be.
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

// verdict describes a counter whose backlog is given in units, after n was
// allowed or denied.
func (g *gcra) verdict(backlog uint64, n int64, allowed bool) verdict {
	v := verdict{Allowed: allowed, ResetAfter: g.duration(backlog)}
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

// duration rounds up to whole nanoseconds.
func (g *gcra) duration(units uint64) time.Duration {
	if g.unit == 1 { // dividing is slow
		return time.Duration(units)
	}
	return time.Duration((units + g.unit - 1) / g.unit)
}

// check answers as if n was taken from a backlog, and returns what it was then.
func (g *gcra) check(backlog uint64, n int64) (uint64, verdict) {
	if g.limit.never(n) || backlog+uint64(n)*g.each > g.room {
		return backlog, g.verdict(backlog, n, false)
	}
	backlog += uint64(n) * g.each
	return backlog, g.verdict(backlog, 0, true)
}

// backlog returns units as a backlog, and units the other way.
func (g *gcra) backlog(units uint64) backlog {
	common := g.limit.count / int64(g.unit)
	return backlog{int64(units / g.unit), int64(units%g.unit) * common}
}

func (g *gcra) units(b backlog) int64 {
	common := g.limit.count / int64(g.unit)
	return b.NS*int64(g.unit) + b.Parts/common
}

// debt returns what n costs that was used and not taken, as far as a word can
// hold it.
func (g *gcra) debt(n int64) uint64 {
	hi, units := bits.Mul64(uint64(n), g.each)
	if hi > 0 {
		return maxBacklog
	}
	return min(units, maxBacklog)
}
