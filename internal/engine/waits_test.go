package engine

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// A call that waits behind others of its project waits for what they wait for now, and nobody knows until
// when; one behind those of another project keeps what it was told. One
// that was told nothing waits for what the call before it does.
func TestWaitsForWhatThoseBeforeItDo(t *testing.T) {
	scope := &Scope{}
	before, last := map[string]string{}, ""
	for i, c := range []struct {
		project   string
		has, want WaitsFor
	}{
		{"hog", WaitsFor{Limit: "rpm_share", Scope: scope, At: 7}, WaitsFor{Limit: "rpm_share", Scope: scope, At: 7}},
		{"chat", WaitsFor{Limit: "concurrent", At: 3, Behind: true}, WaitsFor{Limit: "concurrent", At: 3, Behind: true}},
		{"hog", WaitsFor{Limit: "concurrent", At: 3, Behind: true}, WaitsFor{Limit: "rpm_share", Behind: true}},
		{"hog", WaitsFor{Limit: "rpm", At: 3, Behind: true}, WaitsFor{Limit: "rpm_share", Behind: true}},
		{"new", WaitsFor{}, WaitsFor{Limit: "rpm_share", Behind: true}},
	} {
		c.has.follow(before, c.project, last)
		if c.has != c.want {
			t.Errorf("%d: %+v: want %+v", i, c.has, c.want)
		}
		last = c.has.Limit
	}
}

// Nobody knows when a slot becomes free. A call behind others that wait for one is told the guess, and not when the first
// of them asks again, which may be in a few milliseconds.
func TestGuessBehindOthersIsNoPoll(t *testing.T) {
	for _, again := range []time.Duration{-time.Second, 5 * time.Millisecond, time.Minute} {
		r := Result{Behind: true, Ahead: fair.Ahead{Again: again, By: "max_concurrent", Guess: true}}
		if got := r.RetryAfter(); got != SlotGuess {
			t.Errorf("the first asks again in %v: the call is told %v; want %v", again, got, SlotGuess)
		}
	}
}
