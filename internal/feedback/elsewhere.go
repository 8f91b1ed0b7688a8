package feedback

import (
	"math/bits"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
)

// Elsewhere is what others have used of a model's quota, with the same account, by what the provider
// says is left: for each limit, an amount that was missing at a time. It comes back evenly until
// nothing is missing, as the provider's token bucket refills. Times are Unix nanoseconds of the
// limiter's clock.
type Elsewhere [kind.Models]Absence

// Absence is an amount N that was missing at the time From. At the time Until, nothing is missing.
type Absence struct{ N, From, Until int64 }

// Missing is what is missing at one time.
type Missing struct {
	N [kind.Models]int64 // the missing amount of each limit

	elsewhere Elsewhere
	now       int64
}

// None reports whether nothing is missing.
func (m *Missing) None() bool { return m.N == [kind.Models]int64{} }

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

// quotient returns n*numerator/denominator for numerator <= denominator, rounded up.
func quotient(n, numerator, denominator int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(numerator))
	q, rest := bits.Div64(hi, lo, uint64(denominator))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// When returns the time until at most an amount of most is missing of the d-th limit.
func (m *Missing) When(d int, most int64) time.Duration {
	a := m.elsewhere[d]
	if m.N[d] <= most {
		return 0
	}
	since := quotient(a.Until-a.From, a.N-most, a.N) // the time from a.From until then
	return time.Duration(a.From + since - m.now)
}
