package llmhttptest

import (
	"context"
	"slices"
	"sync"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// Recorder is an observer that records events.
type Recorder struct {
	mu   sync.Mutex
	list []ratelimit.Event
}

// Observe implements [ratelimit.Observer].
func (r *Recorder) Observe(_ context.Context, e ratelimit.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

// All returns the events in their order.
func (r *Recorder) All() []ratelimit.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Count returns the number of events of a kind.
func (r *Recorder) Count(kind ratelimit.EventKind) (n int) {
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
		if e.Kind == ratelimit.EventSettled {
			n, sum.Input, sum.Output = n+1, sum.Input+e.Used.Input, sum.Output+e.Used.Output
		}
	}
	if n != calls || sum.Input != input || sum.Output != output {
		t.Errorf("%d calls are settled with %d and %d tokens, want %d with %d and %d", n, sum.Input, sum.Output, calls, input, output)
	}
}
