package redisstore

import (
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func oneOf[E any](t *rapid.T, name string, of ...E) E {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, name)]
}

// anyLimit draws a limit of any kind.
func anyLimit(t *rapid.T) limit.Limit {
	l := limit.New(oneOf[int64](t, "count", 10, 1, 3, 100, 97), oneOf(t, "period", time.Hour, time.Minute, 999_999_937))
	switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); kind {
	case 0, 1, 2:
		l = l.Using([]limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket}[kind])
		return l.WithBurst(oneOf(t, "burst", l.Count(), 1, 2*l.Count()))
	case 3:
		return l.Anchored()
	case 4:
		n := l.Count()
		return oneOf(t, "calendar", limit.PerDay(n).ResetAt(0, nil), limit.PerHour(n).ResetHourly(0, nil), limit.PerMonth(n).ResetMonthly(15, 0, nil))
	case 5:
		return l.Using(limit.FixedWindow)
	case 6:
		return l.Using(limit.SlidingCounter)
	default:
		return l.Using(limit.SlidingLog)
	}
}
