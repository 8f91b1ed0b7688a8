package grpclimit

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

// failing is a store that fails when a test says so.
type failing struct {
	*store.Memory
	lost atomic.Bool
}

func (f *failing) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if f.lost.Load() {
		return nil, nil, errors.New("the disk is on fire")
	}
	return f.Memory.Take(ctx, charges)
}

func TestShadow(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			heard, store := &testkit.Recorder[event.Event]{}, &failing{Memory: store.NewMemory()}
			limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerDay: 2}, Store: store, Observer: heard})
			client := start(t, limiter, Shadow(), Wait(time.Hour))
			for range 5 {
				if err := k.call(as(t.Context(), "p"), client); err != nil {
					t.Error(err)
				}
			}
			n := heard.Count(func(e event.Event) bool { return e.Kind == event.Denied && e.Shadow })
			if n != 3 || used(t, limiter) != 2 {
				t.Errorf("%d denied, %d used", n, used(t, limiter))
			}
			if err := k.call(t.Context(), client); err != nil { // names no project
				t.Error(err)
			}
			store.lost.Store(true)
			if err := k.call(as(t.Context(), "p"), client); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLost(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			store := &failing{Memory: store.NewMemory()}
			limiter := configured(t, project.Config{Default: &project.Limit{RequestsPerDay: 2}, Store: store})
			client := start(t, limiter)
			store.lost.Store(true)
			err := k.call(as(t.Context(), "p"), client)
			if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "disk") {
				t.Error(err)
			}
			store.lost.Store(false)
			if err := k.call(as(t.Context(), "p"), client); err != nil || used(t, limiter) != 1 {
				t.Errorf("%v, %d used", err, used(t, limiter))
			}
		})
	}
}
