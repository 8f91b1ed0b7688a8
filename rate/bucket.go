package rate

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A bucket is the parameters of a limiter and, in one word, its state.
//
// The state counts in units, a fixed number of them to a token. What has been supplied since the origin is a straight
// line that starts at zero; spent is what has been taken, and lags behind supply only while the bucket is full. So the
// bucket holds size − (spent − supply), and taking n tokens is
//
//	spent = max(spent, supply) + n×unit, if that is at most supply + room.
//
// Whatever cannot be said in the word (other parameters, time that goes back, a line that has become too long) takes a
// new bucket; the word of the old one is then closed for good.
type bucket struct {
	start   int64  // the origin in nanoseconds since epoch
	horizon uint64 // nanoseconds after which supply is too large for the word
	unit    uint64 // units to a token
	mul     uint64 // units supplied a nanosecond: mul × 2^(shift−64)
	shift   uint8
	endless bool   // a nanosecond fills the bucket whatever its burst, so nothing is counted
	room    uint64 // size, and what is supplied in almost a nanosecond: a token that near counts as there

	spent atomic.Uint64
	last  atomic.Int64 // when tokens were last taken, in nanoseconds since the origin, or a little earlier: see source

	left   uint64 // spent as the mutex's holder left it; guarded by the mutex
	limit  Limit
	burst  int
	size   uint64    // units in the full bucket
	grace  uint64    // units supplied in what is missing from room to the nanosecond
	origin time.Time // what start says, without a bound: epoch may be centuries away
}

const (
	closed    = math.MaxUint64 // spent, in a bucket that is no longer the limiter's
	maxSupply = 1 << 62        // at the horizon, as near as a float64 gets
	maxUsed   = 1 << 63        // of spent − supply, so that spent stays below closed
)

// A source is where a time comes from. A time that is earlier than the last one by no more than hold does not turn the
// clock back: the goroutine that read it was held up on its way here, and others have overtaken it.
type source struct {
	hold time.Duration
	lag  time.Duration // by how much last may be too early, so that it need not be written each time
}

var (
	told  = source{hold: time.Millisecond}
	clock = source{hold: time.Second, lag: time.Millisecond}
)

// newBucket is a full bucket that can run up a debt of several times the given one, or of twice its burst.
func newBucket(limit Limit, burst int, origin time.Time, debt float64) *bucket {
	b := &bucket{
		start:   min(max(int64(origin.Sub(epoch)), -maxSupply), maxSupply), // further away, it is past the horizon
		horizon: maxSupply,
		endless: limit >= 1<<61*1e9,
		limit:   limit,
		burst:   burst,
		origin:  origin,
	}
	speed := b.scale(max(float64(burst), 4*debt))
	b.size = uint64(max(burst, 0)) * b.unit
	if speed == 0 {
		b.room = b.size
		return b
	}
	fraction, exponent := math.Frexp(speed)
	b.mul = uint64(fraction*(1<<53)) << 11 >> max(0, -exponent)
	b.shift = uint8(max(0, exponent))
	b.horizon = uint64(min(maxSupply/speed, maxSupply))
	// The last bit of a float64 must not decide about a wait of whole nanoseconds: with a 64th of one to spare, what is
	// limited to Every(d) waits for d, and not for d−1 or d+1.
	b.grace = uint64(speed / 64)
	if burst > 0 {
		b.room = b.size + uint64(max(0, math.Ceil(speed*63/64)-1))
	}
	return b
}

// scale chooses a unit so fine that the word just holds as many tokens and a minute's supply, and returns how many units
// are supplied a nanosecond. Unless tokens are many, a nanosecond at a limit of 1 is a power of two, and so any limit is
// exact.
func (b *bucket) scale(tokens float64) (speed float64) {
	for b.unit = 1e9 << 20; ; b.unit /= 2 {
		if b.limit > 0 && !b.endless {
			speed = float64(b.limit) * (float64(b.unit) / 1e9)
		}
		if b.unit == 1 || tokens*float64(b.unit) <= 1<<61 && speed <= 1<<26 {
			return speed
		}
	}
}

