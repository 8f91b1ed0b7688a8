package dialect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

const (
	maxCount = 1 << 53 // no provider has a larger limit

	// A number of seconds as large as this, three years, is no wait but a point in time: in
	// seconds since 1970, or in milliseconds.
	minEpoch      = 100_000_000
	minEpochMilli = 100_000_000_000
)

// strictestCount returns the smallest whole number among the values of a header, or -1. It ignores
// values that are no number from least to maxCount.
func strictestCount(values []string, least int64) int64 {
	count := int64(-1)
	for _, v := range values {
		n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
		if err != nil || n > maxCount || int64(n) < least {
			continue
		}
		if count < 0 || int64(n) < count {
			count = int64(n)
		}
	}
	return count
}

// longestWait returns the longest wait among the values of a header, or 0.
func longestWait(values []string, now time.Time) time.Duration {
	var wait time.Duration
	for _, v := range values {
		wait = max(wait, parseWait(v, now))
	}
	return wait
}

// parseWait reads a wait in any of the forms that providers use: seconds (20, 0.5), a duration
// (6m0s, 12ms, 1d2h), or a point in time (RFC 3339, HTTP's format, or since 1970). The result is
// from 0, for a time in the past or nonsense, to a day.
func parseWait(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if isPlain(s) {
		return parsePlain(s, now)
	}
	if !strings.Contains(s, ":") {
		return parseSpan(s)
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return waitUntil(t, now)
	}
	if t, err := http.ParseTime(s); err == nil {
		return waitUntil(t, now)
	}
	return 0
}

// parseMilli reads a number of milliseconds. The result is from 0, for nonsense, to a day.
func parseMilli(s string) time.Duration {
	s = strings.TrimSpace(s)
	if !isPlain(s) {
		return 0
	}
	return parseSpan(s + "ms")
}

// isPlain reports whether s has only digits and points.
func isPlain(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return s != ""
}

// parsePlain reads a number: seconds from now, or a point in time since 1970.
func parsePlain(s string, now time.Time) time.Duration {
	whole, _, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil || n < minEpoch:
		return parseSpan(s + "s")
	case n > maxCount:
		return 0
	case n < minEpochMilli:
		return waitUntil(time.Unix(n, 0), now)
	}
	return waitUntil(time.UnixMilli(n), now)
}

// parseSpan reads a duration as Go writes it, after an optional number of days.
func parseSpan(s string) time.Duration {
	var days int
	if number, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return 0
		}
		if days, s = int(min(n, 1)), rest; s == "" {
			s = "0"
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0
	}
	return min(min(d, llm.Day)+time.Duration(days)*llm.Day, llm.Day)
}

// waitUntil returns the time from now to t, from 0 to a day.
func waitUntil(t, now time.Time) time.Duration {
	return min(max(t.Sub(now), 0), llm.Day)
}

// unitWords maps the first letters of words for units, in error messages, to units.
var unitWords = []struct{ word, unit string }{
	{"ms", "ms"}, {"milli", "ms"}, {"s", "s"}, {"min", "m"}, {"h", "h"}, {"day", "d"},
}

// waitIn returns the wait that a text in lower case asks for, as in "please try again in 7m12s", or
// 0.
func waitIn(text string) time.Duration {
	for _, phrase := range []string{"try again in ", "retry in ", "retry after "} {
		for _, after, ok := strings.Cut(text, phrase); ok; _, after, ok = strings.Cut(after, phrase) {
			if d := leadingWait(after[:min(len(after), 64)]); d > 0 {
				return d
			}
		}
	}
	return 0
}

// leadingWait reads the duration at the start of a text: 7m12s, or 45 seconds.
func leadingWait(text string) time.Duration {
	words := strings.Fields(text)
	if len(words) == 0 {
		return 0
	}
	number := strings.TrimRight(words[0], ".,;:!)'\"")
	if !isPlain(number) {
		return parseSpan(number)
	}
	if len(words) == 1 || number != words[0] {
		return parseSpan(number + "s") // the number without a unit ends the sentence
	}
	for _, s := range unitWords {
		if strings.HasPrefix(words[1], s.word) {
			return parseSpan(number + s.unit)
		}
	}
	return 0
}

// zoneOr returns a time zone, or a fixed offset on a machine without a database of zones.
func zoneOr(name string, offset time.Duration) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.FixedZone(name, int(offset/time.Second))
	}
	return zone
}

// untilMidnight returns the time to the next day in a zone.
func untilMidnight(now time.Time, zone *time.Location) time.Duration {
	year, month, day := now.In(zone).Date()
	return waitUntil(time.Date(year, month, day+1, 0, 0, 0, 0, zone), now)
}
