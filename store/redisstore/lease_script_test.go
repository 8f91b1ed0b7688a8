package redisstore

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// lender is a remote whose clock stands still until a test moves it.
type lender struct {
	testing.TB
	*remote
	at atomic.Int64
}

// noon is the first time of clocks: no window of a minute or an hour ends soon.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func newLender(t testing.TB, client rueidis.Client) *lender {
	d := &lender{TB: t}
	d.at.Store(noon.UnixNano())
	d.remote = newRemote(client, rand.Text(), patient, d.at.Load, nil)
	t.Cleanup(func() { d.Close() })
	return d
}

func (d *lender) pass(by time.Duration) { d.at.Add(int64(by)) }

// leases leases n, and fails the test if that is denied.
func (d *lender) leases(n int64, term time.Duration, limits ...limit.Limit) (name string) {
	d.Helper()
	name, decisions, err := d.lease(d.Context(), store.Charge{Key: "key", Limits: limits, N: n}, term)
	if err != nil || name == "" {
		d.Fatalf("a lease of %d: %+v, %v", n, decisions, err)
	}
	return name
}

// ends ends a lease of which n was used. It returns nil if it was charged before.
func (d *lender) ends(name string, n int64, limits ...limit.Limit) *chargeReceipt {
	d.Helper()
	paid, err := d.end(d.Context(), store.Charge{Key: "key", Limits: limits, N: n}, name)
	if err != nil {
		d.Fatalf("end of a lease: %v", err)
	}
	return paid
}

// takes reports whether n passes.
func (d *lender) takes(n int64, limits ...limit.Limit) bool {
	d.Helper()
	r, decisions, err := d.Take(d.Context(), []store.Charge{{Key: "key", Limits: limits, N: n}})
	if err != nil || (r != nil) != store.Allowed(decisions) {
		d.Fatalf("take %d: %v, %+v, %v", n, r, decisions, err)
	}
	return r != nil
}

// wantRoom takes n, and fails unless exactly n passes.
func (d *lender) wantRoom(n int64, when string, limits ...limit.Limit) {
	d.Helper()
	if d.takes(n+1, limits...) {
		d.Fatalf("%s: %d pass; want %d", when, n+1, n)
	}
	if n > 0 && !d.takes(n, limits...) {
		d.Fatalf("%s: %d do not pass", when, n)
	}
}

// limitOfEachKind returns one limit of each kind, of count a period.
func limitOfEachKind(count int64, period time.Duration) map[string]limit.Limit {
	l := limit.New(count, period)
	return map[string]limit.Limit{
		"gcra":     l,
		"token":    l.Using(limit.TokenBucket),
		"leaky":    l.Using(limit.LeakyBucket),
		"fixed":    l.Using(limit.FixedWindow),
		"anchored": l.Anchored(),
		"calendar": limit.PerDay(count).ResetAt(0, time.UTC),
		"log":      l.Using(limit.SlidingLog),
		"counter":  l.Using(limit.SlidingCounter),
	}
}

// ofEvery runs a test with a limit of each kind.
func ofEvery(t *testing.T, count int64, test func(d *lender, l limit.Limit)) {
	client := dialed(t, redistest.New(t).URL())
	for name, l := range limitOfEachKind(count, time.Hour) {
		t.Run(name, func(t *testing.T) { test(newLender(t, client), l) })
	}
}

func TestLeaseCountsAsUsed(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		name := d.leases(4, time.Second, l)
		d.wantRoom(6, "beside a lease of 4", l)
		if name, _, err := d.lease(d.Context(), store.Charge{Key: "key", Limits: []limit.Limit{l}, N: 1}, time.Second); name != "" || err != nil {
			d.Errorf("a lease of 1 of nothing: %q, %v", name, err)
		}
		if d.ends(name, 1, l) == nil {
			d.Error("the end of a lease was denied")
		}
		d.wantRoom(3, "after 1 of 4 was spent", l)
	})
}

