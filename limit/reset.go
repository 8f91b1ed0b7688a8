package limit

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Periods of the calendar's windows. A month has 30 days wherever it is not the calendar's.
const (
	day   = 24 * time.Hour
	week  = 7 * day
	month = 30 * day
)

// The minute of a calendar window counts from the start of an hour, a day, a week (which
// begins on Sunday) or a month. A negative one is not valid.
const (
	minutesOfDay = 24 * 60
	mostMinutes  = 31*minutesOfDay - 1

	badTime   = -1 // there is no such time
	badPeriod = -2 // the limit has another period than its reset
)

// ResetHourly returns the limit, whose period must be an hour, as a [FixedWindow] that
// begins whenever clocks in zone show a minute of the hour:
//
//	limit.PerHour(1000).ResetHourly(0, kathmandu) // a quarter of an hour after London's hours
//
// Hours last 60 minutes also when clocks change by an hour. If they change by half an
// hour, one of them lasts 30 or 90 minutes. For the zone, see [Limit.ResetAt].
func (l Limit) ResetHourly(pastTheHour time.Duration, zone *time.Location) Limit {
	return l.reset(time.Hour, 0, pastTheHour, zone)
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
	return l.reset(day, 0, timeOfDay, zone)
}

// ResetWeekly returns the limit, whose period must be 7 days, as a [FixedWindow] that
// begins on a day of the week when clocks in zone reach a time of day: see [Limit.ResetAt].
func (l Limit) ResetWeekly(on time.Weekday, timeOfDay time.Duration, zone *time.Location) Limit {
	return l.reset(week, int(on), timeOfDay, zone)
}

// ResetMonthly returns the limit, whose period must be 30 days, as a [FixedWindow] that
// begins on a day of the month, from 1 to 31, when clocks in zone reach a time of day:
// see [Limit.ResetAt]. Windows are as long as the calendar's months. In a month that is
// too short they begin on its last day: those of the 31st on 30 April, and on 28 or 29
// February.
func (l Limit) ResetMonthly(on int, timeOfDay time.Duration, zone *time.Location) Limit {
	return l.reset(month, on-1, timeOfDay, zone)
}

// reset returns the limit as a window of the calendar, which begins so many days and so
// much time after the start of an hour, a day, a week or a month.
func (l Limit) reset(period time.Duration, days int, past time.Duration, zone *time.Location) Limit {
	l.algorithm, l.windowing, l.minute, l.zone = FixedWindow, calendar, badTime, nil
	if past >= 0 && past < min(period, day) && past%time.Minute == 0 && days >= 0 && days < daysOf(period) {
		l.minute = int32(days*minutesOfDay + int(past/time.Minute))
	}
	if l.period != period {
		l.minute = badPeriod
	}
	if zone == nil {
		zone = time.UTC
	}
	if named, err := zoneNamed(zone.String()); err == nil && sameOffsets(named, zone) {
		l.zone = named
	}
	return l
}

// daysOf returns how many days a window of a period may have to begin on, or 0 if the
// calendar has no such windows.
func daysOf(period time.Duration) int {
	switch period {
	case time.Hour, day:
		return 1
	case week:
		return 7
	case month:
		return 31
	}
	return 0
}

// validateReset returns what is wrong with the calendar of a limit, or nil.
func (l Limit) validateReset() error {
	const timeOfDay = "the time of day of a reset must be from 00:00 to 23:59, in whole minutes"
	most := daysOf(l.period) * minutesOfDay
	if l.period == time.Hour {
		most = 60
	}
	switch {
	case l.windowing != calendar:
		return nil
	case l.minute == badPeriod || most == 0:
		return fmt.Errorf("ratelimit: a limit every %v that resets by the calendar: for ResetHourly the period must be an hour, "+
			"for ResetAt it must be a day, for ResetWeekly 7 days and for ResetMonthly 30", l.period)
	case l.zone == nil:
		return errors.New("ratelimit: the zone of a reset must be a name in the time zone database, such as America/Los_Angeles")
	case l.minute >= 0 && int(l.minute) < most:
		return nil
	}
	switch l.period {
	case time.Hour:
		return errors.New("ratelimit: the reset of an hour must be from 0 to 59 minutes past it, in whole minutes")
	case week:
		return errors.New("ratelimit: the reset of a week must be on a day from Sunday to Saturday; " + timeOfDay)
	case month:
		return errors.New("ratelimit: the reset of a month must be on a day from 1 to 31; " + timeOfDay)
	default:
		return errors.New("ratelimit: " + timeOfDay)
	}
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
