package rate

import (
	"math"
	"time"
)

// InfDuration is the delay of a [Reservation] that is not OK: there is no point in waiting.
const InfDuration = time.Duration(math.MaxInt64)

// A Reservation is the right to let events happen from some time on. Who will not use it may cancel it, so that others
// need not wait for tokens that nobody takes.
type Reservation struct {
	ok        bool
	timeToAct time.Time

	// What there is to give back: nothing if lim is nil. tokens is guarded by lim's mutex.
	lim    *Limiter
	from   *bucket
	tokens int
}

// OK reports whether the tokens were reserved. If not, they are more than the limiter's burst: Delay is [InfDuration],
// and Cancel does nothing.
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
		r.lim.giveBack(time.Now(), clock, r)
	}
}

// CancelAt gives the tokens back at t, unless it is past the time to act. Tokens on whose being taken the delay of a later
// reservation was built stay taken.
func (r *Reservation) CancelAt(t time.Time) {
	if r.lim != nil {
		r.lim.giveBack(t, told, r)
	}
}
