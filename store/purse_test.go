package store

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
)

var purseStart = time.Date(2026, time.March, 14, 15, 9, 26, 535_897_932, time.UTC).UnixNano()

// drawLimits returns a few limits: often logs alone, some of them twice.
func drawLimits(t *rapid.T) []limit.Limit {
	all := []limit.Limit{
		limit.PerMinute(9).Using(limit.SlidingLog), limit.PerHour(30).Using(limit.SlidingLog), limit.PerDay(50).Using(limit.SlidingLog), limit.PerSecond(4).Using(limit.SlidingLog),
		limit.PerMinute(12).Using(limit.SlidingLog), limit.PerMinute(20), limit.PerHour(40).WithBurst(8), limit.PerMinute(15).Using(limit.FixedWindow),
		limit.PerHour(25).Anchored(), limit.PerDay(60).ResetAt(time.Hour, nil), limit.PerMinute(18).Using(limit.SlidingCounter),
	}
	if rapid.Bool().Draw(t, "logs alone") {
		all = all[:5]
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 4).Draw(t, "limits")
}

// accountSpend is what Spend must be, in the steps of which a store's take
// consists.
func accountSpend(a *limit.Account, limits []limit.Limit, now, n int64) []limit.Verdict {
	a.Fit(limits, now)
	decisions := []limit.Verdict{}
	allowed := true
	for _, l := range limits {
		d := verdictOf(a, l, now, n)
		allowed = allowed && d.Allowed
		decisions = append(decisions, d)
	}
	if allowed {
		a.Take(limits, now, n)
		return decisions
	}
	for i, l := range limits {
		if decisions[i].Allowed {
			decisions[i] = verdictOf(a, l, now, 0)
		}
	}
	return decisions
}

func verdictOf(a *limit.Account, l limit.Limit, now, n int64) limit.Verdict {
	d := a.Check(l, now, n)
	return d.Verdict()
}

// A purse says what an account says, and makes of itself the account that would
// have been: whatever is asked, in whatever order, on whatever clock.
func TestPurseIsAnAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p purse
		var account limit.Account
		now := purseStart
		lists := [][]limit.Limit{drawLimits(t), drawLimits(t)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.OneOf(
				rapid.Int64Range(0, int64(10*time.Second)),
				rapid.Int64Range(-int64(time.Minute), int64(time.Minute)),
				rapid.Int64Range(0, int64(30*time.Hour)),
			).Draw(t, "time")
			limits := lists[rapid.IntRange(0, 1).Draw(t, "list")]
			n := rapid.Int64Range(0, 10).Draw(t, "n")
			if rapid.IntRange(0, 9).Draw(t, "settle") == 0 {
				p.Account().Settle(limits, limit.Receipt{At: now}, now, n)
				account.Settle(limits, limit.Receipt{At: now}, now, n)
				continue
			}
			got, want := make([]limit.Verdict, len(limits)), accountSpend(&account, limits, now, n)
			allowed := p.Spend(limit.PlanOf(limits), now, n, got)
			if !slices.Equal(got, want) || allowed == slices.ContainsFunc(want, func(d limit.Verdict) bool { return !d.Allowed }) {
				t.Fatalf("%d of %v at %d:\ngot  %+v\nwant %+v", n, limits, now, got, want)
			}
			copied := p // which alone is opened
			if got, want := Describe(copied.Account(), now, slices.Concat(lists...)), Describe(&account, now, slices.Concat(lists...)); got != want {
				t.Fatalf("%d of %v at %d:\ngot  %s\nwant %s", n, limits, now, got, want)
			}
			if full := now >= account.FullAt(); full != (now >= p.FullAt()) || !full && p.FullAt() != account.FullAt() {
				t.Fatalf("the purse is full at %d, the account at %d, and it is %d", p.FullAt(), account.FullAt(), now)
			}
		}
	})
}

// A purse settles takes as an account does: whatever was decided since, as long as the limits stay and
// the clock does not go back.
func TestPurseSettles(t *testing.T) {
	type taken struct{ purse, plain limit.Receipt }
	rapid.Check(t, func(t *rapid.T) {
		var p purse
		var unused, account limit.Account
		var open []taken
		now := purseStart
		limits := drawLimits(t)
		plan := limit.PlanOf(limits)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, int64(time.Minute)), rapid.Int64Range(0, int64(30*time.Hour))).Draw(t, "time")
			n := rapid.Int64Range(0, 10).Draw(t, "n")
			if len(open) > 0 && rapid.Bool().Draw(t, "settle") {
				k := rapid.IntRange(0, len(open)-1).Draw(t, "of")
				if n != open[k].plain.N {
					p.Correct(plan, &open[k].purse, now, n)
					account.Correct(plan, &open[k].plain, now, n)
				}
				open = slices.Delete(open, k, k+1)
				continue
			}
			got, want := make([]limit.Verdict, len(limits)), make([]limit.Verdict, len(limits))
			allowed := p.Asked(now, &unused).Ask(plan, now, n, got)
			account.Ask(plan, now, n, want)
			if !slices.Equal(got, want) {
				t.Fatalf("%d of %v at %d:\ngot  %+v\nwant %+v", n, limits, now, got, want)
			}
			if allowed {
				var each taken
				p.Charge(plan, now, n, &each.purse)
				account.Charge(plan, now, n, &each.plain)
				open = append(open, each)
			}
		}
	})
}

