package storetest

import (
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"pgregory.net/rapid"
)

// ruleOf returns a limit whose windows, if it has any, are aligned to 1970.
func ruleOf(l limit.Limit) rule { return rule{l, alignedTo(l.Period())} }

// everyRule returns one limit of each kind: each algorithm, and each way in which windows begin.
// All are of count a period.
func everyRule(count int64, period time.Duration) map[string]rule {
	l := limit.New(count, period)
	return map[string]rule{
		"gcra":           ruleOf(l),
		"token bucket":   ruleOf(l.Using(limit.TokenBucket)),
		"leaky bucket":   ruleOf(l.Using(limit.LeakyBucket)),
		"fixed window":   ruleOf(l.Using(limit.FixedWindow)),
		"anchored":       {l.Anchored(), anchoredFor(period)},
		"log":            ruleOf(l.Using(limit.SlidingLog)),
		"sliding count":  ruleOf(l.Using(limit.SlidingCounter)),
		"days of a zone": daily(count, 0, "America/Los_Angeles"),
		"months":         monthly(count, 31, 0, "America/Los_Angeles"),
	}
}

// zoneNamed returns a time zone, or UTC where the machine's database does not have it.
func zoneNamed(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// hourly returns a limit that resets at a minute of the hour.
func hourly(count int64, minute int, zone string) rule {
	return rule{limit.PerHour(count).ResetHourly(time.Duration(minute)*time.Minute, zoneNamed(zone)), hoursOf(minute, zoneNamed(zone))}
}

// daily returns a limit that resets at a time of day.
func daily(count int64, at time.Duration, zone string) rule {
	every := func(time.Time) bool { return true }
	return rule{limit.PerDay(count).ResetAt(at, zoneNamed(zone)), datesOf(every, at, zoneNamed(zone))}
}

// weekly returns a limit that resets on a day of the week.
func weekly(count int64, on time.Weekday, at time.Duration, zone string) rule {
	same := func(date time.Time) bool { return date.Weekday() == on }
	return rule{limit.PerWeek(count).ResetWeekly(on, at, zoneNamed(zone)), datesOf(same, at, zoneNamed(zone))}
}

// monthly returns a limit that resets on a day of the month, or on the last one of a shorter month.
func monthly(count int64, on int, at time.Duration, zone string) rule {
	same := func(date time.Time) bool {
		return date.Day() == on || date.Day() < on && date.AddDate(0, 0, 1).Day() == 1
	}
	return rule{limit.PerMonth(count).ResetMonthly(on, at, zoneNamed(zone)), datesOf(same, at, zoneNamed(zone))}
}

var (
	counts  = []int64{3, 1, 2, 7, 10, 97, 1000, 1_000_003, 1 << 40}
	periods = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 1, 7, 1000, 999_999_937, 90 * time.Second, 31 * 24 * time.Hour}
	huge    = []int64{1<<53 + 1, 1<<62 - 1, 1 << 62, 999_999_999_999_999_989}
	resets  = []rule{
		daily(5, 0, "America/Los_Angeles"),
		daily(100, 150*time.Minute, "Europe/Berlin"), // the time at which the clocks change there
		daily(10, 0, "UTC"),
		daily(3, 23*time.Hour+59*time.Minute, "Asia/Kathmandu"),
		daily(7, 2*time.Hour, "Australia/Lord_Howe"), // the clocks change by half an hour there
		hourly(5, 0, "Asia/Kathmandu"),
		hourly(100, 45, "Australia/Lord_Howe"),
		weekly(10, time.Monday, 0, "Europe/Berlin"),
		weekly(3, time.Sunday, 150*time.Minute, "Europe/Berlin"),
		monthly(5, 1, 0, "UTC"),
		monthly(100, 15, 0, "Europe/Berlin"),
		monthly(10, 31, 23*time.Hour, "America/New_York"),
		monthly(7, 29, 2*time.Hour, "Africa/Casablanca"),
	}
)

// anyRule draws a limit of any kind.
func anyRule(t *rapid.T, counts []int64) rule {
	l := limit.New(oneOf(t, "count", counts...), oneOf(t, "period", periods...))
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	switch kind {
	case 0, 1, 2:
		l = l.Using([]limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket}[kind])
		burst := oneOf(t, "burst", l.Count(), 1, l.Count()/2+1, min(2*(l.Count()/2), 1<<61)*2)
		if bursting := l.WithBurst(burst); bursting.Validate() == nil {
			l = bursting
		}
		return ruleOf(l)
	case 3:
		return rule{l.Anchored(), anchoredFor(l.Period())}
	case 4:
		return oneOf(t, "reset", resets...)
	case 5:
		return ruleOf(l.Using(limit.FixedWindow))
	case 6:
		return ruleOf(l.Using(limit.SlidingCounter))
	default:
		return ruleOf(l.Using(limit.SlidingLog))
	}
}

// anyRules draws the limits of a key.
func anyRules(t *rapid.T, counts []int64) []rule {
	var rules []rule
	for range rapid.IntRange(1, 3).Draw(t, "limits") {
		rules = append(rules, anyRule(t, counts))
	}
	return rules
}

// oneOf draws one of a list. The first is the simplest.
func oneOf[E any](t *rapid.T, name string, of ...E) E {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, name)]
}
