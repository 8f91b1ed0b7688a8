package limit

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"
)

// Algorithm is the way in which a [Limit] counts what passes.
type Algorithm uint8

const (
	// GCRA spaces requests evenly, and lets a burst pass at once. It is the
	// default: it is exact in any window, and stores one number for each key.
	GCRA Algorithm = iota

	// TokenBucket holds burst tokens and refills continuously at the rate.
	// It is the same arithmetic as GCRA, and decides the same.
	TokenBucket

	// LeakyBucket fills by what passes and drains at the rate; a request that
	// would raise it above burst is denied. It is the mirror image of TokenBucket,
	// and decides the same. A [Queue] is its other form, which delays requests.
	LeakyBucket

	// FixedWindow counts from the start of a window, and begins anew at its end.
	// Around the boundary of two windows, twice the limit can pass in the time
	// of one. Windows are aligned to the Unix epoch, unless [Limit.Anchored] or
	// [Limit.ResetAt] changes that.
	FixedWindow

	// SlidingLog stores the time and the amount of each request, so it is exact in
	// any window. It stores up to 4,096 entries for each key. Beyond that,
	// neighbours merge: that can delay later requests by 1/1024 of the window
	// (times the number of windows of the key), and never admits more.
	SlidingLog

	// SlidingCounter stores two counts, of this window and of the one before, and
	// assumes that the latter was spread evenly. It is an estimate: bursts at the
	// boundaries of windows can exceed the limit in the time of one.
	SlidingCounter

	algorithms
)

var algorithmNames = [algorithms]string{"gcra", "token", "leaky", "fixed", "log", "counter"}

// String returns the algorithm's name as [Parse] reads it.
func (a Algorithm) String() string {
	if a >= algorithms {
		return fmt.Sprintf("Algorithm(%d)", uint8(a))
	}
	return algorithmNames[a]
}

// bursts reports whether the algorithm has a burst beside its count: whether it is a
// bucket.
func (a Algorithm) bursts() bool { return a <= LeakyBucket }

// windowing is how the windows of a FixedWindow begin.
type windowing uint8

const (
	aligned  windowing = iota // at multiples of the period since the Unix epoch
	anchored                  // at the first request
	calendar                  // at a time of day in a zone
)

const (
	maxCount  = 1 << 62
	maxPeriod = 1 << 61 // nanoseconds, 73 years: twice that added to any reading of a clock fits 63 bits
)

// Limit is an amount that may pass in a period, counted by an algorithm, with a burst. It
// is a value: it can be copied, compared with ==, and used as a map's key. The zero Limit
// is not valid. A limit that is not valid (see [Limit.Validate]) admits nothing.
type Limit struct {
	count     int64
	period    time.Duration
	burst     int64
	algorithm Algorithm
	windowing windowing
	minute    int16          // the minute of the day at which a calendar window begins; -1 if it is invalid
	zone      *time.Location // the zone of a calendar window, one pointer for each name; nil if it is unknown
}

// New returns a limit of count in any period, by [GCRA], with a burst of count.
func New(count int64, period time.Duration) Limit {
	return Limit{count: count, period: period, burst: count}
}

// PerSecond returns a limit of n a second.
func PerSecond(n int64) Limit { return New(n, time.Second) }

// PerMinute returns a limit of n a minute.
func PerMinute(n int64) Limit { return New(n, time.Minute) }

// PerHour returns a limit of n an hour.
func PerHour(n int64) Limit { return New(n, time.Hour) }

// PerDay returns a limit of n in 24 hours.
func PerDay(n int64) Limit { return New(n, 24*time.Hour) }

// Using returns the limit with another algorithm.
func (l Limit) Using(a Algorithm) Limit {
	l.algorithm, l.windowing, l.minute, l.zone = a, aligned, 0, nil
	return l
}

// WithBurst returns the limit with another burst: the amount that may pass at once if
// nothing has passed for a while. Only [GCRA], [TokenBucket] and [LeakyBucket] have one;
// without WithBurst it is the count.
func (l Limit) WithBurst(n int64) Limit {
	l.burst = n
	return l
}

// WithCount returns the limit with another count. For [GCRA], [TokenBucket] and
// [LeakyBucket], the burst stays as it is.
func (l Limit) WithCount(n int64) Limit {
	l.count = n
	if !l.algorithm.bursts() {
		l.burst = n
	}
	return l
}

// Anchored returns the limit as a [FixedWindow] that begins with the first
// request after the last window has ended.
func (l Limit) Anchored() Limit {
	l.algorithm, l.windowing, l.minute, l.zone = FixedWindow, anchored, 0, nil
	return l
}

// ResetAt returns the limit, whose period must be a day, as a [FixedWindow] that
// begins each day when clocks in zone reach a time of day, to the minute:
//
//	limit.PerDay(1000).ResetAt(0, losAngeles) // at midnight Pacific
//
// Days are as long as the calendar's. A time of day that a change of clocks skips is
// reached when the clocks change; one that occurs twice counts the first time. The zone
// must be known by name to [time.LoadLocation]; nil is UTC. A limiter follows the
// monotonic clock from the time when it was made, so it does not notice if the wall clock
// is set later.
func (l Limit) ResetAt(timeOfDay time.Duration, zone *time.Location) Limit {
	l.algorithm, l.windowing, l.minute, l.zone = FixedWindow, calendar, -1, nil
	if timeOfDay >= 0 && timeOfDay < 24*time.Hour && timeOfDay%time.Minute == 0 {
		l.minute = int16(timeOfDay / time.Minute)
	}
	if zone == nil {
		zone = time.UTC
	}
	if named, err := zoneNamed(zone.String()); err == nil && sameOffsets(named, zone) {
		l.zone = named
	}
	return l
}

// sameOffsets reports whether two zones of the same name have the same offsets. A program
// can give a zone of its own the name of one in the database.
func sameOffsets(a, b *time.Location) bool {
	for month := time.January; month <= time.December; month++ {
		t := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
		if offset(t, a) != offset(t, b) {
			return false
		}
	}
	return true
}

var zones sync.Map // from names to *time.Location

// zoneNamed returns the same pointer each time it is called with a name, so that equal
// limits are equal by ==.
func zoneNamed(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	known, _ := zones.LoadOrStore(name, zone)
	return known.(*time.Location), nil
}

// Count returns how much may pass in a period.
func (l Limit) Count() int64 { return l.count }

// Period returns the time in which Count may pass.
func (l Limit) Period() time.Duration { return l.period }

// Burst returns how much may pass at once: the largest request that ever can.
func (l Limit) Burst() int64 { return l.burst }

// Algorithm returns the algorithm by which the limit counts.
func (l Limit) Algorithm() Algorithm { return l.algorithm }

// Validate returns an error that says what is wrong with the limit and what is allowed,
// or nil if the limit is valid.
func (l Limit) Validate() error {
	switch {
	case l.count < 1 || l.count > maxCount:
		return fmt.Errorf("ratelimit: a limit of %d: the count must be from 1 to 2^62", l.count)
	case l.period < 1 || l.period > maxPeriod:
		return fmt.Errorf("ratelimit: a limit every %v: the period must be from 1ns to %v", l.period, time.Duration(maxPeriod))
	case l.algorithm >= algorithms:
		return fmt.Errorf("ratelimit: unknown algorithm %v: it must be gcra, token, leaky, fixed, log or counter", l.algorithm)
	case l.burst < 1 || l.burst > maxCount:
		return fmt.Errorf("ratelimit: a burst of %d: it must be from 1 to 2^62", l.burst)
	case l.burst != l.count && !l.algorithm.bursts():
		return fmt.Errorf("ratelimit: a burst of %d on a limit of %d by %v: only gcra, token and leaky have a burst", l.burst, l.count, l.algorithm)
	case !l.refills():
		return fmt.Errorf("ratelimit: a burst of %d at %d every %v: it must refill within %v", l.burst, l.count, l.period, time.Duration(maxPeriod))
	case l.windowing == calendar && l.period != 24*time.Hour:
		return fmt.Errorf("ratelimit: a limit every %v that resets at a time of day: the period must be a day", l.period)
	case l.windowing == calendar && l.minute < 0:
		return errors.New("ratelimit: the time of day of a reset must be from 00:00 to 23:59, in whole minutes")
	case l.windowing == calendar && l.zone == nil:
		return errors.New("ratelimit: the zone of a reset must be a name in the time zone database, such as America/Los_Angeles")
	}
	return nil
}

// refills reports whether a bucket from which all was taken is full again within maxPeriod.
func (l Limit) refills() bool {
	hi, lo := bits.Mul64(uint64(l.burst), uint64(l.period))
	maxHi, maxLo := bits.Mul64(uint64(l.count), maxPeriod)
	return hi < maxHi || hi == maxHi && lo <= maxLo
}
