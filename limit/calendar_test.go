package limit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// yearCases are stretches of time in which the calendar is not regular: leap years, and clocks that
// change.
var yearCases = []struct{ zone, from, to string }{
	{"Europe/Berlin", "2023-12-01", "2025-03-05"},
	{"America/New_York", "2027-12-01", "2029-03-05"},
	{"Australia/Lord_Howe", "2023-12-01", "2025-03-05"}, // clocks change by half an hour
	{"Asia/Kathmandu", "2023-12-01", "2024-06-05"},      // a quarter of an hour off
	{"Africa/Casablanca", "2023-12-01", "2025-03-05"},   // clocks go back for Ramadan
	{"America/Sao_Paulo", "2015-09-01", "2016-11-05"},   // midnight is skipped
	{"Pacific/Apia", "2011-09-01", "2012-05-05"},        // 30 December is skipped
	{"UTC", "2099-09-01", "2100-05-05"},                 // 2100 is no leap year
}

// wallReset is a kind of window: when it begins by the clocks of its zone, for a naive model.
type wallReset struct {
	name  string
	limit func(n int64, zone *time.Location) Limit
	marks func(midnight time.Time) (minute int, ok bool) // whether a window begins on a date, and at which minute of it
	every int                                            // for an hour, which has no marks: the minute of it
}

func wallHour(minute int) wallReset {
	return wallReset{fmt.Sprintf("hours at :%02d", minute), func(n int64, zone *time.Location) Limit {
		return PerHour(n).ResetHourly(time.Duration(minute)*time.Minute, zone)
	}, nil, minute}
}

func wallDay(minute int) wallReset {
	return wallReset{fmt.Sprintf("days at minute %d", minute), func(n int64, zone *time.Location) Limit {
		return PerDay(n).ResetAt(time.Duration(minute)*time.Minute, zone)
	}, func(time.Time) (int, bool) { return minute, true }, 0}
}

func wallWeek(on time.Weekday, minute int) wallReset {
	return wallReset{fmt.Sprintf("weeks on %v at minute %d", on, minute), func(n int64, zone *time.Location) Limit {
		return PerWeek(n).ResetWeekly(on, time.Duration(minute)*time.Minute, zone)
	}, func(midnight time.Time) (int, bool) { return minute, midnight.Weekday() == on }, 0}
}

func wallMonth(on, minute int) wallReset {
	return wallReset{fmt.Sprintf("months on %d at minute %d", on, minute), func(n int64, zone *time.Location) Limit {
		return PerMonth(n).ResetMonthly(on, time.Duration(minute)*time.Minute, zone)
	}, func(midnight time.Time) (int, bool) {
		isLast := midnight.AddDate(0, 0, 1).Day() == 1
		return minute, midnight.Day() == on || isLast && midnight.Day() < on
	}, 0}
}

var wallResets = []wallReset{
	wallHour(0), wallHour(15), wallHour(30), wallHour(45), wallHour(59),
	wallDay(0), wallDay(150), wallDay(24*60 - 1),
	wallWeek(time.Monday, 0), wallWeek(time.Sunday, 150), wallWeek(time.Friday, 6*60+30), wallWeek(time.Saturday, 24*60-1),
	wallMonth(1, 0), wallMonth(1, 24*60-1), wallMonth(15, 6*60+30), wallMonth(28, 120), wallMonth(29, 0), wallMonth(30, 0), wallMonth(31, 0), wallMonth(31, 150),
}

