package limit

import (
	"context"
	"fmt"
	"time"
)

// DeadlineError is the error of a call that cannot pass before its deadline: that of its context, or
// the longest time that it may wait. Such a call fails at once. To [errors.Is] the error is
// [context.DeadlineExceeded].
type DeadlineError struct {
	Limit string        // the limit that the call would have to wait for
	Wait  time.Duration // how long it would have to wait, if nothing is given back meanwhile
	Left  time.Duration // the time until its deadline
}

// Error implements error.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("ratelimit: %s: %v", e.Reason(), context.DeadlineExceeded)
}

// Reason says why the call fails, for people. The wait is rounded up to milliseconds, and the time that
// is left is rounded down.
func (e *DeadlineError) Reason() string {
	wait := (e.Wait + time.Millisecond - 1).Truncate(time.Millisecond)
	left := max(e.Left, 0).Truncate(time.Millisecond)
	return fmt.Sprintf("the limit %q lets the call pass in %v, and its deadline is in %v", e.Limit, wait, left)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }
