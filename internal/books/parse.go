package books

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrTooMany is the error of a query whose answer has too many rows.
var ErrTooMany = errors.New("ratelimit: the usage has too many rows")

// ParseTime reads a time: a date in UTC, a time with its zone, or how long ago it was.
func ParseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	if ago, ok := parseSpan(text); ok {
		return now.Add(-ago).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("ratelimit: %.40q is no time: it must be a date such as 2026-11-01, a time such as 2026-11-01T15:00:00Z, or how long ago it was, such as 24h or 7d", text)
}

// parseSpan reads a duration, as [time.ParseDuration] does, or in days.
func parseSpan(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16) // more days would overflow the nanoseconds
		return time.Duration(n) * Day * time.Second, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// ParseBy reads dimensions that are separated by commas. They are not validated.
func ParseBy(text string) (by []Dimension) {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name != "" {
			by = append(by, Dimension(name))
		}
	}
	return by
}
