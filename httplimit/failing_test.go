package httplimit

import (
	"context"
	"errors"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// failing is a store that fails when a test says so.
type failing struct {
	*store.Memory
	lost atomic.Bool
}

func newFailing() *failing { return &failing{Memory: store.NewMemory()} }

var errDisk = errors.New("the disk is on fire")

func (f *failing) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if f.lost.Load() {
		return nil, nil, errDisk
	}
	return f.Memory.Take(ctx, charges)
}

func (f *failing) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if f.lost.Load() {
		return nil, errDisk
	}
	return f.Memory.Peek(ctx, charges)
}
