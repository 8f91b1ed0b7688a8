package rate

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A bucket has the parameters of a limiter and, in the one word spent, its state.
//
// The state counts in units, of which a fixed number make a token. The supply is what the limit has supplied since the
// origin: a straight line that starts at zero. spent is what has been taken. It is below the supply only while the
// bucket is full. So the bucket holds size − (spent − supply), and taking n tokens is
//
//	spent = max(spent, supply) + n×unit, if that is at most supply + room.
//
// A change that the word cannot express (other parameters, time that goes back, a supply that is too large) creates a
// new bucket, and the word of the old one becomes spentClosed for good.
type bucket struct {
	start   int64  // the origin in nanoseconds since epoch
	horizon uint64 // nanoseconds after which the supply is too large for the word
	unit    uint64 // the number of units in a token
	mul     uint64 // mul × 2^(shift−64) units are supplied in a nanosecond
	shift   uint8
	endless bool   // the limit fills any bucket within a nanosecond, so nothing is counted
	room    uint64 // size, plus the supply of almost a nanosecond: a token that is due that soon counts as present

	spent atomic.Uint64
	last  atomic.Int64 // when tokens were last taken, in nanoseconds since the origin, or up to maxLag earlier

	lockedSpent uint64 // spent as of the last change under the mutex, which guards it
	limit       Limit
	burst       int
	size        uint64    // units in the full bucket
	grace       uint64    // the supply of a 64th of a nanosecond, by which room is less than the supply of a whole one
	origin      time.Time // the exact origin; start is bounded, and epoch may be centuries away
}

const (
	spentClosed = math.MaxUint64 // spent of a bucket that was replaced
	maxSupply   = 1 << 62        // the supply at the horizon, within the precision of a float64
	maxUsed     = 1 << 63        // the most of spent − supply, so that spent stays below spentClosed
)

// A timeSource says where a time comes from, and so how exact it is. A time that is earlier than the last one by no
// more than maxBack does not turn the clock back: the goroutine that read it was delayed, and others have overtaken it.
type timeSource struct {
	maxBack time.Duration
	maxLag  time.Duration // how much too early bucket.last may be, so that it need not be written each time
}

var (
	givenTime = timeSource{maxBack: time.Millisecond}
	ownClock  = timeSource{maxBack: time.Second, maxLag: time.Millisecond}
)

// newBucket returns a full bucket. Its word has room for a debt of twice its burst, and of several times the given debt
// in tokens.
func newBucket(limit Limit, burst int, origin time.Time, debt float64) *bucket {
	b := &bucket{
		start:   min(max(int64(origin.Sub(epoch)), -maxSupply), maxSupply), // further away it is past the horizon
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
	// The last bit of a float64 must not decide about a wait of whole nanoseconds: with a 64th of one to spare, a limit
	// of Every(d) waits for d, and not for d−1 or d+1.
	b.grace = uint64(speed / 64)
	if burst > 0 {
		b.room = b.size + uint64(max(0, math.Ceil(speed*63/64)-1))
	}
	return b
}

// scale chooses the finest unit with which the word has room for a number of tokens and for the supply of a minute. It
// returns how many units are supplied in a nanosecond. Unless there are very many tokens, that is a power of two for a
// limit of 1, and so any limit is exact.
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

// supply returns the units supplied in elapsed nanoseconds, or MaxUint64 if they are more.
func (b *bucket) supply(elapsed uint64) uint64 {
	hi, lo := bits.Mul64(elapsed, b.mul)
	if hi>>(64-b.shift) != 0 {
		return math.MaxUint64
	}
	return hi<<b.shift | lo>>(64-b.shift)
}

// line is supply for times within the horizon, and faster.
func (b *bucket) line(elapsed int64) uint64 {
	supply, _ := bits.Mul64(uint64(elapsed)<<(b.shift&63), b.mul)
	return supply
}

// turnsBack reports whether a time before the last one turns the clock back. It always does if the bucket was full at
// the last time: then no token can be taken twice.
func (b *bucket) turnsBack(elapsed, last int64, spent uint64, by timeSource) bool {
	return elapsed < last-int64(by.maxBack) || spent <= b.line(last)
}

// lacks reports whether the bucket had fewer than n tokens at the last time.
func (b *bucket) lacks(spent uint64, last int64, n int) bool {
	supply := b.line(last)
	return spent != spentClosed && max(spent, supply)-supply > b.room-uint64(n)*b.unit
}

// take takes n tokens if the bucket has them at elapsed, in nanoseconds since the origin. If sure is false, the word
// alone does not decide, and nothing was taken.
func (b *bucket) take(elapsed int64, n int, by timeSource) (ok, sure bool) {
	if n < 1 {
		return false, false
	}
	if n > b.burst || b.endless {
		return n <= b.maxTokens(), true
	}
	last := b.last.Load()
	if elapsed < last {
		if spent := b.spent.Load(); b.turnsBack(elapsed, last, spent, by) {
			return false, b.lacks(spent, last, n) // a denial changes nothing, not even the time
		}
		elapsed = last
	}
	if uint64(elapsed) > b.horizon {
		return false, false
	}
	cost, supply := uint64(n)*b.unit, b.line(elapsed)
	for {
		spent := b.spent.Load()
		if spent == spentClosed {
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
	if elapsed > last+int64(by.maxLag) {
		b.last.Store(elapsed)
	}
	return true, true
}

// maxTokens returns the largest n that can ever be taken at once.
func (b *bucket) maxTokens() int {
	if b.limit >= Inf {
		return math.MaxInt
	}
	return b.burst
}

// charge adds n tokens, which may be negative, to the units in used. The result is from 0 to maxUsed.
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

// wait returns the time until a bucket from which used units have been taken is no longer in debt, rounded down to
// nanoseconds.
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

// tokens returns how many tokens are left when used units have been taken.
func (b *bucket) tokens(used uint64) float64 {
	if used > b.size {
		return -float64(used-b.size) / float64(b.unit)
	}
	return float64(b.size-used) / float64(b.unit)
}

// convert converts units of which from are a token to units of which to are a token, rounded down. It also returns the
// remainder.
func convert(units, from, to uint64) (converted, remainder uint64) {
	hi, lo := bits.Mul64(units, to)
	if hi >= from {
		return maxUsed, 0
	}
	converted, remainder = bits.Div64(hi, lo, from)
	return min(converted, maxUsed), remainder
}
