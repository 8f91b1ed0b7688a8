package limit

import "time"

// calendarWindow returns the time of the last reset at or before now, and of the next one.
func (l Limit) calendarWindow(now int64) (start, end int64) {
	if l.period == time.Hour {
		return l.calendarHour(now)
	}
	today := time.Unix(0, now).In(l.zone)
	end = l.resetOn(l.date(today, -1)) // in the past, because clocks show a later date now
	for i := 0; end <= now; i++ {      // two or three rounds, because a date can occur twice
		start, end = end, l.resetOn(l.date(today, i))
	}
	return start, end
}

// date returns the day on which a window begins: the i-th after the one that begins today,
// or has begun last; of a month's window, the i-th after the one that begins in this month.
func (l Limit) date(today time.Time, i int) (year int, of time.Month, on int) {
	year, of, on = today.Date()
	switch l.period {
	case week:
		since := (int(today.Weekday()) - int(l.minute)/minutesOfDay + 7) % 7
		return year, of, on - since + 7*i
	case month:
		of += time.Month(i)
		last := time.Date(year, of+1, 0, 0, 0, 0, 0, time.UTC).Day()
		return year, of, min(int(l.minute)/minutesOfDay+1, last)
	default:
		return year, of, on + i
	}
}

// resetOn returns the first instant of a date at which the zone's clocks show the limit's
// time of day or later. On a date on which the clocks change, the offset from UTC is
// that of the day before or that of the day after.
func (l Limit) resetOn(year int, month time.Month, day int) int64 {
	shown := time.Date(year, month, day, 0, int(l.minute)%minutesOfDay, 0, 0, time.UTC)
	before := shown.Add(-offset(shown.Add(-36*time.Hour), l.zone))
	if shows(before, shown, l.zone) {
		return before.UnixNano()
	}
	after := shown.Add(-offset(shown.Add(36*time.Hour), l.zone))
	if shows(after, shown, l.zone) {
		return after.UnixNano()
	}
	// The clocks skip the time of day: they change between the two instants.
	_, change := earlier(before, after).In(l.zone).ZoneBounds()
	return change.UnixNano()
}

// calendarHour returns the last time at or before now at which the zone's clocks show the
// limit's minute, and the next such time.
func (l Limit) calendarHour(now int64) (start, end int64) {
	for t := now; ; {
		begins, _, shown := l.hours(t)
		if start = t - (shown - floor(shown, int64(time.Hour))); !time.Unix(0, start).Before(begins) {
			break
		}
		t = begins.UnixNano() - 1 // the clocks have changed since
	}
	for t := now + 1; ; {
		_, ends, shown := l.hours(t)
		if end = t - shown - floor(-shown, int64(time.Hour)); ends.IsZero() || time.Unix(0, end).Before(ends) {
			return start, end
		}
		t = ends.UnixNano() // the clocks change before
	}
}

// hours returns since when and until when clocks in the zone go on as they do at t, and
// what they show at t if hours begin at minute 0 in place of the limit's. ends is zero if no
// change is known.
func (l Limit) hours(t int64) (begins, ends time.Time, shown int64) {
	at := time.Unix(0, t).In(l.zone)
	begins, ends = at.ZoneBounds()
	if !ends.After(at) { // so package time answers on the last day of a leap year after 2037
		ends = time.Time{}
	}
	return begins, ends, t + int64(offset(at, l.zone)) - int64(l.minute)*int64(time.Minute)
}

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// shows reports whether clocks in zone show at t the time that clocks in UTC show at shown.
func shows(t, shown time.Time, zone *time.Location) bool {
	return t.Add(offset(t, zone)).Equal(shown)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