// A key that was leased and given back looks as if it had never been leased.
func TestLeaseOfWhichNothingWasSpent(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		other := newLender(d.TB, d.client)
		for step := range 12 {
			name, _, err := d.lease(d.Context(), store.Charge{Key: "key", Limits: []limit.Limit{l}, N: 2}, time.Second)
			if err != nil {
				d.Fatal(err)
			}
			if name != "" {
				d.ends(name, 0, l)
			}
			d.pass(7 * time.Minute)
			other.pass(7 * time.Minute)
			n := int64(step % 4)
			var said [2][]limit.Decision
			for i, each := range []*lender{d, other} {
				charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}}
				var err error
				if said[i], err = each.Peek(each.Context(), charges); err != nil {
					d.Fatal(err)
				}
				_, decisions, err := each.Take(each.Context(), charges)
				if err != nil {
					d.Fatal(err)
				}
				said[i] = append(said[i], decisions...)
			}
			if !slices.Equal(said[0], said[1]) {
				d.Fatalf("step %d: %+v; without leases %+v", step, said[0], said[1])
			}
		}
	})
}

func TestLeaseExpiresOnce(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		name := d.leases(4, time.Second, l)
		d.pass(time.Second - 1)
		d.wantRoom(6, "a nanosecond before its end", l)
		d.pass(1)
		if d.takes(1, l) {
			d.Error("a lease that is over came back")
		}
		for range 2 {
			if d.ends(name, 1, l) != nil {
				d.Error("a lease that is over was ended")
			}
		}
		if d.takes(1, l) {
			d.Error("the end of a lease that was over gave something back")
		}
		d.pass(48 * time.Hour)
		d.wantRoom(10, "after it was forgotten", l)
	})
}

func TestLeaseEndsOnce(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		name := d.leases(4, time.Second, l)
		if d.ends(name, 3, l) == nil || d.ends(name, 3, l) != nil {
			d.Error("want one end of two")
		}
		d.wantRoom(7, "after 3 of 4 were spent", l)
	})
}

// A full key is forgotten with its leases. If the server still has its bytes, and its clock goes
// back, what was forgotten counts again, and no less: a lease that had ended in the meantime is
// open again, and is charged once.
func TestLeaseThatWasForgottenWhenTheClockGoesBack(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		for _, told := range []bool{true, false} {
			d := newLender(d.TB, d.client)
			name := d.leases(4, time.Second, l)
			d.pass(72 * time.Hour)
			if d.ends(name, 3, l) != nil || d.leaseCount() > 0 {
				d.Error("a lease that was forgotten was ended")
			}
			d.pass(-96 * time.Hour)
			d.takes(0, l)
			d.wantLeft(6, "after the clock went back", l)
			used := int64(4) // all of it, unless its end is reported
			if told {
				used = 3
				if d.ends(name, used, l) == nil {
					d.Error("a lease that is open was not ended")
				}
			}
			d.pass(time.Second)
			if d.takes(0, l); d.leaseCount() > 0 || d.ends(name, 3, l) != nil {
				d.Error("a lease was ended twice")
			}
			d.wantRoom(10-used, "after it was charged", l)
		}
	})
}

// Amounts that may be used of leases until they end are not forgotten earlier than if they were
// taken then.
func TestLeaseIsNotForgotten(t *testing.T) {
	const term = 20 * time.Minute
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		less := l.WithCount(5).WithBurst(5)
		for _, test := range []struct {
			name          string
			limit         limit.Limit
			taken, leased int64
			do            func(d *lender)
		}{
			{"two leases", l, 0, 10, func(d *lender) { d.leases(5, term, l); d.leases(5, term, l) }},
			{"a lease and a take", l, 5, 5, func(d *lender) { d.leases(5, term, l); d.takes(5, l) }},
			{"a take and a lease", l, 5, 5, func(d *lender) { d.takes(5, l); d.leases(5, term, l) }},
			{"a lease and a debt", l, 5, 5, func(d *lender) { d.leases(5, term, l); d.owes(5, l) }},
			{"a lease of what is less now", less, 0, 5, func(d *lender) { d.leases(5, term, l); d.takes(1, less) }},
		} {
			into := 50 * time.Minute // so that leases outlast a window
			if kindOf(l) == kindCalendar {
				into += 11 * time.Hour
			}
			for after := term; after < 3*time.Hour; after += 17 * time.Minute {
				d := newLender(d.TB, d.client)
				d.pass(into)
				s := &spent{limit: test.limit}
				s.add(d.at.Load(), test.taken)
				s.add(d.at.Load()+int64(term)-1, test.leased)
				test.do(d)
				d.pass(after)
				s.add(d.at.Load(), d.most(test.limit))
				if err := s.bound(); err != nil {
					d.Errorf("%s, seen again %v later: %v", test.name, after, err)
				}
			}
		}
	})
}

// owes charges a debt of n.
func (d *lender) owes(n int64, limits ...limit.Limit) {
	d.Helper()
	r, _, err := d.Take(d.Context(), []store.Charge{{Key: "key", Limits: limits}})
	if err == nil {
		err = d.Settle(d.Context(), r, []int64{n})
	}
	if err != nil {
		d.Fatal(err)
	}
}

// most takes as much as the limits allow.
func (d *lender) most(l limit.Limit) int64 {
	d.Helper()
	for n := l.Burst(); n > 0; n-- {
		if d.takes(n, l) {
			return n
		}
	}
	return 0
}

// A lease is charged to its own limits, whichever limits the call has that finds its term over, or that
// finds the limits changed.
func TestLeaseBesideOtherLimits(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	a, b := limit.New(10, time.Hour), limit.New(10, 2*time.Hour)
	log := limit.New(10, time.Hour).Using(limit.SlidingLog)
	for _, test := range []struct {
		name        string
		lease, asks []limit.Limit
	}{
		{"others", []limit.Limit{a}, []limit.Limit{b}},
		{"some", []limit.Limit{a, b}, []limit.Limit{a}},
		{"more", []limit.Limit{a}, []limit.Limit{a, b}},
		{"without the log", []limit.Limit{a, log}, []limit.Limit{a}},
		{"without the bucket", []limit.Limit{a, log}, []limit.Limit{log}},
		{"with a log", []limit.Limit{a}, []limit.Limit{a, log}},
		{"none", []limit.Limit{a, log}, nil},
	} {
		for _, over := range []bool{false, true} {
			for _, used := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, over: %v, used: %v", test.name, over, used), func(t *testing.T) {
					d := newLender(t, client)
					room := int64(6)
					if used {
						d.takes(1, test.lease...)
						room--
					}
					name := d.leases(4, time.Millisecond, test.lease...)
					if over {
						d.pass(time.Millisecond)
					}
					if !d.takes(0, test.asks...) || !d.takes(1, test.asks...) {
						t.Fatal("1 of 6 does not pass")
					}
					if slices.Contains(test.asks, test.lease[0]) || slices.Contains(test.asks, test.lease[len(test.lease)-1]) {
						room--
					}
					d.wantRoom(room, "of its limits", test.lease...)
					d.pass(time.Millisecond)
					d.ends(name, 4, test.lease...)
					if d.takes(1, test.lease...) {
						t.Error("its end gave something back")
					}
				})
			}
		}
	}
}

// The same with the server's clock: keys expire there.
func TestLeaseByTheServersClock(t *testing.T) {
	d := &lender{TB: t, remote: newRemote(dialed(t, redistest.New(t).URL()), "server", patient, nil, nil)}
	t.Cleanup(func() { d.Close() })
	a, log := limit.New(10, 1000*time.Hour), limit.New(10, 1000*time.Hour).Using(limit.SlidingLog)
	for _, limits := range [][]limit.Limit{{a, log}, {a}, {log}} {
		for _, asks := range [][]limit.Limit{{a}, {log}, {log, a}, nil} {
			if err := d.Reset(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if !d.takes(1, limits...) {
				t.Fatal("1 of 10 does not pass")
			}
			name := d.leases(4, time.Minute, limits...)
			if !d.takes(0, asks...) || !d.takes(1, asks...) {
				t.Fatal("1 of 9 does not pass")
			}
			if d.ends(name, 2, limits...) == nil || !d.takes(6, limits...) || d.takes(2, limits...) {
				t.Errorf("%v, beside %v: want 6 or 7 after 3 or 4 of 10", limits, asks)
			}
		}
	}
}

// A lease stays used until it ends when the count of its limit changes.
func TestLeaseOfALimitThatChanges(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		more := l.WithCount(20).WithBurst(20)
		name := d.leases(4, time.Second, l)
		d.wantLeft(16, "of 20", more)
		d.wantRoom(16, "of 20", more)
		d.ends(name, 4, l)
		if d.takes(1, l) || d.takes(1, more) {
			d.Error("more passes after its end")
		}
	})
}

