package limit

import (
	"context"
	"math"
)

// Queue is the leaky bucket as a queue: callers leave it one by one, evenly spaced by the
// rate, however they arrive. It delays callers that a [Limiter] would deny.
type Queue struct {
	limiter *Limiter[struct{}, struct{}]
	room    int
}

// NewQueue returns a queue that lets l.Count() callers pass every l.Period(), evenly
// spaced. At most l.Burst() callers may wait in it. If l is not valid, nobody passes.
func NewQueue(l Limit) *Queue {
	room := int(min(l.burst, math.MaxInt))
	if l.Validate() == nil {
		l = New(l.count, l.period).WithBurst(1).Using(LeakyBucket)
	}
	return &Queue{NewLimiter(func(struct{}) struct{} { return struct{}{} }, l), room}
}

// Wait enters the queue and returns when it is the caller's turn. It returns [ErrFull] at
// once if the queue is full. If ctx ends before the caller's turn, or its deadline is
// before that, Wait leaves the queue, the callers behind move up, and the error is
// ctx's.
func (q *Queue) Wait(ctx context.Context) error {
	return wait(ctx, q.limiter.demands(nil, struct{}{}, 1), q.room)
}

// Len returns the number of callers that wait in the queue.
func (q *Queue) Len() int {
	only := &q.limiter.parts[0]
	return only.book.lineLen(only.hash(struct{}{}))
}