// supply is what has been supplied after elapsed nanoseconds, or MaxUint64 if that is more.
func (b *bucket) supply(elapsed uint64) uint64 {
	hi, lo := bits.Mul64(elapsed, b.mul)
	if hi>>(64-b.shift) != 0 {
		return math.MaxUint64
	}
	return hi<<b.shift | lo>>(64-b.shift)
}

// line is supply within the horizon, where there is a quicker way.
func (b *bucket) line(elapsed int64) uint64 {
	supply, _ := bits.Mul64(uint64(elapsed)<<(b.shift&63), b.mul)
	return supply
}

// back reports whether a time before the last one turns the clock back. If the bucket was full then, it always does:
// there is nothing that could be had twice.
func (b *bucket) back(elapsed, last int64, spent uint64, by source) bool {
	return elapsed < last-int64(by.hold) || spent <= b.line(last)
}

// lacks reports that there were no n tokens at the last time.
func (b *bucket) lacks(spent uint64, last int64, n int) bool {
	supply := b.line(last)
	return spent != closed && max(spent, supply)-supply > b.room-uint64(n)*b.unit
}

// take takes n tokens if they are there at elapsed. It is not sure when it takes more than the word to decide.
func (b *bucket) take(elapsed int64, n int, by source) (ok, sure bool) {
	if n < 1 {
		return false, false
	}
	if n > b.burst || b.endless {
		return n <= b.most(), true
	}
	last := b.last.Load()
	if elapsed < last {
		if spent := b.spent.Load(); b.back(elapsed, last, spent, by) {
			return false, b.lacks(spent, last, n) // and then nothing changes, not even the time
		}
		elapsed = last
	}
	if uint64(elapsed) > b.horizon {
		return false, false
	}
	cost, supply := uint64(n)*b.unit, b.line(elapsed)
	for {
		spent := b.spent.Load()
		if spent == closed {
			return false, false
		}
		used := max(spent, supply) - supply
		if used > b.room-cost {
			return false, true
		}
		if b.spent.CompareAndSwap(spent, supply+used+cost) {
			break
		}
	}
	if elapsed > last+int64(by.lag) {
		b.last.Store(elapsed)
	}
	return true, true
}

// most is the largest n that can be had.
func (b *bucket) most() int {
	if b.limit >= Inf {
		return math.MaxInt
	}
	return b.burst
}

// charge adds n tokens to used, or takes −n from it; used ends between nothing and maxUsed.
func (b *bucket) charge(used uint64, n int) uint64 {
	if n >= 0 {
		return min(used+uint64(n)*b.unit, maxUsed)
	}
	over, back := bits.Mul64(uint64(-n), b.unit)
	if over > 0 || back > used {
		return 0
	}
	return used - back
}

// wait is how long it takes until the bucket from which used has been taken is no longer in debt, without the fraction of
// a nanosecond.
func (b *bucket) wait(used uint64) time.Duration {
	if used <= max(b.room, b.size) {
		return 0
	}
	debt := used - b.size + b.grace
	hi, lo := debt>>b.shift, debt<<(64-b.shift)
	if hi >= b.mul || used >= maxUsed {
		return InfDuration
	}
	nanoseconds, _ := bits.Div64(hi, lo, b.mul)
	return time.Duration(min(max(nanoseconds, 1), math.MaxInt64))
}

// tokens is what is left when used has been taken.
func (b *bucket) tokens(used uint64) float64 {
	if used > b.size {
		return -float64(used-b.size) / float64(b.unit)
	}
	return float64(b.size-used) / float64(b.unit)
}

// convert turns units of from to the token into units of to, rounded down; more is the remainder.
func convert(units, from, to uint64) (converted, more uint64) {
	hi, lo := bits.Mul64(units, to)
	if hi >= from {
		return maxUsed, 0
	}
	converted, more = bits.Div64(hi, lo, from)
	return min(converted, maxUsed), more
}
