package mockprovider

import (
	"sync"
	"time"
)

// Limit is how much a model allows a minute. Each field is a token bucket, which is full at first.
// Zero means no limit.
type Limit struct {
	Requests     int
	Tokens       int // prompt and output together
	InputTokens  int
	OutputTokens int
}

// bucket is one token bucket of a limit.
type bucket struct {
	limit  int
	fullAt time.Time // when the bucket will be full; until then it lacks what is supplied in the time left
}

// fill returns how long it takes to supply n.
func (b *bucket) fill(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Minute) / int64(b.limit))
}

// wait returns how long to wait until the bucket has n. It is negative if the bucket has more.
func (b *bucket) wait(n int, now time.Time) time.Duration {
	if b.limit == 0 {
		return 0
	}
	return b.untilFull(now) + b.fill(n) - time.Minute
}

// untilFull returns how long it takes until the bucket is full.
func (b *bucket) untilFull(now time.Time) time.Duration { return max(b.fullAt.Sub(now), 0) }

func (b *bucket) take(n int, now time.Time) {
	if b.limit > 0 {
		b.fullAt = now.Add(b.untilFull(now) + b.fill(n))
	}
}

// state returns the state of the bucket.
func (b *bucket) state(now time.Time) limitState {
	if b.limit == 0 {
		return limitState{}
	}
	lacks := b.untilFull(now)
	left := int64(time.Minute-lacks) * int64(b.limit) / int64(time.Minute)
	return limitState{limit: b.limit, remaining: int(left), reset: lacks}
}

// limitState is the state of a limit, as headers report it. A limit of 0 means none.
type limitState struct {
	limit, remaining int
	reset            time.Duration // the time until it is full
}

// limitStates are the states of all limits of a model.
type limitStates struct{ requests, tokens, input, output limitState }

// modelLimits enforces the limit of one model.
type modelLimits struct {
	mu                              sync.Mutex
	requests, tokens, input, output bucket
}

func newModelLimits(l Limit) *modelLimits {
	return &modelLimits{
		requests: bucket{limit: l.Requests}, tokens: bucket{limit: l.Tokens},
		input: bucket{limit: l.InputTokens}, output: bucket{limit: l.OutputTokens},
	}
}

// take charges everything that a call is going to use, which a mock knows beforehand, or nothing.
// It returns how long to wait, or 0 if it has charged the call, and the states of the limits.
func (l *modelLimits) take(input, output int, now time.Time) (wait time.Duration, at limitStates) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = max(
		l.requests.wait(1, now), l.tokens.wait(input+output, now),
		l.input.wait(input, now), l.output.wait(output, now), 0,
	)
	if wait == 0 {
		l.requests.take(1, now)
		l.tokens.take(input+output, now)
		l.input.take(input, now)
		l.output.take(output, now)
	}
	return wait, limitStates{l.requests.state(now), l.tokens.state(now), l.input.state(now), l.output.state(now)}
}
