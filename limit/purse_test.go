package limit

import (
	"cmp"
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

// purseBytes returns an account in bytes that can be compared: of its epoch, which
// is random, how often the clock has gone back; windows of its log in one order. One
// that is full is none.
func purseBytes(a *Account, now int64) []byte {
	a = a.Fork(now)
	if a.enter(now); a.FullAt() <= now {
		return nil
	}
	a.epoch &= rewinds
	if log := a.counters.log; log != nil {
		a.counters.log = log.clone()
		slices.SortFunc(a.counters.log.windows, func(a, b slidingWindow) int { return cmp.Compare(a.period, b.period) })
	}
	b, _ := a.AppendBinary(nil)
	return b
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
			got, want := make([]Decision, len(limits)), accountSpend(&account, limits, now, n)
			allowed := purse.Spend(PlanOf(limits), now, n, got)
			if !slices.Equal(got, want) || allowed == slices.ContainsFunc(want, func(d Decision) bool { return !d.Allowed }) {
				t.Fatalf("%d of %v at %d:\ngot  %+v\nwant %+v", n, limits, now, got, want)
			}
			copied := purse // which alone is opened
			if got, want := purseBytes(copied.Account(), now), purseBytes(&account, now); !reflect.DeepEqual(got, want) {
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
	plan := PlanOf([]Limit{PerMinute(3).Using(SlidingLog), PerDay(5).Using(SlidingLog)})
	var purse, other Purse
	d := make([]Decision, 2)
	now := accountStart
	for range 3 {
		purse.Spend(plan, now, 2, d)
		if purse.account != nil || purse.FullAt() != now+int64(24*time.Hour) {
			t.Fatalf("after a charge at %d: %+v, full at %d", now, purse, purse.FullAt())
		}
		if purse.Spend(plan, now+1, 2, d); d[0].Allowed || d[0].Remaining != 1 || purse.account == nil {
			t.Fatalf("after another: %+v, %+v", d, purse)
		}
		now += int64(24 * time.Hour)
	}
	if other.Spend(plan, now, 9, d); other != (Purse{}) {
		t.Errorf("a denial leaves %+v", other)
	}
	if other.Spend(plan, now, 0, d); other != (Purse{}) {
		t.Errorf("nothing leaves %+v", other)
	}
	if size := unsafe.Sizeof(purse); size > 40 {
		t.Errorf("a purse takes %d bytes", size)
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
			plan, decisions := PlanOf(test.limits), make([]Decision, len(test.limits))
			now := accountStart
			spend := func() {
				purse.Spend(plan, now, 1, decisions)
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
