package redisstore

import (
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// shapeOf returns the shape of a limit: everything but its count and burst. A new limit that has the
// shape of an old one takes over what was used of it. All limits by the day have the same shape,
// whenever their days begin, and also if these are up to a minute longer; so have all by the hour, the
// week and the month. A shape is not a valid limit.
func shapeOf(l limit.Limit) limit.Limit {
	const day = 24 * time.Hour
	if l.Algorithm() == limit.FixedWindow && l != l.Using(limit.FixedWindow) {
		l = l.Anchored()
		if l.Period().Truncate(time.Minute) == day {
			l = limit.New(0, day).Anchored()
		}
	}
	return l.WithCount(0).WithBurst(0)
}

// isAnchored reports whether the windows of a limit begin with their first take.
func isAnchored(l limit.Limit) bool { return l.Algorithm() == limit.FixedWindow && l == l.Anchored() }
