// Package testkit has what the tests of several packages need.
package testkit

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience is how long a test waits for something that should happen soon. A machine that does much else may need most of
// it.
const Patience = 2 * time.Minute

// Eventually polls until a condition holds, more rarely the longer that takes: to ask a process costs what it needs to
// get there. The test fails if it takes too long.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(max(time.Millisecond, min(time.Since(began)/8, 20*time.Millisecond))) {
		if time.Since(began) > Patience {
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

// OneIn skips all but one in n tests at random with -short. It is for a list of tests that run in full on the same code
// in another setting.
func OneIn(t testing.TB, n int) {
	if testing.Short() && rand.IntN(n) > 0 {
		t.Skip("another time: -short runs some of these tests at random")
	}
}

// Panics fails the test if one of the functions, which have names, does not panic with an error of this module.
func Panics(t testing.TB, functions map[string]func()) {
	t.Helper()
	for name, f := range functions {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.HasPrefix(said, "ratelimit: ") {
					t.Errorf("%s panics with %q", name, said)
				}
			}()
			f()
		}()
	}
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
