package main

import (
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/rate"
)

// limiters are this module's own contestants.
func limiters() []contestant {
	return []contestant{
		{name: nameRate, kind: ours, build: rateLimiter},
		{name: nameLimit, kind: ours, keyed: true, retains: "a hash", build: limitLimiter},
		{name: nameNoKey, kind: ours, build: limitNoKey},
	}
}

func (q quota) limit() limit.Limit { return limit.New(q.count, q.period) }

func (q quota) perSecond() float64 { return float64(q.count) / q.period.Seconds() }

func itself(key string) string { return key }

func nothing(struct{}) struct{} { return struct{}{} }

func rateLimiter(q quota) instance {
	l := rate.NewLimiter(rate.Limit(q.perSecond()), int(q.count))
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if l.Allow() {
				n++
			}
		}
		return n
	}}
}

func limitLimiter(q quota) instance {
	l := limit.NewLimiter(itself, q.limit())
	return instance{decide: func(keys []string) (n int) {
		for _, key := range keys {
			if l.Allow(key) {
				n++
			}
		}
		return n
	}}
}

// limitNoKey is a limit.Limiter that limits the whole program, as peers without keys do.
func limitNoKey(q quota) instance {
	l := limit.NewLimiter(nothing, q.limit())
	return instance{decide: func(keys []string) (n int) {
		for range keys {
			if l.Allow(struct{}{}) {
				n++
			}
		}
		return n
	}}
}
