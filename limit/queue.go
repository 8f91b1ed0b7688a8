package limit

import (
	"context"
	"math"
)

// Queue is the leaky bucket in its queue form: what comes in goes out one by
// one, at exactly the rate, however it came. It evens out where a [Limiter]
// would deny.
type Queue struct {
	limiter *Limiter[struct{}, struct{}]
	room    int
}

// NewQueue returns a queue that lets pass l.Count() every l.Period(), evenly
// spaced, and in which l.Burst() may wait. A limit that is not valid lets
// nothing pass.
func NewQueue(l Limit) *Queue {
	room := int(min(l.burst, math.MaxInt))
	if l.Validate() == nil {
		l = New(l.count, l.period).WithBurst(1).Using(LeakyBucket)
	}
	return &Queue{NewLimiter(func(struct{}) struct{} { return struct{}{} }, l), room}
}

// Wait enters the queue and returns when it is its turn to go out. It returns
// [ErrFull] at once if no place is left. If ctx ends first, or its deadline is
// before its turn, it leaves the queue, those behind it move up, and the error
// is ctx's.
func (q *Queue) Wait(ctx context.Context) error {
	return wait(ctx, q.limiter.demands(nil, struct{}{}, 1), q.room)
}

// Len returns how many wait in the queue.
func (q *Queue) Len() int { return q.limiter.book.lineLen(q.limiter.hash(struct{}{})) }