// A take that is settled for less, or cancelled, makes no account.
func TestPurseOfOneReservation(t *testing.T) {
	for name, l := range map[string]limit.Limit{
		"any day":      limit.PerDay(5).Using(limit.SlidingLog),
		"calendar day": limit.PerDay(5).ResetAt(time.Hour, nil),
		"counter":      limit.PerDay(5).Using(limit.SlidingCounter),
	} {
		var p purse
		var r limit.Receipt
		plan, now, verdicts := limit.PlanOf([]limit.Limit{l}), purseStart, make([]limit.Verdict, 1)
		p.Charge(plan, now, 4, &r)
		p.Correct(plan, &r, now+5, 1)
		p.Peeked().Peek(plan, now+6, 1, verdicts)
		if p.account != nil || verdicts[0].Used != 1 || verdicts[0].Remaining != 4 {
			t.Errorf("%s: a settled take has left %+v: %+v", name, p, verdicts)
		}
		p = purse{}
		p.Charge(plan, now, 4, &r)
		p.Correct(plan, &r, now+5, 0)
		if p != (purse{}) {
			t.Errorf("%s: a cancelled take has left %+v", name, p)
		}
		p.Charge(plan, now, 4, &r)
		p.Correct(plan, &r, now+5, 9)
		if p.Account().Peek(plan, now+6, 1, verdicts) || verdicts[0].Used != 9 {
			t.Errorf("%s: a take that was settled for more has left %+v", name, verdicts)
		}

		p = purse{}
		p.Charge(plan, now, 4, &r)
		later := now + int64(72*time.Hour)
		p.Asked(later, new(limit.Account))
		p.Charge(plan, later, 3, new(limit.Receipt))
		p.Correct(plan, &r, later, 1)
		if p.Account().Peek(plan, later, 3, verdicts) || verdicts[0].Used != 3 {
			t.Errorf("%s: a take from before the charge was forgotten is refunded: %+v", name, verdicts)
		}

		p = purse{}
		p.Charge(plan, now, 4, &r)
		p.Asked(later, new(limit.Account))
		p.Charge(plan, later, 0, &r)
		p.Correct(plan, &r, later, 3)
		if p.Account().Peek(plan, later, 3, verdicts) || verdicts[0].Used != 3 {
			t.Errorf("%s: a take of nothing after the charge was forgotten, settled for 3, has left %+v", name, verdicts)
		}
	}
}

// What was charged once, by anything but buckets, has no account, nor has it one again once
// that is full.
func TestPurseOfOneCharge(t *testing.T) {
	plan := limit.PlanOf([]limit.Limit{limit.PerMinute(3).Using(limit.SlidingLog), limit.PerDay(5).Using(limit.SlidingLog)})
	var p, other purse
	d := make([]limit.Verdict, 2)
	now := purseStart
	for range 3 {
		p.Spend(plan, now, 2, d)
		if p.account != nil || p.FullAt() != now+int64(24*time.Hour) {
			t.Fatalf("after a charge at %d: %+v, full at %d", now, p, p.FullAt())
		}
		p.Spend(plan, now+1, 2, d)
		if d[0].Allowed || d[0].Remaining != 1 || p.account == nil {
			t.Fatalf("after another: %+v, %+v", d, p)
		}
		now += int64(24 * time.Hour)
	}
	other.Spend(plan, now, 9, d)
	if other != (purse{}) {
		t.Errorf("a denial leaves %+v", other)
	}
	other.Spend(plan, now, 0, d)
	if other != (purse{}) {
		t.Errorf("nothing leaves %+v", other)
	}
	if size := unsafe.Sizeof(p); size > 48 {
		t.Errorf("a purse takes %d bytes", size)
	}
}

// A purse allocates nothing once it has its account.
func TestPurseAllocatesNothing(t *testing.T) {
	logs := []limit.Limit{limit.New(1<<40, 7).Using(limit.SlidingLog), limit.New(1<<40, 16).Using(limit.SlidingLog)}
	for name, test := range map[string]struct {
		limits []limit.Limit
		gap    int64
	}{
		"logs":                  {logs, 1},
		"logs that are denied":  {[]limit.Limit{logs[0], limit.New(1, 100).Using(limit.SlidingLog)}, 1},
		"logs that are full":    {logs, 16},
		"buckets":               {[]limit.Limit{limit.New(1000, 1000), limit.New(10, 1000)}, 1},
		"buckets that are full": {[]limit.Limit{limit.New(1000, 1000), limit.New(10, 1000).Anchored()}, 1000},
		"both":                  {[]limit.Limit{limit.New(1000, 1000), logs[1]}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var p purse
			plan, decisions := limit.PlanOf(test.limits), make([]limit.Verdict, len(test.limits))
			now := purseStart
			spend := func() {
				p.Spend(plan, now, 1, decisions)
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
