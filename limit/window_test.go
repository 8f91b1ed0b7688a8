package limit

import (
	"fmt"
	"math"
	"sort"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // the zones' changes are part of these tests
)

// propertyWindows: fixed windows, aligned and anchored, decide as a model does that
// lists everything that passed.
func propertyWindows(t historyT, src historySource) {
	l := historyLimit(src, FixedWindow)
	if src.pick(2) == 0 {
		historyAgree(t, src, newHistoryWalk(src, l, false), newModelWindow(l, false, modelAligned(l.Period())))
		return
	}
	l = l.Anchored()
	w := newHistoryWalk(src, l, false)
	w.from = 0
	historyAgree(t, src, w, newModelWindow(l, true, modelFrom(l.Period())))
}

func TestWindowsAgreeWithTheirDefinition(t *testing.T) { historyRapid(t, propertyWindows) }

// calendarCases are days around which clocks change.
var calendarCases = []struct {
	zone   string
	around string // in UTC
}{
	{"UTC", "2026-02-28T12:00:00Z"},
	{"Asia/Kathmandu", "2028-02-29T12:00:00Z"},      // a quarter of an hour off
	{"America/Los_Angeles", "2026-03-08T10:00:00Z"}, // 02:00 becomes 03:00
	{"America/Los_Angeles", "2026-11-01T09:00:00Z"}, // 02:00 becomes 01:00
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, // 02:00 becomes 01:30
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"}, // 02:00 becomes 02:30
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},    // 01:00 becomes 03:00
	{"Antarctica/Troll", "2026-10-25T01:00:00Z"},    // 03:00 becomes 01:00
	{"Asia/Beirut", "2026-03-28T22:00:00Z"},         // midnight becomes 01:00
	{"Asia/Beirut", "2026-10-24T21:00:00Z"},         // midnight becomes 23:00
	{"America/Nuuk", "2026-10-25T01:00:00Z"},        // midnight becomes 23:00
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},        // the 29th becomes the 31st
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},   // the 20th becomes the 22nd
	{"America/St_Johns", "2010-11-07T02:31:00Z"},    // 00:01 becomes 23:01 of the day before
	{"America/St_Johns", "2010-03-14T03:31:00Z"},    // 00:01 becomes 01:01
}

// calendarMinutes are times of day at which windows begin, in minutes.
var calendarMinutes = []int{0, 1, 30, 90, 120, 135, 150, 8 * 60, 23 * 60, 23*60 + 30, 24*60 - 1}

const calendarSpan = 6 * 24 * time.Hour // to either side

var modelResetsKnown sync.Map

// modelResets reads the clocks of a zone minute by minute, and returns for each date
// when they first showed a time of day, or a later one.
func modelResets(zone *time.Location, minute int, around time.Time) []int64 {
	key := fmt.Sprint(zone, minute, around)
	if known, ok := modelResetsKnown.Load(key); ok {
		return known.([]int64)
	}
	var resets []int64
	latest := 0 // that clocks have shown, in minutes
	from := around.Add(-calendarSpan).Truncate(time.Minute)
	for t := from; t.Before(around.Add(calendarSpan)); t = t.Add(time.Minute) {
		_, offset := t.In(zone).Zone()
		shown := (int(t.Unix()) + offset) / 60
		if t.Equal(from) {
			latest = shown
		}
		// Since the last minute the clocks have gone on. If days began at the time of
		// the reset, as many resets were passed as days have begun.
		const aDay = 24 * 60
		if shown > latest && (shown-minute)/aDay > (latest-minute)/aDay {
			resets = append(resets, t.UnixNano())
		}
		latest = max(latest, shown)
	}
	modelResetsKnown.Store(key, resets)
	return resets
}

// modelCalendar returns the windows between resets.
func modelCalendar(resets []int64) func(now int64) (start, end int64) {
	return func(now int64) (start, end int64) {
		i := sort.Search(len(resets), func(i int) bool { return resets[i] > now })
		return resets[i-1], resets[i]
	}
}

func calendarAround(t testing.TB, text string) time.Time {
	t.Helper()
	around, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return around
}

