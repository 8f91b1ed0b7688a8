package llmhttptest

import (
	"context"
	"slices"
	"sync"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
)

// Recorder is an observer that records events.
type Recorder struct {
	mu   sync.Mutex
	list []event.Event
}

// Observe implements [event.Observer].
func (r *Recorder) Observe(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

// All returns the events in their order.
func (r *Recorder) All() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Count returns the number of events of a kind.
func (r *Recorder) Count(kind event.Kind) (n int) {
	for _, e := range r.All() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// Used fails the test unless a number of calls were settled, with a number of tokens in all.
func (r *Recorder) Used(t *testing.T, calls, input, output int) {
	t.Helper()
	var n int
	var sum ratelimit.Tokens
	for _, e := range r.All() {
		if e.Kind == event.Settled {
			n, sum.Input, sum.Output = n+1, sum.Input+e.Used.Input, sum.Output+e.Used.Output
		}
	}
	if n != calls || sum.Input != input || sum.Output != output {
		t.Errorf("%d calls are settled with %d and %d tokens, want %d with %d and %d", n, sum.Input, sum.Output, calls, input, output)
	}
}
