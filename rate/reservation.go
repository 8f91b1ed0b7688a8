package rate

import (
	"math"
	"time"
)

// InfDuration is the delay of a [Reservation] that is not OK: there is no point in waiting.
const InfDuration = time.Duration(math.MaxInt64)

// A Reservation allows its caller to let events happen from some time on. A caller that will not use it may cancel it,
// so that other callers need not wait for its tokens.
type Reservation struct {
	ok        bool
	timeToAct time.Time

	lim    *Limiter // nil if there is nothing to refund
	from   *bucket  // the limiter's bucket at the time of the reservation
	tokens int      // guarded by the limiter's mutex
}

// OK reports whether the tokens were reserved. If they were not, they are more than the limiter's burst: then Delay
// returns [InfDuration], and Cancel does nothing.
func (r *Reservation) OK() bool { return r.ok }

// Delay returns how long to wait from now; see [Reservation.DelayFrom].
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom returns how long to wait from t before acting: zero for at once, [InfDuration] for never.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(0, r.timeToAct.Sub(t))
}

// Cancel gives the tokens back now; see [Reservation.CancelAt].
func (r *Reservation) Cancel() {
	if r.lim != nil {
		r.lim.refund(time.Now(), ownClock, r)
	}
}

// CancelAt gives the tokens back at t, unless the time to act has passed. Tokens that the delay of a later reservation
// depends on stay taken.
func (r *Reservation) CancelAt(t time.Time) {
	if r.lim != nil {
		r.lim.refund(t, givenTime, r)
	}
}