// Calendar windows begin when the clocks of the zone show the time of day.
func TestCalendarWindows(t *testing.T) {
	for _, c := range calendarCases {
		zone, around := modelZone(t, c.zone), calendarAround(t, c.around)
		for _, minute := range calendarMinutes {
			l := PerDay(10).ResetAt(time.Duration(minute)*time.Minute, zone)
			t.Run(fmt.Sprintf("%s %s at %02d:%02d", c.zone, c.around[:10], minute/60, minute%60), func(t *testing.T) {
				resets := modelResets(zone, minute, around)
				window := modelCalendar(resets)
				var times []int64
				for _, reset := range resets[2 : len(resets)-2] {
					times = append(times, reset-1, reset, reset+1)
				}
				for now := resets[2]; now < resets[len(resets)-2]; now += int64(17*time.Minute + 1) {
					times = append(times, now)
				}
				for _, now := range times {
					start, end := l.window(now)
					if wantStart, wantEnd := window(now); start != wantStart || end != wantEnd {
						t.Fatalf("at %v the window is from %v to %v; want from %v to %v", calendarShow(now, zone),
							calendarShow(start, zone), calendarShow(end, zone), calendarShow(wantStart, zone), calendarShow(wantEnd, zone))
					}
				}
			})
		}
	}
}

func calendarShow(t int64, zone *time.Location) string {
	return time.Unix(0, t).In(zone).Format("2006-01-02 15:04:05.999999999 -0700")
}

