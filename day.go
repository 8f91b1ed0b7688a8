package ratelimit

import "dappco.re/go/core/go-ratelimit/limit"

// day is what was used of one unit in a day. Its times are Unix nanoseconds. A
// day begins with its first use, or when the calendar says.
type day struct {
	start, end int64
	since      int64 // its first use
	used       int64
}

// dayOf returns when the day begins that a time falls into, by the calendar of a
// limit, and when it ends.
func dayOf(calendar limit.Limit, now int64) (start, end int64) {
	d := new(limit.Account).Check(calendar, now, 1)
	return d.Since, now + int64(d.ResetAfter)
}

// at returns the day as of now: an empty one if it has ended.
func (d day) at(now int64) day {
	if now >= d.end {
		return day{}
	}
	return d
}

// add enters a use at now, by the calendar of a limit.
func (d *day) add(calendar limit.Limit, now, n int64) {
	if n == 0 {
		return
	}
	if now >= d.end {
		*d = day{since: now}
		d.start, d.end = dayOf(calendar, now)
	}
	d.used = min(d.used+n, mostSum)
}

// move lets a day that is under way at now end when another calendar says. Without
// one it ends when it would have.
func (d *day) move(q ModelQuota, calendar limit.Limit, now int64) {
	if *d = d.at(now); d.end > 0 && q.DayResetsAt != "" {
		_, d.end = dayOf(calendar, now)
	}
}

// settle corrects what was taken at a time to what was used, unless its day has
// ended. Where nothing was taken, no day may have begun then.
func (d *day) settle(calendar limit.Limit, at, taken, used int64) {
	switch {
	case at >= d.since && at < d.end:
		d.used = min(max(d.used+used-taken, 0), mostSum)
	case taken > 0 || used == 0:
	case at >= d.end:
		d.add(calendar, at, used)
	default:
		if _, end := dayOf(calendar, at); end > d.since {
			d.used = min(d.used+used, mostSum)
		}
	}
	if d.used == 0 {
		*d = day{} // what was given back has begun no day
	}
}
