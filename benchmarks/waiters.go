package main

import (
	"context"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/rate"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	uber "go.uber.org/ratelimit"
	xrate "golang.org/x/time/rate"
)

// waiter is one way of waiting for a turn.
type waiter struct {
	name  string
	kind  kind
	held  bool // to the required figures; a burst of 1 is shown without
	burst func(perSecond int64) int64
	build func(perSecond, burst int64) queue
}

// queue is a waiter at work.
type queue struct {
	wait  func(context.Context) error
	drain func() // takes the whole burst; nil where a limiter starts without one
}

func burstOne(int64) int64              { return 1 }
func burst10ms(perSecond int64) int64   { return max(perSecond/100, 1) }
func burstSecond(perSecond int64) int64 { return perSecond }
func burstUberSlack(int64) int64        { return uberSlack + 1 }

// uberSlack is how many unused turns uber's limiter saves up by default.
const uberSlack = 10

func waiters() []waiter {
	return []waiter{
		{name: nameLimit, kind: ours, held: true, burst: burstSecond, build: limitQueue},
		{name: nameLimit + ", burst 10 ms", kind: ours, held: true, burst: burst10ms, build: limitQueue},
		{name: nameLimit + ", burst 1", kind: ours, burst: burstOne, build: limitQueue},
		{name: nameRate + ", burst 10 ms", kind: ours, held: true, burst: burst10ms, build: rateQueue},
		{name: nameRate + ", burst 1", kind: ours, burst: burstOne, build: rateQueue},
		{name: nameXTime + ", burst 10 ms", kind: peer, burst: burst10ms, build: xtimeQueue},
		{name: nameXTime + ", burst 1", kind: peer, burst: burstOne, build: xtimeQueue},
		{name: nameUber, kind: peer, burst: burstUberSlack, build: uberQueue},
		{name: nameFailsafe + ", smooth", kind: peer, burst: burstOne, build: failsafeQueue},
	}
}

func limitQueue(perSecond, burst int64) queue {
	l := limit.NewLimiter(nothing, limit.PerSecond(perSecond).WithBurst(burst))
	return queue{
		wait:  func(ctx context.Context) error { return l.Wait(ctx, struct{}{}) },
		drain: func() { l.AllowN(struct{}{}, burst) },
	}
}

func rateQueue(perSecond, burst int64) queue {
	l := rate.NewLimiter(rate.Limit(perSecond), int(burst))
	return queue{l.Wait, func() { l.AllowN(time.Now(), int(burst)) }}
}

func xtimeQueue(perSecond, burst int64) queue {
	l := xrate.NewLimiter(xrate.Limit(perSecond), int(burst))
	return queue{l.Wait, func() { l.AllowN(time.Now(), int(burst)) }}
}

// uberQueue looks at its context between turns only: Take knows none.
func uberQueue(perSecond, _ int64) queue {
	l := uber.New(int(perSecond))
	return queue{wait: func(ctx context.Context) error {
		l.Take()
		return ctx.Err()
	}}
}

func failsafeQueue(perSecond, _ int64) queue {
	l := ratelimiter.NewSmooth[any](uint(perSecond), time.Second)
	return queue{wait: l.AcquirePermit}
}
