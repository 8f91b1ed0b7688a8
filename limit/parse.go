package limit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

var units = []struct {
	name   string
	period time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"day", day}, {"week", week}, {"month", month}}

const grammar = `want COUNT/PERIOD [gcra|token|leaky|fixed|log|counter] [burst N], or COUNT/PERIOD fixed anchored, or COUNT/PERIOD fixed [on DAY] at HH:MM ZONE; PERIOD is s, min, h, day, week, month (30 days) or a duration such as 1m30s`

// Parse reads a limit as [Limit.String] writes it:
//
//	100/min
//	10/s burst 20
//	60/1m30s log
//	1000/day fixed
//	1000/day fixed anchored
//	1000/day fixed at 00:00 America/Los_Angeles
//	1000/h fixed at 00:15 Europe/Berlin
//	1000/week fixed on monday at 00:00 Europe/Berlin
//	1000/month fixed on 15 at 00:00 Europe/Berlin
//
// A month is 30 days, unless it begins on a day of the calendar. An hour that resets has
// only minutes in its time.
// The parts after the period may be in any order. An error says what is wrong
// and what is allowed.
func Parse(s string) (Limit, error) {
	l, err := parse(strings.Fields(s))
	if err != nil {
		return Limit{}, fmt.Errorf("ratelimit: limit %q: %w", s, err)
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("ratelimit: limit %q: %s", s, strings.TrimPrefix(err.Error(), "ratelimit: "))
	}
	return l, nil
}

// parse reads the words of a limit. The limit may not be valid.
func parse(words []string) (Limit, error) {
	if len(words) == 0 {
		return Limit{}, errors.New(grammar)
	}
	l, err := parseRate(words[0])
	if err != nil {
		return Limit{}, err
	}
	seen := map[string]bool{}
	for words = words[1:]; len(words) > 0; {
		word := words[0]
		words = words[1:]
		kind, used := word, 0
		switch algorithm := slices.Index(algorithmNames[:], word); {
		case algorithm >= 0:
			kind = "algorithm"
			l.algorithm = Algorithm(algorithm)
		case word == "burst":
			used, err = l.parseBurst(words)
		case word == "anchored" || word == "at":
			kind = "window"
			used, err = l.parseWindow(word, words)
		case word == "on":
			used, err = l.parseDay(words)
		default:
			err = fmt.Errorf("unknown word %q: %s", word, grammar)
		}
		if err != nil {
			return Limit{}, err
		}
		if seen[kind] {
			return Limit{}, fmt.Errorf("a second %s, %q: %s", kind, word, grammar)
		}
		seen[kind] = true
		words = words[used:]
	}
	switch named := l.windowing == calendar && (l.period == week || l.period == month); {
	case l.windowing != aligned && l.algorithm != FixedWindow:
		return Limit{}, fmt.Errorf("only fixed windows can be anchored or reset at a time: %s", grammar)
	case named && !seen["on"]:
		return Limit{}, fmt.Errorf("no day on which the %s begins: %s", l.unit(), grammar)
	case !named && seen["on"]:
		return Limit{}, fmt.Errorf("only a week or a month that resets at a time begins on a day: %s", grammar)
	}
	return l, nil
}

func parseRate(word string) (Limit, error) {
	digits, unit, ok := strings.Cut(word, "/")
	if !ok {
		return Limit{}, fmt.Errorf("no / between count and period in %q: %s", word, grammar)
	}
	count, err := parseCount(digits)
	if err != nil {
		return Limit{}, fmt.Errorf("count %w", err)
	}
	for _, u := range units {
		if u.name == unit {
			return New(count, u.period), nil
		}
	}
	period, err := time.ParseDuration(unit)
	if err != nil {
		return Limit{}, fmt.Errorf("unknown period %q: it must be s, min, h, day, week, month or a duration such as 1m30s", unit)
	}
	return New(count, period), nil
}

func parseCount(digits string) (int64, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] == '+' || n < 1 || n > maxCount {
		return 0, fmt.Errorf("%q: it must be a whole number from 1 to 2^62", digits)
	}
	return n, nil
}