// A lease whose limit has changed can be used until its term is over: it counts from then on, no
// earlier.
func TestLeaseOfALimitThatChangesIsSpentLater(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		const term = 20 * time.Minute
		more := l.WithCount(20).WithBurst(20)
		s := &spent{limit: more}
		d.pass(45 * time.Minute)
		d.leases(4, term, l)
		d.takes(0, more)
		if d.takes(1, more) {
			s.add(d.at.Load(), 1)
		}
		s.add(d.at.Load()+int64(term)-1, 4)
		for _, after := range []time.Duration{term, time.Hour - term, time.Second} {
			d.pass(after)
			for n := int64(20); n > 0; n-- {
				if d.takes(n, more) {
					s.add(d.at.Load(), n)
				}
			}
		}
		if err := s.bound(); err != nil {
			d.Error(err)
		}
	})
}

// A key with a lease that was never ended can be asked for whenever it is in use.
func TestLeaseThatIsFoundLate(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	month := 31 * 24 * time.Hour
	for name, limits := range map[string][]limit.Limit{
		"days":           {limit.PerDay(10).ResetAt(0, time.UTC), limit.New(1000, month).Using(limit.SlidingLog)},
		"months":         {limit.New(10, month).Using(limit.SlidingCounter)},
		"hours":          {limit.New(10, time.Hour).Using(limit.FixedWindow), limit.New(1000, 2*month).Using(limit.SlidingLog)},
		"buckets":        {limit.New(10, 2*month)},
		"the calendar's": {limit.PerMonth(10).ResetMonthly(31, 0, nil), limit.PerHour(10).ResetHourly(0, nil)},
	} {
		for _, after := range []time.Duration{time.Hour, 2 * 24 * time.Hour, 4 * 24 * time.Hour, month - time.Hour, 50 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				d := newLender(t, client)
				d.takes(6, limits...)
				d.leases(4, time.Second, limits...)
				d.pass(after)
				if !d.takes(0, limits...) {
					t.Error("nothing does not pass")
				}
			})
		}
	}
}

// However many leases a key has, none is forgotten.
func TestManyLeasesOfOneKey(t *testing.T) {
	l := limit.New(1000, time.Hour)
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	var leased int64
	for range 300 {
		name, _, err := d.lease(t.Context(), store.Charge{Key: "key", Limits: []limit.Limit{l}, N: 1}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" {
			leased++
		}
	}
	d.wantRoom(1000-leased, fmt.Sprint("beside ", leased, " leases"), l)
}

// A clock that goes back frees nothing of a lease, and does not prolong it, whichever call sees it
// first.
func TestLeaseWhileTheClockGoesBack(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		for name, first := range map[string]func(d *lender, r store.Receipt){
			"take": func(d *lender, _ store.Receipt) { d.takes(0, l) },
			"peek": func(d *lender, _ store.Receipt) { d.wantLeft(5, "while the clock is back", l) },
			"settlement": func(d *lender, r store.Receipt) {
				if err := d.Settle(d.Context(), r, []int64{0}); err != nil {
					d.Fatal(err)
				}
			},
		} {
			d := newLender(d.TB, d.client)
			d.pass(5 * time.Hour)
			r, _, err := d.Take(d.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
			if err != nil {
				d.Fatal(err)
			}
			d.leases(4, time.Second, l)
			d.pass(-4 * time.Hour)
			first(d, r)
			d.wantRoom(5, "after the clock went back, which a "+name+" saw", l)
			d.pass(time.Second)
			if d.takes(0, l); d.leaseCount() > 0 {
				d.Errorf("a lease is open when its time is over, after a %s saw that the clock went back", name)
			}
		}
	})
}

// The ring of a log grows while it is leased.
func TestLeaseOfALogThatGrows(t *testing.T) {
	l := limit.New(1000, time.Hour).Using(limit.SlidingLog)
	d := newLender(t, dialed(t, redistest.New(t).URL()))
	name, dies := d.leases(100, 10*time.Minute, l), d.leases(50, 10*time.Minute, l)
	for range 200 {
		d.pass(time.Second)
		if !d.takes(1, l) {
			t.Fatal("1 does not pass")
		}
	}
	paid := d.ends(name, 60, l)
	if paid == nil {
		t.Fatal("a lease was forgotten")
	}
	d.wantRoom(1000-50-200-60, "after its end", l)
	d.pass(10 * time.Minute)
	if d.takes(1, l) || d.ends(dies, 0, l) != nil {
		t.Error("what was not ended in time came back")
	}
}

