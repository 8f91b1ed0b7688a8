// Package rate limits how often events happen. It has the names and the behaviour of golang.org/x/time/rate, so that
// changing the import path is all it takes to move:
//
//	lim := rate.NewLimiter(rate.Every(100*time.Millisecond), 5) // ten a second, five at once
//	if !lim.Allow() {
//		return errBusy
//	}
//
// What differs:
//
//   - Allow takes no lock: it reads the clock once, and admits with one atomic operation or denies with none.
//   - The arithmetic is in whole numbers. In any stretch of time d, at most burst + limit × d events are admitted,
//     however many goroutines ask. A token that is due in less than a nanosecond counts as present, as in x/time/rate.
//   - A Wait that a deadline cuts short fails with an error that is [context.DeadlineExceeded] to [errors.Is].
//   - Cancelling a reservation never gives back more than it took, and a second cancel gives back nothing.
//   - A Limit that is not a number never refills the bucket; one of +Inf is [Inf].
//
// Time that goes back gives nothing and freezes nothing: as in x/time/rate, at a time that is earlier than the last one
// the bucket has the tokens of that last time, and is refilled from the earlier time on. But goroutines that overtake
// each other between reading the clock and asking the limiter do not turn the clock back: a time that is earlier by no
// more than a millisecond, if a caller passes it, or a second, if the limiter has read it, counts as the last one.
package rate

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Limit is a number of events a second. A limit of zero or less never refills the bucket.
type Limit float64

// Inf is the limit that admits every event, whatever the burst.
const Inf = Limit(math.MaxFloat64)

// Every returns the limit of one event in each interval. For an interval of zero or less it returns [Inf].
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return 1 / Limit(interval.Seconds())
}

// A Limiter is a token bucket: it is full at first, and refilled at its limit, up to its burst. An event takes a token
// or, in the methods whose names end in N, n of them.
//
// Three methods ask for tokens and differ in what they do when there are too few:
//
//   - [Limiter.Allow] says no,
//   - [Limiter.Wait] waits until there are enough, or until its context ends,
//   - [Limiter.Reserve] takes them from the future and says how long to wait before acting.
//
// No method takes more tokens than the burst at once, unless the limit is [Inf].
//
// The zero Limiter has no tokens, and never gets any. A Limiter may be used by many goroutines at once, and must not be
// copied.
type Limiter struct {
	bucket atomic.Pointer[bucket] // nil in the zero Limiter

	mu        sync.Mutex // guards every change of more than the bucket's word
	lastEvent time.Time  // the time of the event that was admitted last, which may be in the future
}

// epoch is the time from which Allow and Wait count nanoseconds.
var epoch = time.Now()

// NewLimiter returns a limiter of r events a second and at most b at once. It has b tokens at first.
func NewLimiter(r Limit, b int) *Limiter {
	lim := new(Limiter)
	lim.bucket.Store(newBucket(r, b, time.Now(), 0))
	return lim
}

// Limit returns the number of events a second.
func (lim *Limiter) Limit() Limit {
	return lim.current().limit
}

// noBucket is the bucket of the zero Limiter: it has no tokens and never gets any.
var noBucket = newBucket(0, 0, epoch, 0)

func (lim *Limiter) current() *bucket {
	if b := lim.bucket.Load(); b != nil {
		return b
	}
	return noBucket
}

// Burst returns how many tokens the bucket holds when full, and so the most that one call can take.
func (lim *Limiter) Burst() int {
	return lim.current().burst
}

// Tokens returns how many tokens the bucket has now: less than zero if reservations have taken tokens in advance.
func (lim *Limiter) Tokens() float64 {
	return lim.tokensAt(time.Now(), ownClock)
}

// TokensAt returns how many tokens the bucket has at t.
func (lim *Limiter) TokensAt(t time.Time) float64 {
	return lim.tokensAt(t, givenTime)
}

// Allow reports whether an event may happen now, and takes a token if it may.
func (lim *Limiter) Allow() bool {
	if b := lim.bucket.Load(); b != nil {
		if ok, sure := b.take(int64(time.Since(epoch))-b.start, 1, ownClock); sure {
			return ok
		}
	}
	return lim.reserve(time.Now(), ownClock, 1, 0).ok
}

// AllowN reports whether n events may happen at t, and takes n tokens if they may. It is for events that are dropped
// when there are too many of them. For events that can wait, see [Limiter.WaitN] and [Limiter.ReserveN].
func (lim *Limiter) AllowN(t time.Time, n int) bool {
	return lim.reserve(t, givenTime, n, 0).ok
}

// Reserve takes a token now, from the future if need be; see [Limiter.ReserveN].
func (lim *Limiter) Reserve() *Reservation {
	r := lim.reserve(time.Now(), ownClock, 1, InfDuration)
	return &r
}

// ReserveN takes n tokens at t, from the future if need be, and returns a [Reservation] that says how long to wait
// before acting. The next caller waits until these tokens have been supplied.
//
//	r := lim.ReserveN(time.Now(), 10)
//	if !r.OK() {
//		return errTooMany // more than the burst
//	}
//	time.Sleep(r.Delay())
//	act()
//
// [Limiter.WaitN] does the same, and stops when its context ends.
func (lim *Limiter) ReserveN(t time.Time, n int) *Reservation {
	r := lim.reserve(t, givenTime, n, InfDuration)
	return &r
}

// SetLimit changes the limit from now on; see [Limiter.SetLimitAt].
func (lim *Limiter) SetLimit(newLimit Limit) {
	lim.set(time.Now(), ownClock, func(_ Limit, burst int) (Limit, int) { return newLimit, burst })
}

// SetLimitAt changes the limit from t on. Earlier reservations keep their times.
func (lim *Limiter) SetLimitAt(t time.Time, newLimit Limit) {
	lim.set(t, givenTime, func(_ Limit, burst int) (Limit, int) { return newLimit, burst })
}

// SetBurst changes the burst from now on; see [Limiter.SetBurstAt].
func (lim *Limiter) SetBurst(newBurst int) {
	lim.set(time.Now(), ownClock, func(limit Limit, _ int) (Limit, int) { return limit, newBurst })
}

// SetBurstAt changes the burst from t on. The bucket keeps its tokens, up to newBurst.
func (lim *Limiter) SetBurstAt(t time.Time, newBurst int) {
	lim.set(t, givenTime, func(limit Limit, _ int) (Limit, int) { return limit, newBurst })
}
