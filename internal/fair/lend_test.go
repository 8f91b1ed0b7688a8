package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// A member that has a pool to itself is lent what is free, although its calls use more than they ask for.
// Once, its own later calls kept it free for themselves.
func TestAloneNothingIsKeptFree(t *testing.T) {
	const dollar = 1_000_000_000
	p := NewPool([]limit.Limit{limit.PerDay(dollar).Using(limit.FixedWindow)}, 0)
	a, start := &Who{Name: "a"}, int64(time.Hour)
	nothing := []Amount{{N: 0, Count: dollar}}
	if d := p.Take(a, Terms{}, start, nothing, false); d.Denied {
		t.Fatalf("%+v", d)
	}
	const used = 888_888_890
	p.Correct(a, start, []int64{used}, nil)
	later := start + int64(24*time.Minute)
	if d := p.Take(a, Terms{}, later, nothing, false); d.Denied && !p.Lend(a, later, nothing, []int64{used}) {
		t.Errorf("%d of %d are used by nobody else: %+v", used, int64(dollar), d)
	}
}

// What is left of a share that is no whole number of calls is kept for a member that wants it, if one more call may begin
// in it. Once it was lent, to the one member that called first in each minute.
func TestFractionsOfSharesAreKept(t *testing.T) {
	const members, quota = 21, 58 // 2.76 for each
	p, start := NewPool([]limit.Limit{limit.PerMinute(quota)}, 0), int64(time.Hour)
	one := []Amount{{N: 1, Count: quota}}
	list := make([]*Who, members)
	for i := range list {
		list[i] = &Who{Name: string(rune('a' + i))}
		p.Take(list[i], Terms{}, start, one, false)
	}
	for _, w := range list {
		p.Take(w, Terms{}, start+int64(time.Second), one, false)
	}
	now := start + int64(2*time.Second)
	if d := p.Take(list[0], Terms{}, now, one, false); d.Denied {
		t.Fatalf("a call more than half of which is in the share: %+v", d)
	}
	if d := p.Take(list[0], Terms{}, now, one, false); !d.Denied || p.Lend(list[0], now, one, []int64{2*members + 1}) {
		t.Errorf("%+v: want that nothing is lent, because each of the others may begin a call in its share", d)
	}
}

// A member that begins to wait was served as much as those that wait already, whatever it has used before they came.
// Otherwise all that is lent would be for the one that came last, until it had as much as they had in all the time before.
// One that has waited within the last minute keeps what it was served less by a large call.
func TestWhoBeginsToWaitIsServedNoSooner(t *testing.T) {
	p, now := NewPool([]limit.Limit{limit.New(1000, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
	take := func(name string, n int64) { p.Take(named(name), Terms{}, now, []Amount{{N: n, Count: 1000}}, false) }
	served := func(name string) int64 { return p.members[name].parts[0].served >> p.quotas[0].scale }
	old := p.Wait(named("old"), Terms{}, now)
	old.Turn(false, -1)
	for range 4 {
		take("old", 100)
	}
	late := p.Wait(named("late"), Terms{}, now)
	if got := served("late"); got != 400 {
		t.Errorf("one that comes late was served %d: want 400, as the other", got)
	}
	late.Leave(now)
	for range 30 {
		now += int64(time.Second)
		take("old", 10)
	}
	p.Wait(named("late"), Terms{}, now)
	if got, want := served("late"), served("old")-100; got != want {
		t.Errorf("when it comes back it was served %d: want %d, a large call less than the other", got, want)
	}
}

// A sibling that was served less does not keep others from borrowing, as long as they are ahead by less than a tenth of
// their share.
func TestWhoIsHardlyAheadMayBorrow(t *testing.T) {
	p, now := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
	waiting := p.Wait(named("b"), Terms{}, now)
	waiting.Turn(false, -1)
	for ahead := range int64(10) {
		p.Take(named("a"), Terms{}, now, []Amount{{N: 1, Count: 100}}, false)
		p.compute(0, now)
		if leads := p.leads(p.members["a"], 0, now, 10); leads != (ahead+1 > 5) {
			t.Errorf("of shares of 50, one is ahead by %d: the other leads: %t", ahead+1, leads)
		}
	}
}

// What a large call of another waits for is lent as long as the call would not pass even with it.
func TestNothingIsKeptForACallThatDoesNotPassYet(t *testing.T) {
	p, now := NewPool([]limit.Limit{limit.New(100, time.Minute).Using(limit.SlidingLog)}, 0), int64(time.Hour)
	waiting := p.Wait(named("large"), Terms{}, now)
	large := []Amount{{N: 80, Count: 100}}
	p.Take(named("large"), Terms{}, now, large, false)
	p.GiveBack(named("large"), now, large, true) // others have used the quota
	waiting.Turn(false, -1)
	if d := p.Take(named("small"), Terms{}, now, []Amount{{N: 50, Count: 100}}, false); d.Denied {
		t.Fatalf("%+v", d)
	}
	more := []Amount{{N: 10, Count: 100}}
	if d := p.Take(named("small"), Terms{}, now, more, false); !d.Denied || !p.Lend(named("small"), now, more, []int64{50}) {
		t.Errorf("of 50 that are free 10 are not lent, although a call of 80 cannot pass: %+v", d)
	}
}

// When calls begin to wait, what they ask for is lent no more, at the same instant.
func TestNothingIsLentThatCallsBeginToWaitFor(t *testing.T) {
	p, now := poolOfTwo(t)
	one := []Amount{{N: 1, Count: 100}}
	lent := func(used int64) bool {
		return p.Take(named("b"), Terms{}, now, one, false).Denied && p.Lend(named("b"), now, one, []int64{used})
	}
	p.Want(named("a"), Terms{}, now, one, false)
	p.members["a"].parts[0].served = p.members["b"].parts[0].served // so that a does not come first
	if !lent(70) {
		t.Error("while nobody waits, nothing is lent of 30 that are free")
	}
	for range 40 {
		waiting := p.Wait(named("a"), Terms{}, now)
		waiting.Turn(false, -1)
	}
	if lent(71) {
		t.Error("a call is lent what 40 calls of another project wait for")
	}
}
