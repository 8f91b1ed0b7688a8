package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// poolOfTwo is a pool of 100 a minute. For four minutes b has asked for all that it can get, and a for one every ten
// seconds, so a is expected to want little.
func poolOfTwo(t *testing.T) (p *Pool, now int64) {
	p, now = NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
	take := func(name string, n int64) bool {
		amounts := []Amount{{N: n, Count: 100}}
		if p.Take(named(name), Terms{}, now, amounts, false).Denied && !p.Lend(named(name), now, amounts, []int64{p.top.parts[0].usedAt(now)}) {
			return false
		}
		p.Correct(named(name), now, []int64{0}, nil)
		return true
	}
	for second := range 240 {
		now += int64(time.Second)
		take("b", 2)
		if second%10 == 0 && !take("a", 1) {
			t.Fatal("a call of a within its share is denied")
		}
	}
	if share := shareOf(p, "a", now); share >= 30 {
		t.Fatalf("a is expected to want little, and has a share of %d of 100", share)
	}
	return p, now
}

// shareOf computes the shares of the first quota, and returns that of a member.
func shareOf(p *Pool, name string, now int64) int64 {
	p.compute(0, now)
	return p.members[name].parts[0].share >> p.quotas[0].scale
}

// A member that begins to ask for more than it is expected to want has its whole share at once. Otherwise a call that
// does not wait would be denied although it is within that.
func TestWhoAsksForMoreHasItsShareAtOnce(t *testing.T) {
	p, now := poolOfTwo(t)
	for range 10 {
		if d := p.Take(named("a"), Terms{}, now, []Amount{{N: 4, Count: 100}}, false); d.Denied {
			t.Errorf("a call of a within its half of the quota is denied: %+v", d)
		}
	}
}

// A member that had to wait for its share keeps it until the end of the next minute, as long as it calls: its callers may
// all be waiting for answers, and will want as much again.
func TestWhoHadToWaitKeepsItsShare(t *testing.T) {
	p, now := poolOfTwo(t)
	amounts := []Amount{{N: 1, Count: 100}}
	waiting := p.Wait(named("a"), Terms{}, now)
	waiting.Turn(false, -1)
	p.Take(named("a"), Terms{}, now, amounts, true)
	waiting.Leave(now)
	if share := shareOf(p, "a", now); share != 50 {
		t.Errorf("when its call has passed, it has a share of %d: want 50", share)
	}
	for end := p.members["a"].parts[0].asks.end; now < end+int64(130*time.Second); {
		now += int64(10 * time.Second)
		p.Want(named("b"), Terms{}, now, []Amount{{N: 100, Count: 100}}, false)
		p.Take(named("a"), Terms{}, now, amounts, false)
		share, after := shareOf(p, "a", now), time.Duration(now-end)
		if after < time.Minute && share != 50 || after > 80*time.Second && share >= 30 {
			t.Errorf("%v after the minute in which it had to wait it has a share of %d", after, share)
		}
	}
}

// A member whose call was turned away keeps its share for a minute, because its caller may try again at a time that nobody
// knows. Of another one that calls every ten seconds, nothing is expected after half a minute.
func TestWhoWasTurnedAwayKeepsItsShare(t *testing.T) {
	for _, turned := range []bool{false, true} {
		p, now := poolOfTwo(t)
		if turned {
			p.Want(named("a"), Terms{}, now, []Amount{{N: 1, Count: 100}}, false)
		}
		now += int64(50 * time.Second)
		p.Want(named("b"), Terms{}, now, []Amount{{N: 100, Count: 100}}, false)
		if share := shareOf(p, "a", now); (share == 50) != turned {
			t.Errorf("50 seconds later it has a share of %d of 100; it was turned away: %t", share, turned)
		}
	}
}
