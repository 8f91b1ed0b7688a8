package testkit

import (
	"context"
	"time"
)

// WithHiddenTimeout is [context.WithTimeout], but the context does not report its deadline. A call that waits for
// limits does not know that it waits in vain, so it waits until the context ends.
func WithHiddenTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, timeout)
	return hidden{ctx}, cancel
}

type hidden struct{ context.Context }

func (hidden) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
