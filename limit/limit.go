package limit

import (
	"fmt"
	"math/bits"
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
	// of one. Windows are aligned to the Unix epoch, unless [Limit.Anchored],
	// [Limit.ResetHourly], [Limit.ResetAt], [Limit.ResetWeekly] or
	// [Limit.ResetMonthly] changes that.
	FixedWindow

	// SlidingLog stores the time and the amount of each request, so it is exact in
	// any window. It stores up to 4,096 entries for each key. Beyond that,
	// neighbours merge: that can delay later requests by 1/1024 of the window
	// (times the number of windows of the key), and never admits more.
	SlidingLog

	// SlidingCounter stores two counts, of this window and of the one before. It
	// estimates what was used in the last period as the first and, of the second, the
	// part that the period still covers, and admits a request while the estimate is
	// below the limit. An amount of n passes where n requests at once would. Windows
	// are aligned to the Unix epoch, and each of them admits at most the limit. Another
	// span of the same length can hold one more than the limit if the window before was
	// used evenly, and twice the limit if all of it came at its end.
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
	calendar                  // at a time of the hour, the day, the week or the month in a zone
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
	minute    int32          // the minute of the hour, day, week or month at which a calendar window begins; see reset.go
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
func PerDay(n int64) Limit { return New(n, day) }

// PerWeek returns a limit of n in 7 days.
func PerWeek(n int64) Limit { return New(n, week) }

// PerMonth returns a limit of n in 30 days. [Limit.ResetMonthly] makes it one of the
// calendar's months.
func PerMonth(n int64) Limit { return New(n, month) }

// Total returns a limit of n in all: it begins with the first request, and does not reset
// within anybody's patience: for 73 years. A total that is to expire, such as the budget
// of one run, is an [Limit.Anchored] limit:
//
//	limit.New(500, 24*time.Hour).Anchored() // 500 within 24 hours of the first request
func Total(n int64) Limit { return New(n, maxPeriod).Anchored() }

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
	}
	return l.validateReset()
}

// refills reports whether a bucket from which all was taken is full again within maxPeriod.
func (l Limit) refills() bool {
	hi, lo := bits.Mul64(uint64(l.burst), uint64(l.period))
	maxHi, maxLo := bits.Mul64(uint64(l.count), maxPeriod)
	return hi < maxHi || hi == maxHi && lo <= maxLo
}
