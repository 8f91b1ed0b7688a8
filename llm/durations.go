package llm

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mostCount = 1 << 53 // a larger number is no limit of anybody's

	// A wait of three years makes no sense in seconds, so that it is a time:
	// seconds since 1970, or milliseconds.
	leastEpoch      = 100_000_000
	leastEpochMilli = 100_000_000_000
)

// strictestCount returns the smallest whole number of a header, which may come
// more than once, or -1. What is no number from least to mostCount is passed over.
func strictestCount(values []string, least int64) int64 {
	count := int64(-1)
	for _, v := range values {
		n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
		if err != nil || n > mostCount || int64(n) < least {
			continue
		}
		if count < 0 || int64(n) < count {
			count = int64(n)
		}
	}
	return count
}

// longestWait returns the longest wait of a header, which may come more than once,
// or 0.
func longestWait(values []string, now time.Time) time.Duration {
	var wait time.Duration
	for _, v := range values {
		wait = max(wait, parseWait(v, now))
	}
	return wait
}

// parseWait reads how long to wait, in any form that providers write it in: seconds
// (20, 0.5), a span (6m0s, 12ms, 1d2h), a time (RFC 3339, HTTP's, or since 1970). It
// returns 0 for what is none of them or over, and a day at most.
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

// parseMilli reads a number of milliseconds. It returns 0 for what is none, and a day
// at most.
func parseMilli(s string) time.Duration {
	s = strings.TrimSpace(s)
	if !isPlain(s) {
		return 0
	}
	return parseSpan(s + "ms")
}

// isPlain reports whether s is digits and points alone.
func isPlain(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return s != ""
}

// parsePlain reads seconds from now, or a time since 1970.
func parsePlain(s string, now time.Time) time.Duration {
	whole, _, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil || n < leastEpoch:
		return parseSpan(s + "s")
	case n > mostCount:
		return 0
	case n < leastEpochMilli:
		return waitUntil(time.Unix(n, 0), now)
	}
	return waitUntil(time.UnixMilli(n), now)
}

// parseSpan reads a duration as Go writes it, with days before it or not.
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
	return min(min(d, Day)+time.Duration(days)*Day, Day)
}

// waitUntil returns how long it is from now to t: from 0 to a day.
func waitUntil(t, now time.Time) time.Duration {
	return min(max(t.Sub(now), 0), Day)
}

// spans are the words for a unit in the text of an error, by how they begin.
var spans = []struct{ word, unit string }{
	{"ms", "ms"}, {"milli", "ms"}, {"s", "s"}, {"min", "m"}, {"h", "h"}, {"day", "d"},
}

// waitIn returns the wait that a text in small letters speaks of, such as "please try
// again in 7m12s", or 0.
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

// leadingWait reads the span that a text begins with: 7m12s, or 45 seconds.
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
		return parseSpan(number + "s") // it ends with the sentence
	}
	for _, s := range spans {
		if strings.HasPrefix(words[1], s.word) {
			return parseSpan(number + s.unit)
		}
	}
	return 0
}

// pacific is where Google's days begin.
var pacific = sync.OnceValue(func() *time.Location { return zoneOr("America/Los_Angeles", -8*time.Hour) })

// zoneOr returns a zone by its name, or one with a fixed offset on a machine that has
// no database of zones.
func zoneOr(name string, offset time.Duration) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.FixedZone(name, int(offset/time.Second))
	}
	return zone
}

// untilMidnight returns how long it is until the next day of a zone.
func untilMidnight(now time.Time, zone *time.Location) time.Duration {
	year, month, day := now.In(zone).Date()
	return waitUntil(time.Date(year, month, day+1, 0, 0, 0, 0, zone), now)
}
