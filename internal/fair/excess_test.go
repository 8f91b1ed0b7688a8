package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// By how much a member has exceeded its share counts in the next period, also if calls of it ask meanwhile that
// something else denies. What these have asked for does not count.
func TestExcessStaysWhileOtherCallsAreDenied(t *testing.T) {
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	a, b := &Who{Name: "a"}, &Who{Name: "b"}
	start, minute := int64(time.Hour+time.Second/2), int64(time.Minute)
	terms := map[*Who]Terms{b: {Min: 10000}} // beside a minimum share large calls take no turns
	for _, w := range []*Who{a, b} {
		waiting := p.Wait(w, terms[w], start)
		waiting.Turn(false, -1)
	}
	ask := func(w *Who, at, n int64) (bool, []Amount) {
		amounts := []Amount{{N: n, Count: 100}}
		return !p.Take(w, terms[w], at, amounts, true).Denied, amounts
	}
	askInVain := func(w *Who, at int64) {
		if passes, amounts := ask(w, at, 80); passes {
			p.GiveBack(w, at, amounts, true)
		}
	}
	askInVain(b, start)
	ask(a, start, 80)
	askInVain(a, start+minute-int64(time.Second/4)) // the pool counts in seconds
	for at, want := range map[int64]bool{start + minute: false} {
		if passes, _ := ask(a, at, 80); passes != want {
			t.Errorf("a call of 80 after one of 80, %v later, passes: %t", time.Duration(at-start), passes)
		}
	}
	if passes, _ := ask(b, start+minute, 80); !passes {
		t.Error("a call that has taken nothing so far is denied")
	}
}
