package limit

import (
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// drawLimits returns a few limits: often logs alone, some of them twice.
func drawLimits(t *rapid.T) []Limit {
	all := []Limit{
		PerMinute(9).Using(SlidingLog), PerHour(30).Using(SlidingLog), PerDay(50).Using(SlidingLog), PerSecond(4).Using(SlidingLog),
		PerMinute(12).Using(SlidingLog), PerMinute(20), PerHour(40).WithBurst(8), PerMinute(15).Using(FixedWindow),
		PerHour(25).Anchored(), PerDay(60).ResetAt(time.Hour, nil), PerMinute(18).Using(SlidingCounter),
	}
	if rapid.Bool().Draw(t, "logs alone") {
		all = all[:5]
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 4).Draw(t, "limits")
}

// accountSpend is what Purse.Spend must be, in the steps of which a store's take
// consists.
func accountSpend(a *Account, limits []Limit, now, n int64) []Decision {
	a.Fit(limits, now)
	decisions := []Decision{}
	allowed := true
	for _, l := range limits {
		d := a.Check(l, now, n)
		allowed = allowed && d.Allowed
		decisions = append(decisions, d)
	}
	if allowed {
		a.Take(limits, now, n)
		return decisions
	}
	for i, l := range limits {
		if decisions[i].Allowed {
			decisions[i] = a.Check(l, now, 0)
		}
	}
	return decisions
}

// accountNumbers returns an account in numbers that can be compared: of its epoch,
// which is random, how often the clock has gone back. One that is full is none.
func accountNumbers(a *Account, now int64) Snapshot {
	a = a.Fork(now)
	if a.enter(now); a.FullAt() <= now {
		return Snapshot{}
	}
	s := a.Snapshot()
	s.Epoch &= rewinds
	return s
}

// A purse says what an account says, and makes of itself the account that would
// have been: whatever is asked, in whatever order, on whatever clock.
func TestPurseIsAnAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var purse Purse
		var account Account
		now := accountStart
		lists := [][]Limit{drawLimits(t), drawLimits(t)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.OneOf(
				rapid.Int64Range(0, int64(10*time.Second)),
				rapid.Int64Range(-int64(time.Minute), int64(time.Minute)),
				rapid.Int64Range(0, int64(30*time.Hour)),
			).Draw(t, "time")
			limits := lists[rapid.IntRange(0, 1).Draw(t, "list")]
			n := rapid.Int64Range(0, 10).Draw(t, "n")
			if rapid.IntRange(0, 9).Draw(t, "settle") == 0 {
				purse.Account().Settle(limits, Receipt{At: now}, now, n)
				account.Settle(limits, Receipt{At: now}, now, n)
				continue
			}
			before := []Decision{{Remaining: 7}}
			got, want := purse.Spend(limits, now, n, before), accountSpend(&account, limits, now, n)
			if !slices.Equal(got[:1], before) || !slices.Equal(got[1:], want) {
				t.Fatalf("%d of %v at %d:\ngot  %+v\nwant %+v", n, limits, now, got, want)
			}
			copied := purse // which alone is opened
			if got, want := accountNumbers(copied.Account(), now), accountNumbers(&account, now); !reflect.DeepEqual(got, want) {
				t.Fatalf("%d of %v at %d:\ngot  %+v\nwant %+v", n, limits, now, got, want)
			}
			if full := now >= account.FullAt(); full != (now >= purse.FullAt()) || !full && purse.FullAt() != account.FullAt() {
				t.Fatalf("the purse is full at %d, the account at %d, and it is %d", purse.FullAt(), account.FullAt(), now)
			}
		}
	})
}

// What was charged once, by logs alone, has no account, nor has it one again once
// that is full.
func TestPurseOfOneCharge(t *testing.T) {
	limits := []Limit{PerMinute(3).Using(SlidingLog), PerDay(5).Using(SlidingLog)}
	var purse, other Purse
	now := accountStart
	for range 3 {
		purse.Spend(limits, now, 2, nil)
		if purse.account != nil || purse.FullAt() != now+int64(24*time.Hour) {
			t.Fatalf("after a charge at %d: %+v, full at %d", now, purse, purse.FullAt())
		}
		if d := purse.Spend(limits, now+1, 2, nil); d[0].Allowed || d[0].Remaining != 1 || purse.account == nil {
			t.Fatalf("after another: %+v, %+v", d, purse)
		}
		now += int64(24 * time.Hour)
	}
	if other.Spend(limits, now, 9, nil); other != (Purse{}) {
		t.Errorf("a denial leaves %+v", other)
	}
	if other.Spend(limits, now, 0, nil); other != (Purse{}) {
		t.Errorf("nothing leaves %+v", other)
	}
	purse.Spend(limits, now, 1, nil)
	if other.Spend(limits, now, 1, nil); other.once.spans != purse.once.spans {
		t.Error("two keys with the same limits do not share their spans")
	}
	if size := unsafe.Sizeof(purse); size > 40 {
		t.Errorf("a purse takes %d bytes", size)
	}
}

// Limits whose spans fall into one place do not get each other's.
func TestSpans(t *testing.T) {
	var all []*spans
	var limits [][]Limit
	for i := range 200 {
		l := []Limit{New(1, time.Duration(1+i%100)), New(1, time.Duration(1+i/100))}
		limits, all = append(limits, l), append(all, spansOf(l))
	}
	for i, s := range all {
		if !s.are(limits[i]) || s.longest != int64(max(limits[i][0].period, limits[i][1].period)) {
			t.Fatalf("%v has %+v", limits[i], s)
		}
		if other := limits[(i+1)%len(limits)]; s.are(other) || s.are(other[:1]) {
			t.Fatalf("%v has %+v too", other, s)
		}
	}
}

// A purse allocates nothing once it has its account.
func TestPurseAllocatesNothing(t *testing.T) {
	logs := []Limit{New(1<<40, 7).Using(SlidingLog), New(1<<40, 16).Using(SlidingLog)}
	for name, test := range map[string]struct {
		limits []Limit
		gap    int64
	}{
		"logs":                  {logs, 1},
		"logs that are denied":  {[]Limit{logs[0], New(1, 100).Using(SlidingLog)}, 1},
		"logs that are full":    {logs, 16},
		"buckets":               {[]Limit{New(1000, 1000), New(10, 1000)}, 1},
		"buckets that are full": {[]Limit{New(1000, 1000), New(10, 1000).Anchored()}, 1000},
		"both":                  {[]Limit{New(1000, 1000), logs[1]}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var purse Purse
			var decisions []Decision
			now := accountStart
			spend := func() {
				decisions = purse.Spend(test.limits, now, 1, decisions[:0])
				now += test.gap
			}
			for range 100 {
				spend()
			}
			if n := testing.AllocsPerRun(100, spend); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
