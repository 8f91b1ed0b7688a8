package fair

import (
	"fmt"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Projects that have called once in a day cost nothing for the rest of it, what they have used counts,
// and they have their shares when they come back.
func TestIdleMembersAreParked(t *testing.T) {
	const idle, active, quota = 1000, 4, 100_000
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{
		limit.New(quota, time.Minute).Using(limit.SlidingLog),
		limit.New(quota, 24*time.Hour).Using(limit.FixedWindow),
	}, 0)
	call := func(name string, n int64) bool {
		amounts := []Amount{{N: n, Count: quota}, {N: n, Count: quota}}
		return !p.Take(named(name), Terms{}, now, amounts, false).Denied
	}
	for k := range idle {
		call(fmt.Sprint("idle", k), 10)
	}
	for range 4 {
		now += int64(40 * time.Second)
		for k := range active {
			call(fmt.Sprint("active", k), 100)
		}
	}
	if got := len(p.top.below); got != active {
		t.Errorf("%d members are looked at for a decision, want %d", got, active)
	}
	p.compute(1, now)
	if got, want := p.members["active0"].parts[1].share>>p.quotas[1].scale, int64(quota-idle*10)/active; got != want {
		t.Errorf("an active member has a share of %v, want %v of what is left", got, want)
	}
	p.Correct(named("idle1"), now, []int64{0, 90}, nil) // of a call that took long
	if got, want := p.top.parts[1].usedAt(now), int64(idle*10+90+4*active*100); got != want {
		t.Errorf("%v are used after a correction of a parked member, want %v", got, want)
	}
	if got := len(p.Read(now)); got != idle+active {
		t.Errorf("%d members are shown, want %d", got, idle+active)
	}
	if !call("idle1", 10) || len(p.top.below) != active+1 {
		t.Errorf("a member that came back is not looked at, or was denied")
	}
	now += int64(25 * time.Hour)
	call("active0", 1)
	if got := len(p.members); got != 1 {
		t.Errorf("%d members are known a day later, want 1", got)
	}
}
