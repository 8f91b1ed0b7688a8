package mockprovider

import (
	"sync"
	"time"
)

// Limit is how much of a model a minute grants: a bucket of each, which is full at
// first and fills evenly. Zero is unlimited.
type Limit struct {
	Requests     int
	Tokens       int // of the prompt and the output
	InputTokens  int
	OutputTokens int
}

// bucket is one of a limit's.
type bucket struct {
	limit  int
	fullAt time.Time // and before that it lacks what flows in until then
}

// fill is how long it takes to fill n of a bucket.
func (b *bucket) fill(n int) time.Duration {
	return time.Duration(int64(n) * int64(time.Minute) / int64(b.limit))
}

// wait returns how long to wait until n are there.
func (b *bucket) wait(n int, now time.Time) time.Duration {
	if b.limit == 0 {
		return 0
	}
	return b.lacks(now) + b.fill(n) - time.Minute
}

// lacks returns how long it takes to be full.
func (b *bucket) lacks(now time.Time) time.Duration { return max(b.fullAt.Sub(now), 0) }

func (b *bucket) take(n int, now time.Time) {
	if b.limit > 0 {
		b.fullAt = now.Add(b.lacks(now) + b.fill(n))
	}
}

// standing returns where the bucket stands.
func (b *bucket) standing(now time.Time) standing {
	if b.limit == 0 {
		return standing{}
	}
	lacks := b.lacks(now)
	left := int64(time.Minute-lacks) * int64(b.limit) / int64(time.Minute)
	return standing{limit: b.limit, remaining: int(left), reset: lacks}
}

// standing is where a limit stands, as headers tell it. A limit of 0 is none.
type standing struct {
	limit, remaining int
	reset            time.Duration // until it is full
}

// standings is where all limits of a model stand.
type standings struct{ requests, tokens, input, output standing }

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

// pass takes what a call is going to use, which a mock knows before, or nothing. It
// returns how long to wait for that, or 0 if it has taken it.
func (g *gate) pass(input, output int, now time.Time) (wait time.Duration, at standings) {
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
	return wait, standings{g.requests.standing(now), g.tokens.standing(now), g.input.standing(now), g.output.standing(now)}
}
