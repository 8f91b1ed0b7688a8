package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// A call that does not wait has its member's share of what calls hold, although the member was expected to want no more
// than it holds.
func TestWhoAsksForASlotWantsItsShare(t *testing.T) {
	const slots = 8
	p, now := NewPool([]limit.Limit{limit.New(slots, time.Minute)}, 0), int64(time.Hour)
	p.Hold(0)
	take := func(name string) bool {
		return !p.Take(named(name), Terms{}, now, []Amount{{N: 1, Count: slots}}, false).Denied
	}
	for range 2 {
		take("a")
	}
	for range 5 {
		take("b")
	}
	waiting := p.Wait(named("b"), Terms{}, now)
	waiting.Turn(false, 0)
	now += int64(time.Second)
	if !take("a") {
		t.Error("a call of a project that has 2 of 8 slots is denied, beside one that has 5 and waits for more")
	}
}