// yearResets reads the clocks of a zone minute by minute, and returns for each of wallResets when its
// windows began: when the clocks first showed a time, or a later one; of hours, whenever they showed
// the minute.
func yearResets(zone *time.Location, from, to time.Time) [][]int64 {
	offset := 0 // in minutes; in these years, clocks change only on the quarter of an hour
	shownAt := func(minute int) int {
		if minute%15 == 0 {
			_, seconds := time.Unix(int64(minute)*60, 0).In(zone).Zone()
			offset = seconds / 60
		}
		return minute + offset
	}
	minute, last := int(from.Unix()/60), int(to.Unix()/60)
	first := shownAt(minute)
	marks := make([][]int, len(wallResets)) // what clocks show when windows begin, in minutes
	var everyHour [60][]int                 // the indexes of hours, by their minutes
	for i, r := range wallResets {
		if r.marks == nil {
			everyHour[r.every] = append(everyHour[r.every], i)
			continue
		}
		for midnight := from.AddDate(0, 0, -3); midnight.Before(to.AddDate(0, 0, 3)); midnight = midnight.AddDate(0, 0, 1) {
			if at, ok := r.marks(midnight); ok && int(midnight.Unix()/60)+at > first {
				marks[i] = append(marks[i], int(midnight.Unix()/60)+at)
			}
		}
	}
	resets := make([][]int64, len(wallResets))
	for next := first; minute < last; minute++ { // next is the next mark of all
		shown := shownAt(minute)
		at := int64(minute) * int64(time.Minute)
		for _, i := range everyHour[shown%60] {
			resets[i] = append(resets[i], at)
		}
		if shown < next {
			continue
		}
		next = math.MaxInt
		for i := range marks {
			for began := false; len(marks[i]) > 0 && shown >= marks[i][0]; began = true {
				marks[i] = marks[i][1:]
				if !began {
					resets[i] = append(resets[i], at)
				}
			}
			if len(marks[i]) > 0 {
				next = min(next, marks[i][0])
			}
		}
	}
	return resets
}

// years returns the resets of all yearCases, for each of wallResets.
var years = sync.OnceValue(func() (all [][][]int64) {
	for _, c := range yearCases {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			panic(err)
		}
		from, _ := time.Parse(time.DateOnly, c.from)
		to, _ := time.Parse(time.DateOnly, c.to)
		all = append(all, yearResets(zone, from, to))
	}
	return all
})

// Hours, days, weeks and months begin when the clocks of their zone say so, in leap years and when
// the clocks change.
func TestCalendarYears(t *testing.T) {
	for i, c := range yearCases {
		zone := modelZone(t, c.zone)
		for k, r := range wallResets {
			l, resets := r.limit(10, zone), years()[i][k]
			if err := l.Validate(); err != nil {
				t.Fatal(err)
			}
			check := func(now, start, end int64) {
				if gotStart, gotEnd := l.window(now); gotStart != start || gotEnd != end {
					t.Fatalf("%s in %s: at %v the window is from %v to %v; want from %v to %v", r.name, c.zone, calendarShow(now, zone),
						calendarShow(gotStart, zone), calendarShow(gotEnd, zone), calendarShow(start, zone), calendarShow(end, zone))
				}
			}
			if len(resets) < 5 {
				t.Fatalf("%s in %s: %d resets", r.name, c.zone, len(resets))
			}
			for j, start := range resets[:len(resets)-1] {
				end := resets[j+1]
				for _, now := range []int64{start, start + 1, start + (end-start)/3, end - int64(time.Hour)/2, end - 1} {
					check(max(now, start), start, end)
				}
			}
		}
	}
}