// parseBurst reads what comes after the word burst. It returns the number of words that
// it has read.
func (l *Limit) parseBurst(rest []string) (used int, err error) {
	if len(rest) == 0 {
		return 0, fmt.Errorf("burst without a number: %s", grammar)
	}
	l.burst, err = parseCount(rest[0])
	if err != nil {
		return 0, fmt.Errorf("burst %w", err)
	}
	return 1, nil
}

// parseWindow reads what comes after the word anchored or at. It returns the number of
// words that it has read.
func (l *Limit) parseWindow(word string, rest []string) (used int, err error) {
	if word == "anchored" {
		l.windowing = anchored
		return 0, nil
	}
	if len(rest) < 2 {
		return 0, fmt.Errorf("at without a time of day and a zone: %s", grammar)
	}
	at, err := time.Parse("15:04", rest[0])
	if err != nil {
		return 0, fmt.Errorf("time of day %q: it must be from 00:00 to 23:59", rest[0])
	}
	zone, err := zoneNamed(rest[1])
	if err != nil {
		return 0, fmt.Errorf("zone %q: it must be a name in the time zone database, such as America/Los_Angeles", rest[1])
	}
	minute := int32(at.Hour()*60 + at.Minute())
	switch {
	case daysOf(l.period) == 0:
		return 0, fmt.Errorf("a reset of %v: only an hour, a day, a week or a month can reset at a time", l.period)
	case l.period == time.Hour && minute >= 60:
		return 0, fmt.Errorf("time %q of an hour: it must be from 00:00 to 00:59", rest[0])
	}
	l.windowing, l.minute, l.zone = calendar, l.minute+minute, zone
	return 2, nil
}

// parseDay reads what comes after the word on, and adds its minutes to those of the time of
// day. It returns the number of words that it has read.
func (l *Limit) parseDay(rest []string) (used int, err error) {
	if len(rest) == 0 {
		return 0, fmt.Errorf("on without a day: %s", grammar)
	}
	days := slices.Index(weekdays[:], rest[0])
	if l.period != week {
		on, err := parseCount(rest[0])
		if err != nil || on > 31 {
			return 0, fmt.Errorf("day %q of a month: it must be from 1 to 31", rest[0])
		}
		days = int(on) - 1
	}
	if days < 0 {
		return 0, fmt.Errorf("day %q of a week: it must be one from monday to sunday", rest[0])
	}
	l.minute += int32(days) * minutesOfDay
	return 1, nil
}

// weekdays are the names of days by [time.Weekday].
var weekdays = [...]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// String returns the limit in the form that [Parse] reads.
func (l Limit) String() string {
	b := strconv.AppendInt(nil, l.count, 10)
	b = append(b, '/')
	b = append(b, l.unit()...)
	if l.algorithm != GCRA {
		b = append(b, ' ')
		b = append(b, l.algorithm.String()...)
	}
	if l.burst != l.count {
		b = append(b, " burst "...)
		b = strconv.AppendInt(b, l.burst, 10)
	}
	switch l.windowing {
	case anchored:
		b = append(b, " anchored"...)
	case calendar:
		b = fmt.Appendf(b, "%s %v", l.resetTime(), l.zone)
	}
	return string(b)
}

func (l Limit) resetTime() string {
	if l.minute < 0 {
		return " at an invalid time"
	}
	on, minute := int(l.minute)/minutesOfDay, int(l.minute)%minutesOfDay
	at := fmt.Sprintf(" at %02d:%02d", minute/60, minute%60)
	switch l.period {
	case week:
		return " on " + weekdays[on] + at
	case month:
		return " on " + strconv.Itoa(on+1) + at
	default:
		return at
	}
}

func (l Limit) unit() string {
	for _, u := range units {
		if u.period == l.period {
			return u.name
		}
	}
	return l.period.String()
}

// MarshalText writes the limit as [Limit.String] does. A limit that is not
// valid is an error.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads a limit as [Parse] does.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
