package fair

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// What a node has used counts no longer than its reports, although nobody reports on the member any more.
func TestReportsOfALostNodeEnd(t *testing.T) {
	now := int64(1_700_000_040e9)
	list := nodes(2, 60)
	for _, name := range []string{"a", "b"} {
		list[0].Wait(named(name), Terms{Weight: 1}, now)
	}
	for range 30 {
		take(list[1], "a", now, 1)
	}
	tell(t, list, now)
	if take(list[0], "a", now, 1) {
		t.Fatal("a has used its share on another node, and passes")
	}
	now += int64(2 * time.Minute)
	if !take(list[0], "a", now, 1) {
		t.Error("a does not pass, two minutes after another node was lost on which it has used its share")
	}
}

// A call that is expected to use more than it asks for passes if nothing of the share is used.
func TestConfirmExpectsWhatTakeDoes(t *testing.T) {
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(60, time.Minute).Using(limit.SlidingLog)}, 0)
	p.Wait(named("a"), Terms{Weight: 1}, now)
	p.Wait(named("b"), Terms{Weight: 1}, now)
	for range 20 {
		if take(p, "a", now, 1) {
			p.Correct(named("a"), now, []int64{100}, nil)
		}
		now += int64(5 * time.Minute)
	}
	call := []Amount{{N: 1, Count: 60}}
	if p.Take(named("a"), Terms{Weight: 1}, now, call, false).Denied || call[0].Extra < 60 {
		t.Fatalf("a has used nothing, and does not pass: %+v", call)
	}
	if d := p.Confirm(named("a"), now, call, []int64{1}); d.Denied {
		t.Errorf("a has used nothing, and is denied after all: %+v", d)
	}
}

// A member that limits of its own deny again and again is not new each time.
func TestDeniedByItsOwnIsNotNew(t *testing.T) {
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(60, time.Minute).Using(limit.SlidingLog)}, 100_000)
	for range 200 {
		take(p, "a", now, 1)
		p.GiveBack(named("a"), now, []Amount{{N: 1, Count: 60}}, false)
		now += int64(time.Second)
	}
	take(p, "a", now, 1)
	if p.isNew(p.members["a"], 0, now) {
		t.Error("a has called for three minutes, and is new")
	}
}

// Times before 1970 are times.
func TestRingBefore1970(t *testing.T) {
	r := newRing(limit.New(60, time.Minute).Using(limit.SlidingLog), false)
	for now := -int64(3 * time.Minute); now < int64(3*time.Minute); now += int64(time.Second) {
		r.add(now, 1)
		r.correct(now, 1)
		if r.sumAt(now) > 122 {
			t.Fatalf("%v at %v", r.sumAt(now), now)
		}
	}
}

// A correction at a time after everything that was used counts in the part of that time.
func TestRingIsCorrectedAfterItsEnd(t *testing.T) {
	r := newRing(limit.New(60, time.Minute).Using(limit.SlidingLog), false)
	r.add(0, 5)
	r.correct(int64(50*time.Second), 2)
	for _, step := range []struct {
		at   time.Duration
		want int64
	}{{50 * time.Second, 7}, {61 * time.Second, 2}, {111 * time.Second, 0}} {
		if got := r.sumAt(int64(step.at)); got != step.want {
			t.Errorf("at %v: %d; want %d", step.at, got, step.want)
		}
	}
}

// What was charged for a call is corrected, whatever was learned of other calls meanwhile.
func TestCallsAtATimeAreCorrected(t *testing.T) {
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(1e6, time.Minute).Using(limit.SlidingLog)}, 0)
	var taken [][]Amount
	for range 100 {
		a := []Amount{{N: 1, Count: 1e6}}
		p.Take(named("a"), Terms{}, now, a, false)
		taken = append(taken, a)
	}
	for _, a := range taken {
		p.Correct(named("a"), now, []int64{999}, a)
	}
	if got := p.members["a"].parts[0].usedAt(now); got != 100_000 {
		t.Errorf("100 calls have used 1000 each: counted as %v", got)
	}
}

// A day that begins with its first call is the same day for the quota and for its shares.
func TestDayOfTheQuota(t *testing.T) {
	const hour = int64(time.Hour)
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(60, 24*time.Hour).Using(limit.FixedWindow)}, 0)
	p.Wait(named("a"), Terms{Weight: 1}, now)
	p.Wait(named("b"), Terms{Weight: 1}, now)
	for take(p, "a", now, 1) {
	}
	p.Began(0, now, now+1, now+1+24*hour)
	if take(p, "a", now+2, 1) {
		t.Error("the window of the quota began a moment after that of the pool, and a has its share again")
	}
	now += 12 * hour
	p.Began(0, now, now-hour, now+23*hour)
	if !take(p, "a", now, 1) {
		t.Error("the quota's day began an hour ago, and a is denied for what it used before")
	}
	if p.quotas[0].resetAt != now+23*hour {
		t.Error("the day ends at another time")
	}
}

// What a member has used is reported, although its last call was denied by a limit of its own.
func TestUseIsReportedAfterADenialByItsOwn(t *testing.T) {
	now := int64(1_700_000_040e9)
	p := NewPool([]limit.Limit{limit.New(60, time.Minute).Using(limit.SlidingLog)}, 0)
	take(p, "a", now, 5)
	amounts := []Amount{{N: 1, Count: 60}}
	p.Take(named("a"), Terms{}, now, amounts, false)
	p.GiveBack(named("a"), now, amounts, false)
	r := p.Report(now+int64(time.Second), true)
	if len(r.Members) != 1 || r.Members[0].Parts[0].Used != 5 {
		t.Errorf("the report is %+v; want that a has used 5", r)
	}
}
