package limit

import (
	"fmt"
	"slices"
	"time"
)

// Calendar says when hours, days, weeks and months begin. The zero Calendar has none: its
// limits count in any hour, any 24 hours, any 7 days and any 30 days. In any other one,
// every field that is left out has its default.
type Calendar struct {
	Month int    `json:"month,omitempty"` // the day on which months begin, from 1 to 31, or the last one of a shorter month; 0: the 1st
	Week  string `json:"week,omitempty"`  // the day on which weeks begin, from "monday" to "sunday"; empty: Monday
	At    string `json:"at,omitempty"`    // the time of day at which days, weeks and months begin, from "00:00" to "23:59"; hours begin at its minute; empty: midnight
	Zone  string `json:"zone,omitempty"`  // the name of a time zone, such as "Europe/Berlin"; empty: UTC
}

// PerHour returns a limit of n an hour: of the calendar by [Limit.ResetHourly], or else of
// any hour by [SlidingLog]. If the calendar is not valid, neither is the limit.
func (c Calendar) PerHour(n int64) Limit { return c.divide(PerHour(n)) }

// PerDay returns a limit of n a day: of the calendar by [Limit.ResetAt], or else of any 24
// hours by [SlidingLog].
func (c Calendar) PerDay(n int64) Limit { return c.divide(PerDay(n)) }

// PerWeek returns a limit of n a week: of the calendar by [Limit.ResetWeekly], or else of
// any 7 days by [SlidingLog].
func (c Calendar) PerWeek(n int64) Limit { return c.divide(PerWeek(n)) }

// PerMonth returns a limit of n a month: of the calendar by [Limit.ResetMonthly], or else
// of any 30 days by [SlidingLog].
func (c Calendar) PerMonth(n int64) Limit { return c.divide(PerMonth(n)) }

// divide returns l with the windows of the calendar.
func (c Calendar) divide(l Limit) Limit {
	if c == (Calendar{}) {
		return l.Using(SlidingLog)
	}
	b, err := c.read()
	if err != nil {
		return Limit{}
	}
	switch l.period {
	case time.Hour:
		return l.ResetHourly(b.at%time.Hour, b.zone)
	case day:
		return l.ResetAt(b.at, b.zone)
	case week:
		return l.ResetWeekly(b.week, b.at, b.zone)
	default:
		return l.ResetMonthly(b.month, b.at, b.zone)
	}
}

// Validate returns an error that says what is wrong with the calendar and what is allowed,
// or nil if the calendar is valid.
func (c Calendar) Validate() error {
	_, err := c.read()
	return err
}

// boundaries is a Calendar that was read.
type boundaries struct {
	month int
	week  time.Weekday
	at    time.Duration
	zone  *time.Location
}

func (c Calendar) read() (b boundaries, err error) {
	b.month = max(c.Month, 1)
	if c.Month < 0 || c.Month > 31 {
		return b, fmt.Errorf("ratelimit: months that begin on day %d: it must be from 1 to 31", c.Month)
	}
	b.week = time.Monday
	if c.Week != "" {
		b.week = time.Weekday(slices.Index(weekdays[:], c.Week))
	}
	if b.week < 0 {
		return b, fmt.Errorf("ratelimit: weeks that begin on %.40q: it must be a day from monday to sunday", c.Week)
	}
	if c.At != "" {
		at, err := time.Parse("15:04", c.At)
		if err != nil || len(c.At) != len("15:04") {
			return b, fmt.Errorf("ratelimit: days that begin at %.40q: it must be a time from 00:00 to 23:59", c.At)
		}
		b.at = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	b.zone, err = zoneNamed(c.Zone)
	if err != nil || c.Zone == "Local" { // Local is a different zone on each machine
		return b, fmt.Errorf("ratelimit: zone %.80q: it must be a name in the time zone database, such as Europe/Berlin", c.Zone)
	}
	return b, nil
}
