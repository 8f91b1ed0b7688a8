package feedback

import (
	"math/bits"
	"time"
)

// Elsewhere is what others use of a model's quotas, with the same account, as the
// provider has told: of each limit an amount that was missing at a time, and
// comes back evenly until none is missing, as a provider's bucket fills. Times are
// Unix nanoseconds of the limiter's clock.
type Elsewhere [mostLimits]Absence

// mostLimits is more than any quota has.
const mostLimits = 8

// Absence is an amount that was missing at a time, and comes back until another.
type Absence struct{ N, From, Until int64 }

// Missing is what is missing at one time.
type Missing struct {
	N [mostLimits]int64 // of each limit

	elsewhere Elsewhere
	now       int64
}

// None reports whether nothing is missing.
func (m *Missing) None() bool { return m.N == [mostLimits]int64{} }

// At returns what is missing at a time.
func (e *Elsewhere) At(now int64) Missing {
	m := Missing{elsewhere: *e, now: now}
	for d := range e {
		if a := &e[d]; now < a.Until && a.N > 0 {
			m.N[d] = quotient(a.N, a.Until-max(now, a.From), a.Until-a.From)
		}
	}
	return m
}

// quotient returns n*by/of, rounded up. by is of at most.
func quotient(n, by, of int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(by))
	q, rest := bits.Div64(hi, lo, uint64(of))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// When returns how long it takes until no more than so much is missing.
func (m *Missing) When(d int, most int64) time.Duration {
	a := m.elsewhere[d]
	if m.N[d] <= most {
		return 0
	}
	back := quotient(a.Until-a.From, a.N-most, a.N) // since a.From
	return time.Duration(a.From + back - m.now)
}