// One log serves all periods of a key: what is leased of one counts in all.
func TestLeaseOfALogCountsInEveryPeriod(t *testing.T) {
	hour, minute := limit.PerHour(10).Using(limit.SlidingLog), limit.PerMinute(10).Using(limit.SlidingLog)
	client := dialed(t, redistest.New(t).URL())
	for _, used := range []int64{0, 1} {
		d := newLender(t, client)
		d.takes(used, hour)
		name := d.leases(4, time.Second, hour)
		d.wantLeft(6-used, "of another period", minute)
		d.wantRoom(6-used, "of another period", minute)
		d.ends(name, 4, hour)
		if d.takes(1, minute) || d.takes(1, hour) {
			t.Error("1 passes after 10")
		}
	}
}

// Parts of a lease are settled separately, where its end was charged.
func TestSettlePartsOfALease(t *testing.T) {
	ofEvery(t, 100, func(d *lender, l limit.Limit) {
		paid := d.ends(d.leases(60, time.Second, l), 60, l)
		for _, part := range []struct{ n, actual int64 }{{10, 4}, {20, 0}, {30, 30}} {
			of := *paid
			of.N = part.n
			if done, err := d.correct(d.Context(), settlement{takes: []*chargeReceipt{&of}, actual: []int64{part.actual}}); !done || err != nil {
				d.Fatal(done, err)
			}
		}
		d.wantRoom(100-34, "after 34 were used", l)
	})
}

func TestLeaseIsForgottenByReset(t *testing.T) {
	ofEvery(t, 10, func(d *lender, l limit.Limit) {
		for _, forget := range []func() error{
			func() error { return d.Reset(d.Context(), "k") },
			func() error { return d.client.Do(d.Context(), d.client.B().Flushall().Build()).Error() },
		} {
			name := d.leases(4, time.Second, l)
			d.takes(6, l)
			if err := forget(); err != nil {
				d.Fatal(err)
			}
			if d.ends(name, 4, l) != nil {
				d.Error("a lease that was forgotten has ended")
			}
			d.wantRoom(10, "after all was forgotten", l)
			if err := forget(); err != nil {
				d.Fatal(err)
			}
		}
	})
}

// TestDecisionsBesideALease checks decisions while some of a limit is leased.
func TestDecisionsBesideALease(t *testing.T) {
	ofEvery(t, 16, func(d *lender, l limit.Limit) {
		d.leases(4, time.Second, l)
		for _, left := range []int64{12, 10, 0} {
			for n := range int64(20) {
				d.wantSaid(n, left, l)
			}
			if left == 12 {
				d.takes(2, l)
			} else {
				d.takes(left, l)
			}
		}
	})
}

// wantSaid fails the test unless a peek of n, and a take of n that is denied, report that an amount is
// left.
func (d *lender) wantSaid(n, left int64, l limit.Limit) {
	d.Helper()
	charges := []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: n}}
	decisions, err := d.Peek(d.Context(), charges)
	if err != nil {
		d.Fatal(err)
	}
	said := decisions[0]
	if said.Allowed != (n <= left) || said.Remaining != left {
		d.Errorf("a peek of %d where %d are left: %+v", n, left, said)
	}
	if said.Allowed != (said.RetryAfter == 0) || said.RetryAfter < 0 || (said.RetryAfter == limit.Never) != (n > l.Burst()) {
		d.Errorf("a peek of %d is told to come back after %v", n, said.RetryAfter)
	}
	if said.Allowed {
		return
	}
	if r, taken, err := d.Take(d.Context(), charges); r != nil || err != nil || taken[0] != said {
		d.Errorf("a take of %d is told %+v, %v; a peek %+v", n, taken, err, said)
	}
}

func TestLeasesOfHugeAmounts(t *testing.T) {
	const most = 1 << 62
	ofEvery(t, most, func(d *lender, l limit.Limit) {
		all := d.leases(most, time.Second, l)
		d.wantSaid(most, 0, l)
		d.ends(all, 0, l)
		name := d.leases(most-1, time.Second, l)
		d.wantSaid(most, 1, l)
		d.wantRoom(1, "beside a lease of all but one", l)
		if d.ends(name, 7, l) == nil {
			d.Error("the end of a lease was denied")
		}
		d.wantRoom(most-8, "after 8 were used", l)
	})
}