// The model's resets are those that people in the zone would name.
func TestCalendarResets(t *testing.T) {
	for _, test := range []struct {
		zone   string
		at     time.Duration
		now    string // some time in the window
		starts string
		ends   string
	}{
		{"America/Los_Angeles", 0, "2026-03-08T20:00:00Z", "2026-03-08T00:00:00-08:00", "2026-03-09T00:00:00-07:00"},                       // 23 hours
		{"America/Los_Angeles", 0, "2026-11-01T20:00:00Z", "2026-11-01T00:00:00-07:00", "2026-11-02T00:00:00-08:00"},                       // 25 hours
		{"America/Los_Angeles", 150 * time.Minute, "2026-03-08T20:00:00Z", "2026-03-08T03:00:00-07:00", "2026-03-09T02:30:00-07:00"},       // 02:30 is skipped
		{"America/Los_Angeles", 90 * time.Minute, "2026-11-01T09:15:00Z", "2026-11-01T01:30:00-07:00", "2026-11-02T01:30:00-08:00"},        // 01:30 comes twice
		{"Europe/Berlin", 150 * time.Minute, "2026-03-29T12:00:00Z", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},             // 02:30 is skipped
		{"Europe/Berlin", 150 * time.Minute, "2026-10-25T12:00:00Z", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},             // 02:30 comes twice
		{"Australia/Lord_Howe", 135 * time.Minute, "2026-10-04T00:00:00Z", "2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},       // 02:15 is skipped
		{"Pacific/Apia", 0, "2011-12-30T00:00:00Z", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},                              // a date is skipped
		{"Pacific/Apia", 8 * time.Hour, "2011-12-30T12:00:00Z", "2011-12-31T00:00:00+14:00", "2011-12-31T08:00:00+14:00"},                  // 08:00 of a date is
		{"Asia/Beirut", 0, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"},                               // midnight is skipped
		{"America/St_Johns", 0, "2010-11-07T02:35:00Z", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30"},                          // midnight comes twice
		{"Asia/Kathmandu", 6*time.Hour + 30*time.Minute, "2026-05-05T00:44:59Z", "2026-05-04T06:30:00+05:45", "2026-05-05T06:30:00+05:45"}, // by a quarter of an hour
	} {
		zone := modelZone(t, test.zone)
		l := PerDay(10).ResetAt(test.at, zone)
		start, end := l.window(calendarAround(t, test.now).UnixNano())
		wantStart, wantEnd := calendarAround(t, test.starts).UnixNano(), calendarAround(t, test.ends).UnixNano()
		if start != wantStart || end != wantEnd {
			t.Errorf("%v at %s: from %v to %v; want from %v to %v", l, test.now, calendarShow(start, zone), calendarShow(end, zone), test.starts, test.ends)
		}
	}
}

// propertyCalendar: calendar windows decide as a model does that lists everything that
// passed, while clocks change.
func propertyCalendar(t historyT, src historySource) {
	c := calendarCases[src.pick(len(calendarCases))]
	minute := calendarMinutes[src.pick(len(calendarMinutes))]
	zone, err := time.LoadLocation(c.zone)
	if err != nil {
		t.Fatalf("%v", err)
	}
	around, err := time.Parse(time.RFC3339, c.around)
	if err != nil {
		t.Fatalf("%v", err)
	}
	resets := modelResets(zone, minute, around)
	l := PerDay(historyCount(src)).ResetAt(time.Duration(minute)*time.Minute, zone)
	w := newHistoryWalk(src, l, false)
	w.now, w.from, w.to = around.UnixNano(), resets[2], resets[len(resets)-2]
	historyAgree(t, src, w, newModelWindow(l, false, modelCalendar(resets)))
}

func TestCalendarAgreesWithItsDefinition(t *testing.T) { historyRapid(t, propertyCalendar) }

// propertyWindowBound: no window, aligned or anchored, admits more than count.
func propertyWindowBound(t historyT, src historySource) {
	l := historyLimit(src, FixedWindow)
	bounds := modelAligned(l.Period())
	if src.pick(2) == 1 {
		l = l.Anchored()
	}
	w := newHistoryWalk(src, l, true)
	w.from = 0
	var s state
	passed := historyAdmissions(src, w, func(now, n int64) modelAnswer {
		var v Verdict
		s, v = l.take(s, now, n)
		return modelAnswerOf(v)
	})
	start, end, sum := int64(0), int64(-1<<62), int64(0)
	for _, p := range passed {
		if p.at >= end {
			start, end, sum = p.at, p.at+int64(l.Period()), 0
			if l.windowing == aligned {
				start, end = bounds(p.at)
			}
		}
		sum += p.n
		if sum > l.Count() {
			t.Fatalf("%v: %d passed from %d to %d", l, sum, start, end)
		}
	}
}

func TestWindowBound(t *testing.T) { historyRapid(t, propertyWindowBound) }

// propertyWindowSettle: a window that was settled decides as if the corrected
// amounts had been taken.
func propertyWindowSettle(t historyT, src historySource) { windowSettle(t, src, 1) }

func windowSettle(t historyT, src historySource, least int64) {
	l := historySettleLimit(src, FixedWindow)
	historySettlesExactly(t, src, l, least, func(takes []modelPassed) model {
		m := newModelWindow(l, false, modelAligned(l.Period()))
		m.passed = takes
		return m
	})
}

func TestWindowSettlesAsTheReplay(t *testing.T) { historyRapid(t, propertyWindowSettle) }

// A take of zero begins no window. What was used in the end still counts in the window
// of the time of the take.
func TestWindowSettlesWhatWasTakenForNothing(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) { windowSettle(t, src, 0) })
}

// propertyAnchoredSettle: the same holds for an anchored window. It keeps its start even
// if the take that began it was cancelled.
func propertyAnchoredSettle(t historyT, src historySource) {
	l := historySettleLimit(src, FixedWindow).Anchored()
	historySettlesExactly(t, src, l, 1, func(takes []modelPassed) model {
		m := newModelWindow(l, true, modelFrom(l.Period()))
		m.passed = takes
		for _, p := range takes {
			if p.at >= m.end {
				m.start, m.end = m.bounds(p.at)
			}
		}
		return m
	})
}

func TestAnchoredWindowSettlesAsTheReplay(t *testing.T) { historyRapid(t, propertyAnchoredSettle) }

// A calendar window is settled in the day that it was taken from.
func TestCalendarSettles(t *testing.T) {
	l := PerDay(10).ResetAt(0, modelZone(t, "America/Los_Angeles"))
	evening := calendarAround(t, "2026-03-08T23:00:00-07:00").UnixNano()
	morning := calendarAround(t, "2026-03-09T01:00:00-07:00").UnixNano()
	k := newHistorySettling(l)
	k.take(evening, 4)
	k.take(evening+1, 4)
	k.settle(0, evening+2, 1)
	if a := k.look(evening+3, 0); a.remaining != 5 {
		t.Errorf("after a refund of 3 of 8 on the same day: %+v", a)
	}
	k.take(morning, 6)
	k.settle(0, morning+1, 9)
	if a := k.look(morning+2, 0); a.remaining != 4 {
		t.Errorf("what was used of yesterday's was charged today: %+v", a)
	}
}

// Debts add up, to at most the largest number.
func TestDebtsDoNotOverflow(t *testing.T) {
	for a := range algorithms {
		for _, l := range []Limit{PerSecond(3).Using(a), New(1<<62, 1).Using(a), New(1<<62, modelYear).Using(a), New(1, maxPeriod).Using(a)} {
			k := newHistorySettling(l)
			const now = 1_700_000_000_000_000_000
			k.take(now, 1)
			for range 3 {
				k.take(now, 0)
			}
			for len(k.open) > 0 {
				k.settle(0, now, math.MaxInt64)
				if a := k.look(now, 1); a.allowed || a.remaining != 0 || a.retry <= 0 || a.reset <= 0 {
					t.Fatalf("%v owes all there is: %+v", l, a)
				}
			}
		}
	}
}
