// Package testkit has what the tests of several packages need.
package testkit

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience is how long a test waits for something that should happen soon.
const Patience = 30 * time.Second

// Eventually polls until a condition holds. The test fails if that takes too long.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(Patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// Rounds returns how many rounds a test makes: few with -short, as in `make test`, and otherwise many,
// as in `make soak`.
func Rounds(few, many int) int {
	if testing.Short() {
		return few
	}
	return many
}

// Forged returns a secret with another last letter.
func Forged(secret string) string {
	begin, last := secret[:len(secret)-1], secret[len(secret)-1:]
	if last == "x" {
		return begin + "y"
	}
	return begin + "x"
}

// Equal fails the test if a value is not the wanted one, and prints what differs.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s: want (-), got (+):\n%s", what, diff)
	}
}

// Recorder is an observer that records events. The type of the events is a parameter, so that this
// package does not import those that it helps to test.
type Recorder[E any] struct {
	mu     sync.Mutex
	events []E
}

// Observe records an event.
func (r *Recorder[E]) Observe(_ context.Context, e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Since returns the events since the last call of Since.
func (r *Recorder[E]) Since() []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// Count returns how many events match, of those since the last call of Since.
func (r *Recorder[E]) Count(matches func(E) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if matches(e) {
			n++
		}
	}
	return n
}
