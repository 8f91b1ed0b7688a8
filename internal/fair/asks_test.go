package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// A member that begins to ask for more than it is expected to want has its whole share at once. Otherwise a call that
// does not wait would be denied although it is within that.
func TestWhoAsksForMoreHasItsShareAtOnce(t *testing.T) {
	p := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0)
	now := int64(time.Hour)
	take := func(name string, n int64) bool {
		amounts := []Amount{{N: n, Count: 100}}
		return !p.Take(named(name), Terms{}, now, amounts, false).Denied || p.Lend(named(name), now, amounts, []int64{p.top.parts[0].usedAt(now)})
	}
	for second := range 240 { // b takes all that it can get, and a wants little
		now += int64(time.Second)
		take("b", 2)
		if second%10 == 0 && !take("a", 1) {
			t.Fatal("a call of a within its share is denied")
		}
	}
	p.divide(0, now)
	if share := p.members["a"].parts[0].share >> p.quotas[0].scale; share >= 30 {
		t.Fatalf("a is expected to want little, and has a share of %d of 100", share)
	}
	for range 10 {
		if d := p.Take(named("a"), Terms{}, now, []Amount{{N: 4, Count: 100}}, false); d.Denied {
			t.Errorf("a call of a within its half of the quota is denied: %+v", d)
		}
	}
}
