package books

import "time"

// Retention is for how long the books are kept.
type Retention struct {
	Hours time.Duration // days that are older than this are kept as a whole, and not by the hour
	Days  time.Duration // days that are older than this are dropped
}

// Cut returns the times before which hours are merged into days, and days are dropped, at a time
// in Unix nanoseconds. Both are beginnings of days, in Unix seconds.
func (r Retention) Cut(now int64) (hours, days int64) {
	now = floor(now, 1e9) / 1e9
	return floor(now-int64(r.Hours/time.Second), Day), floor(now-int64(r.Days/time.Second), Day)
}

// DayOf returns the beginning of the day of a time, both in Unix seconds.
func DayOf(at int64) int64 { return floor(at, Day) }
