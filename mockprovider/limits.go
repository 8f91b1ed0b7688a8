package mockprovider

import (
	"sync"
	"time"
)

// Limit is how much a model allows a minute: one token bucket each, full at first. Zero means no
// limit.
type Limit struct {
	Requests     int
	Tokens       int // prompt and output together
	InputTokens  int
	OutputTokens int
}

// bucket is one token bucket of a limit.
type bucket struct {
	limit  int
	fullAt time.Time // when it is full; until then it lacks what is supplied in the time left
}

// fill returns how long it takes to supply n.
func (b *bucket) fill(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Minute) / int64(b.limit))
}

// wait returns how long to wait until n are there.
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

// gate enforces the limit of one model.
type gate struct {
	mu                              sync.Mutex
	requests, tokens, input, output bucket
}

func newGate(l Limit) *gate {
	return &gate{
		requests: bucket{limit: l.Requests}, tokens: bucket{limit: l.Tokens},
		input: bucket{limit: l.InputTokens}, output: bucket{limit: l.OutputTokens},
	}
}

// pass takes everything that a call is going to use, which a mock knows beforehand, or nothing. It
// returns how long to wait, or 0 if it has taken it.
func (g *gate) pass(input, output int, now time.Time) (wait time.Duration, at limitStates) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait = max(
		g.requests.wait(1, now), g.tokens.wait(input+output, now),
		g.input.wait(input, now), g.output.wait(output, now), 0,
	)
	if wait == 0 {
		g.requests.take(1, now)
		g.tokens.take(input+output, now)
		g.input.take(input, now)
		g.output.take(output, now)
	}
	return wait, limitStates{g.requests.state(now), g.tokens.state(now), g.input.state(now), g.output.state(now)}
}
