package redisstore

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Limits have one shape if the usage of one is the other's when it replaces that.
func TestShapes(t *testing.T) {
	day, minute := limit.PerDay(10), limit.PerMinute(10)
	limits := []limit.Limit{
		minute, minute.WithCount(3), minute.WithBurst(20), minute.Using(limit.TokenBucket), limit.PerHour(10),
		minute.Using(limit.FixedWindow), minute.Using(limit.FixedWindow).WithCount(7), minute.Anchored(), minute.Using(limit.SlidingCounter),
		day.Using(limit.FixedWindow), day.Anchored(), day.ResetAt(0, nil), day.ResetAt(time.Hour, nil).WithCount(9),
		limit.New(10, 24*time.Hour+time.Second).Anchored(), limit.New(10, 24*time.Hour+time.Minute).Anchored(),
		limit.PerHour(10).ResetHourly(0, nil), limit.PerHour(10).Anchored(), limit.PerWeek(10).ResetWeekly(time.Monday, 0, nil),
		limit.PerMonth(10).ResetMonthly(1, 0, nil), limit.PerMonth(10).ResetMonthly(31, 0, nil), limit.PerMonth(10).Anchored(), limit.Total(10),
	}
	now := noon.UnixNano()
	for _, was := range limits {
		for _, is := range limits {
			var a limit.Account
			a.Take([]limit.Limit{was}, now, 2)
			a.Fit([]limit.Limit{is}, now)
			if stays := a.Check(is, now, 0).Used == 2; stays != (shapeOf(was) == shapeOf(is)) {
				t.Errorf("%v becomes %v: the usage stays is %v, and the shapes are %+v and %+v", was, is, stays, shapeOf(was), shapeOf(is))
			}
		}
	}
}
