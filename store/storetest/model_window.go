package storetest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// windowing is how windows follow each other.
type windowing struct {
	of       func(now int64) (start, end int64) // the window of a time
	anchored bool                               // the window begins at that time
}

// alignedTo returns windows that are counted from 1970.
func alignedTo(period time.Duration) windowing {
	return windowing{of: func(now int64) (start, end int64) {
		p := int64(period)
		start = now - (now%p+p)%p
		return start, start + p
	}}
}

// anchoredFor returns windows that begin when they are asked for.
func anchoredFor(period time.Duration) windowing {
	return windowing{anchored: true, of: func(now int64) (start, end int64) { return now, now + int64(period) }}
}

// datesOf returns windows that begin on some dates, when the clocks of a zone first show a time of day,
// or a later one where they skip it. A date is midnight UTC of it, whatever the zone.
func datesOf(begins func(date time.Time) bool, timeOfDay time.Duration, zone *time.Location) windowing {
	var mu sync.Mutex
	known := map[time.Time]int64{}
	start := func(date time.Time) int64 {
		mu.Lock()
		defer mu.Unlock()
		if at, ok := known[date]; ok {
			return at
		}
		shown := date.Add(timeOfDay)
		t := shown.Add(-26 * time.Hour)
		for shownAt(t, zone).Before(shown) {
			t = t.Add(time.Minute)
		}
		known[date] = t.UnixNano()
		return known[date]
	}
	return windowing{of: func(now int64) (from, to int64) {
		date := time.Unix(0, now).UTC().Truncate(24*time.Hour).AddDate(0, 0, -34)
		for ; ; date = date.AddDate(0, 0, 1) {
			if !begins(date) {
				continue
			}
			if to = start(date); to > now {
				return from, to
			}
			from = to
		}
	}}
}

// hoursOf returns hours that begin whenever the clocks of a zone show a minute.
func hoursOf(minute int, zone *time.Location) windowing {
	begins := func(t time.Time) bool { return shownAt(t, zone).Minute() == minute }
	return windowing{of: func(now int64) (from, to int64) {
		start := time.Unix(0, now).UTC().Truncate(time.Minute)
		end := start.Add(time.Minute)
		for !begins(start) {
			start = start.Add(-time.Minute)
		}
		for !begins(end) {
			end = end.Add(time.Minute)
		}
		return start.UnixNano(), end.UnixNano()
	}}
}

// shownAt returns what the clocks of a zone show at t, as a time in UTC.
func shownAt(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// windowCounter models the fixed window: takes of the last window.
type windowCounter struct {
	limit      limit.Limit
	windows    windowing
	start, end int64 // of the window of the last take
	passed     []passed
}

func newWindowCounter(l limit.Limit, w windowing) *windowCounter {
	return &windowCounter{limit: l, windows: w, start: math.MinInt64, end: math.MinInt64}
}

// rewind lets the last window begin now. It lasts until the end of the window after that of now, so
// that no window begins twice; but not longer than it would have. An anchored window lasts for a
// period at most. If nothing was used, the window is that of now.
func (c *windowCounter) rewind(now int64) {
	if now >= c.start {
		return
	}
	if total(c.passed) == 0 {
		c.start, c.end = c.windows.of(now)
		return
	}
	_, end := c.windows.of(now)
	if !c.windows.anchored {
		_, end = c.windows.of(end)
	}
	c.start, c.end = now, min(c.end, end)
}

func (c *windowCounter) expire(int64) {}

func (c *windowCounter) setLimit(l limit.Limit, _ int64) { c.limit = l }

// at returns the window of now, and what was used in it.
func (c *windowCounter) at(now int64) (start, end, used int64) {
	if now < c.end {
		return c.start, c.end, total(c.passed)
	}
	start, end = c.windows.of(now)
	return start, end, 0
}

func (c *windowCounter) check(now, n int64) answer {
	start, end, used := c.at(now)
	a := answer{}
	switch {
	case never(c.limit, n):
		a.retry = limit.Never
	case n <= c.limit.Count()-used:
		a.allowed = true
		used += n
	default:
		a.retry = time.Duration(end - now)
	}
	a.used, a.remaining = used, max(c.limit.Count()-used, 0)
	if used > 0 {
		a.reset, a.since = time.Duration(end-now), start
	}
	return a
}

func (c *windowCounter) take(now int64, id int, n int64) takeRecord {
	if n > 0 {
		if now >= c.end {
			c.passed = nil
			c.start, c.end = c.windows.of(now)
		}
		c.passed = append(slices.Clip(c.passed), passed{id, now, n})
	}
	return takeRecord{id: id, at: now, n: n}
}

// settle corrects the take in the list, and so only in its own window. An anchored window whose
// takes were all given back has not begun.
func (c *windowCounter) settle(_ int64, r takeRecord, actual int64) {
	correct(c.passed, r.id, actual)
	if c.windows.anchored && total(c.passed) == 0 {
		*c = *newWindowCounter(c.limit, c.windows)
	}
}

func (c *windowCounter) clone() counter {
	copied := *c
	copied.passed = slices.Clone(c.passed)
	return &copied
}

func (c *windowCounter) String() string {
	return fmt.Sprintf("%v: %v in the window from %d to %d", c.limit, c.passed, c.start, c.end)
}