// The model's resets are those that people would name.
func TestCalendarMonths(t *testing.T) {
	berlin, lordHowe, saoPaulo := modelZone(t, "Europe/Berlin"), modelZone(t, "Australia/Lord_Howe"), modelZone(t, "America/Sao_Paulo")
	month, hour := PerMonth(10), PerHour(10)
	for _, test := range []struct {
		limit             Limit
		now, starts, ends string
	}{
		{month.ResetMonthly(15, 0, berlin), "2026-03-20T00:00:00Z", "2026-03-15T00:00:00+01:00", "2026-04-15T00:00:00+02:00"},
		{month.ResetMonthly(31, 0, berlin), "2028-02-10T00:00:00Z", "2028-01-31T00:00:00+01:00", "2028-02-29T00:00:00+01:00"},
		{month.ResetMonthly(31, 0, berlin), "2026-03-01T00:00:00Z", "2026-02-28T00:00:00+01:00", "2026-03-31T00:00:00+02:00"},
		{month.ResetMonthly(31, 0, berlin), "2026-04-30T12:00:00Z", "2026-04-30T00:00:00+02:00", "2026-05-31T00:00:00+02:00"},
		{month.ResetMonthly(29, 0, berlin), "2027-03-01T00:00:00Z", "2027-02-28T00:00:00+01:00", "2027-03-29T00:00:00+02:00"},
		{month.ResetMonthly(29, 150*time.Minute, berlin), "2026-03-29T12:00:00Z", "2026-03-29T03:00:00+02:00", "2026-04-29T02:30:00+02:00"}, // 02:30 is skipped
		{month.ResetMonthly(1, 0, nil), "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{month.ResetMonthly(18, 0, saoPaulo), "2015-10-18T12:00:00Z", "2015-10-18T01:00:00-02:00", "2015-11-18T00:00:00-02:00"}, // midnight is skipped
		{PerWeek(10).ResetWeekly(time.Monday, 0, berlin), "2026-03-29T12:00:00Z", "2026-03-23T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{PerWeek(10).ResetWeekly(time.Sunday, 150*time.Minute, berlin), "2026-10-25T01:15:00Z", "2026-10-25T02:30:00+02:00", "2026-11-01T02:30:00+01:00"}, // 02:30 comes twice
		{hour.ResetHourly(0, modelZone(t, "Asia/Kathmandu")), "2026-05-05T00:10:00Z", "2026-05-05T05:00:00+05:45", "2026-05-05T06:00:00+05:45"},
		{hour.ResetHourly(15*time.Minute, berlin), "2026-03-29T01:10:00Z", "2026-03-29T01:15:00+01:00", "2026-03-29T03:15:00+02:00"},   // 60 minutes
		{hour.ResetHourly(15*time.Minute, berlin), "2026-10-25T01:10:00Z", "2026-10-25T02:15:00+02:00", "2026-10-25T02:15:00+01:00"},   // 60 minutes
		{hour.ResetHourly(0, lordHowe), "2026-10-03T15:40:00Z", "2026-10-04T01:00:00+10:30", "2026-10-04T03:00:00+11:00"},              // 90 minutes
		{hour.ResetHourly(45*time.Minute, lordHowe), "2026-10-03T15:25:00Z", "2026-10-04T01:45:00+10:30", "2026-10-04T02:45:00+11:00"}, // 30 minutes
		{hour.ResetHourly(0, lordHowe), "2026-04-04T15:10:00Z", "2026-04-05T01:00:00+11:00", "2026-04-05T02:00:00+10:30"},              // 90 minutes
		{hour.ResetHourly(45*time.Minute, lordHowe), "2026-04-04T15:10:00Z", "2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"}, // 30 minutes
	} {
		start, end := test.limit.Window(calendarAround(t, test.now).UnixNano())
		wantStart, wantEnd := calendarAround(t, test.starts).UnixNano(), calendarAround(t, test.ends).UnixNano()
		if start != wantStart || end != wantEnd {
			zone := test.limit.zone
			t.Errorf("%v at %s: from %v to %v; want from %v to %v", test.limit, test.now, calendarShow(start, zone), calendarShow(end, zone), test.starts, test.ends)
		}
	}
}

// yearWalk draws a calendar's limit and a walk near one of its resets.
func yearWalk(t historyT, src historySource) (*historyWalk, []int64) {
	i, k := src.pick(len(yearCases)), src.pick(len(wallResets))
	zone, err := time.LoadLocation(yearCases[i].zone)
	if err != nil {
		t.Fatalf("%v", err)
	}
	resets := years()[i][k]
	w := newHistoryWalk(src, wallResets[k].limit(historyCount(src), zone), false)
	w.from, w.to = resets[0], resets[len(resets)-3]
	w.now = resets[int(historyNumber(src, int64(len(resets)-3)))]
	return w, resets
}

// propertyYears: windows of the calendar decide as a model does that lists everything that passed,
// also if the clock goes back.
func propertyYears(t historyT, src historySource) {
	w, resets := yearWalk(t, src)
	historyAgree(t, src, w, newModelWindow(w.limit, false, modelCalendar(resets)))
}

func TestCalendarYearsAgreeWithTheirDefinition(t *testing.T) { historyRapid(t, propertyYears) }

// propertyYearBound: all windows that the clock has been in admit at most the count each. A clock that
// goes back over the start of a window, and on again, grants nothing.
func propertyYearBound(t historyT, src historySource) {
	w, resets := yearWalk(t, src)
	w.limit = w.limit.WithCount(1 + int64(src.pick(1000)))
	window := modelCalendar(resets)
	seen := map[int64]bool{} // windows, by their starts
	var s state
	latest, passed := w.from, int64(0)
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		start, _ := window(now)
		seen[start] = true
		latest = max(latest, start)
		if latest > w.from { // the clock goes back into the window before at most
			w.from, _ = window(latest - 1)
		}
		var v Verdict
		if s, v = w.limit.take(s, now, n); v.Allowed && n > 0 {
			passed += n
		}
		if passed > int64(len(seen))*w.limit.Count() {
			t.Fatalf("%v: %d passed in %d windows", w.limit, passed, len(seen))
		}
		last = modelAnswerOf(v)
	}
}

func TestCalendarYearBound(t *testing.T) { historyRapid(t, propertyYearBound) }

// A clock that goes back over the start of a month, and on again, does not open the month twice,
// from whatever time before.
func TestCalendarClockGoesBack(t *testing.T) {
	for i, c := range yearCases {
		for k, r := range wallResets {
			l, resets := r.limit(10, modelZone(t, c.zone)), years()[i][k]
			for j := 1; j < len(resets)-2; j += 1 + len(resets)/40 {
				for _, back := range []int64{resets[j-1], resets[j-1] + 1, resets[j] - 1} {
					s, _ := l.take(state{}, resets[j], 10)
					for _, now := range []int64{back, resets[j], resets[j+1] - 1} {
						var v Verdict
						if s, v = l.take(s, now, 1); v.Allowed || v.Used != 10 {
							t.Fatalf("%v: after the clock went back to %d, %+v at %d", l, back, v, now)
						}
					}
					if _, v := l.take(s, resets[j+1], 10); !v.Allowed {
						t.Fatalf("%v: the next window does not begin: %+v", l, v)
					}
				}
			}
		}
	}
}

// A take is settled in the month that it was taken from, and its refund is no headroom in the next.
func TestCalendarMonthSettles(t *testing.T) {
	l := PerMonth(10).ResetMonthly(31, 0, modelZone(t, "Europe/Berlin"))
	before, after := calendarAround(t, "2028-02-28T23:00:00Z").UnixNano()-1, calendarAround(t, "2028-02-28T23:00:00Z").UnixNano()
	k := newHistorySettling(l)
	k.take(before, 10)
	if a := k.look(before, 1); a.allowed || a.retry != 1 {
		t.Errorf("a nanosecond before the month ends: %+v", a)
	}
	k.take(after, 6)
	k.settle(0, after+1, 0)
	if a := k.look(after+2, 0); a.remaining != 4 {
		t.Errorf("after a refund of what was taken in the month before: %+v", a)
	}
}

// A total does not reset. One that expires begins anew with the first request after that.
func TestTotal(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	if err := Total(5).Validate(); err != nil {
		t.Fatal(err)
	}
	s, _ := Total(5).take(state{}, now, 5)
	if _, v := Total(5).take(s, now+int64(50*365*day), 1); v.Allowed || v.Used != 5 {
		t.Errorf("50 years later: %+v", v)
	}
	run := New(5, day).Anchored()
	s, _ = run.take(state{}, now, 5)
	if _, v := run.take(s, now+int64(day)-1, 1); v.Allowed || v.RetryAfter != 1 {
		t.Errorf("a nanosecond before it expires: %+v", v)
	}
	if _, v := run.take(s, now+int64(day), 5); !v.Allowed {
		t.Errorf("after it has expired: %+v", v)
	}
}

func TestCalendar(t *testing.T) {
	berlin := modelZone(t, "Europe/Berlin")
	const at = 6*time.Hour + 30*time.Minute
	for _, test := range []struct {
		calendar               Calendar
		hour, day, week, month Limit
	}{
		{Calendar{}, PerHour(5).Using(SlidingLog), PerDay(5).Using(SlidingLog), PerWeek(5).Using(SlidingLog), PerMonth(5).Using(SlidingLog)},
		{Calendar{Zone: "UTC"}, PerHour(5).ResetHourly(0, nil), PerDay(5).ResetAt(0, nil), PerWeek(5).ResetWeekly(time.Monday, 0, nil), PerMonth(5).ResetMonthly(1, 0, nil)},
		{Calendar{Month: 1}, PerHour(5).ResetHourly(0, nil), PerDay(5).ResetAt(0, nil), PerWeek(5).ResetWeekly(time.Monday, 0, nil), PerMonth(5).ResetMonthly(1, 0, nil)},
		{Calendar{31, "sunday", "06:30", "Europe/Berlin"}, PerHour(5).ResetHourly(30*time.Minute, berlin), PerDay(5).ResetAt(at, berlin),
			PerWeek(5).ResetWeekly(time.Sunday, at, berlin), PerMonth(5).ResetMonthly(31, at, berlin)},
	} {
		if err := test.calendar.Validate(); err != nil {
			t.Errorf("%+v: %v", test.calendar, err)
		}
		c := test.calendar
		got, want := []Limit{c.PerHour(5), c.PerDay(5), c.PerWeek(5), c.PerMonth(5)}, []Limit{test.hour, test.day, test.week, test.month}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %v; want %v", c, got, want)
		}
		text, err := json.Marshal(c)
		var read Calendar
		if err := json.Unmarshal(text, &read); err != nil || read != c {
			t.Errorf("%s was read as %+v: %v", text, read, err)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		calendar Calendar
		want     string
	}{
		{Calendar{Month: -1}, "from 1 to 31"},
		{Calendar{Month: 32}, "from 1 to 31"},
		{Calendar{Week: "Monday"}, "monday to sunday"},
		{Calendar{At: "24:00"}, "from 00:00 to 23:59"},
		{Calendar{At: "7:00"}, "from 00:00 to 23:59"},
		{Calendar{Zone: "Local"}, "time zone database"},
		{Calendar{Zone: "Nowhere/Atoll"}, "time zone database"},
	} {
		err := test.calendar.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v; want %q", test.calendar, err, test.want)
		}
		if l := test.calendar.PerMonth(5); l.Validate() == nil {
			t.Errorf("%+v makes %v", test.calendar, l)
		}
	}
}

// On the last day of a leap year after 2037, package time says that the zone's clocks have changed at its beginning. An
// hour of such a day has an end all the same. Once, it was looked for without end.
func TestHoursOfTheLastDayOfALeapYear(t *testing.T) {
	l := PerHour(1).ResetHourly(59, losAngeles)
	for now := time.Date(2064, 12, 30, 22, 0, 0, 0, time.UTC); now.Year() < 2065; now = now.Add(17 * time.Minute) {
		start, end := l.Window(now.UnixNano())
		if start > now.UnixNano() || end <= now.UnixNano() || end-start != int64(time.Hour) || time.Unix(0, end).In(losAngeles).Minute() != 59 {
			t.Errorf("%v: from %v to %v", now, time.Unix(0, start).UTC(), time.Unix(0, end).UTC())
		}
	}
}
