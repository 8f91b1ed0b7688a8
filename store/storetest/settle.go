package storetest

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// settledOnce: of several settlements of a receipt, concurrent or later, one counts.
func settledOnce(b *bench, l limit.Limit) {
	r := b.mustTake(charge("key", 50, l))
	var next atomic.Int64
	atOnce(func(*rand.Rand) {
		if err := b.store.Settle(b.Context(), r, []int64{10 + next.Add(1)}); err != nil {
			b.Errorf("settle: %v", err)
		}
	})
	left := b.left("key", l)
	if used := l.Count() - left; used < 11 || used > 10+next.Load() {
		b.Fatalf("%v: %d are used after one take was settled for 11 to %d, at once", l, used, 10+next.Load())
	}
	for _, actual := range []int64{0, 50, 90, -1} {
		b.settle(r, actual)
		b.wantLeft(left, "key", l, "after it was settled again")
	}
}

// leftAsItIs: a negative amount leaves a take as it is, for good.
func leftAsItIs(b *bench, l limit.Limit) {
	r := b.mustTake(charge("a", 4, l), charge("b", 4, l))
	b.settle(r, -1, 1)
	b.wantLeft(l.Count()-4, "a", l, "after 4 were taken")
	b.wantLeft(l.Count()-1, "b", l, "after 1 of 4 was used")
	b.settle(r, 0, 0)
	b.wantLeft(l.Count()-4, "a", l, "after it was settled again")
}

// debtsDelay: what was used beyond a take is a debt, and paid by waiting.
func debtsDelay(b *bench, l limit.Limit) {
	r := b.mustTake(charge("key", l.Count()-3, l))
	b.settle(r, l.Count()+5)
	b.wantLeft(0, "key", l, "after more than all of it was used")
	retry := b.mustNotTake(charge("key", 1, l))
	if retry <= 0 || retry == limit.Never {
		b.Fatalf("%v: what is owed is paid after %v", l, retry)
	}
	b.clock.add(retry - 1)
	b.mustNotTake(charge("key", 1, l))
	b.clock.add(1)
	b.mustTake(charge("key", 1, l))
}

// debtsDenyZero: while more is used than the limit allows, even zero is denied until the debt is
// gone.
func debtsDenyZero(b *bench, l limit.Limit) {
	r := b.mustTake(charge("key", l.Count(), l))
	b.mustTake(charge("key", 0, l))
	b.settle(r, l.Count()+5)
	peeked, zero := b.peek(charge("key", 0, l))[0], charge("key", 0, l)
	if peeked.Allowed || peeked.Used != l.Count()+5 || peeked.Remaining != 0 {
		b.Errorf("%v: a peek at zero in a debt of 5: %+v", l, peeked)
	}
	other := charge("other", 1, l)
	retry := b.mustNotTake(other, zero)
	if retry != peeked.RetryAfter || retry <= 0 || retry > b.mustNotTake(charge("key", 1, l)) {
		b.Errorf("%v: zero is told to come back after %v; a peek says %v", l, retry, peeked.RetryAfter)
	}
	b.wantLeft(l.Count(), "other", l, "after zero of another key was denied")
	b.clock.add(retry - 1)
	b.mustNotTake(zero)
	b.clock.add(1)
	b.mustTake(other, zero)
	if d := b.peek(zero)[0]; d.Used > l.Count() {
		b.Errorf("%v: zero passes while %d are used", l, d.Used)
	}
}

// boundless is the count of a limit that allows anything.
const boundless = 1 << 62

// chargedWhatever: an amount that is charged to a limit like that of the key, but with a boundless
// count, is used of the key's limit too, whatever that says.
func chargedWhatever(t *testing.T, newStore opener) {
	for _, name := range []string{"fixed window", "anchored", "log", "days of a zone"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, newStore)
			l := everyRule(10, time.Minute)[name].Limit
			any, hour := l.WithCount(boundless), limit.PerHour(100).Using(limit.SlidingLog)
			r := b.mustTake(charge("key", 6, l, hour))
			began := b.peek(charge("key", 1, l))[0].Since
			b.clock.add(time.Second)
			b.mustTake(charge("key", 7, any, hour.WithCount(boundless)))
			want := func(used int64, after string) {
				t.Helper()
				for _, d := range b.peek(charge("key", 0, l, hour)) {
					if d.Used != used || d.Remaining != max(d.Limit.Count()-used, 0) {
						t.Fatalf("%s: %+v; want %d used", after, d, used)
					}
				}
				if d := b.peek(charge("key", 0, l))[0]; d.Since != began {
					t.Fatalf("%s: the window began at %d; want %d", after, d.Since, began)
				}
			}
			want(13, "6 were taken and 7 charged")
			b.mustNotTake(charge("key", 0, l, hour))
			b.settle(r, 2)
			want(9, "2 of 6 were used and 7 charged")
			b.mustTake(charge("key", 1, l, hour))
			late := b.mustTake(charge("key", 3, any, hour.WithCount(boundless)))
			want(13, "1 was taken and 3 charged")
			b.settle(late, 5)
			want(15, "5 of 3 were used")
			b.clock.add(b.peek(charge("key", 0, l))[0].ResetAfter)
			if d := b.peek(charge("key", 0, l))[0]; d.Used != 0 || d.Since != 0 {
				t.Errorf("after all has passed: %+v", d)
			}
			b.mustTake(charge("fresh", 4, any))
			b.wantLeft(6, "fresh", l, "after 4 were charged to a fresh key")
		})
	}
}

// debtsOfNothing: a take of zero that used something in the end owes it.
func debtsOfNothing(b *bench, l limit.Limit) {
	for _, between := range []int64{0, 1} { // taken in between
		b.reset("")
		r := b.mustTake(charge("key", 0, l))
		b.clock.add(1)
		b.mustTake(charge("key", between, l))
		b.settle(r, 3)
		b.wantLeft(l.Count()-3-between, "key", l, "after 3 were used that were not taken")
	}
}

// besides are limits beside the tested one: none, or one for which the key is remembered much
// longer.
var besides = [][]limit.Limit{nil, {limit.New(1000, 1000*24*time.Hour)}}

// refundsAreNoHeadroom: a take from a window that has passed is not given back in a later one.
func refundsAreNoHeadroom(b *bench, l limit.Limit) {
	for _, beside := range besides {
		b.reset("")
		all := charge("key", l.Count(), append(beside, l)...)
		r := b.mustTake(all)
		b.clock.add(2*l.Period() + time.Hour) // a day may have 25
		b.mustTake(all)
		b.settle(r, 0)
		b.mustNotTake(charge("key", 1, append(beside, l)...))
	}
}

// settledLate: a take is given back in its own window as far as it still counts there, and nowhere
// else.
func settledLate(b *bench, l limit.Limit) {
	for _, beside := range besides {
		b.reset("")
		limits := append(beside, l)
		r := b.mustTake(charge("key", l.Count()-4, limits...))
		b.clock.add(l.Period() + l.Period()/4)
		b.mustTake(charge("key", 2, limits...))
		b.settle(r, 0)
		b.mustNotTake(charge("key", l.Count()-1, limits...)) // beside 2
		b.mustTake(charge("key", l.Count()-2, limits...))
		b.clock.add(4 * l.Period())
	}
}

// daysThatHaveNotBegun: an anchored day whose only take was given back has not begun, though another
// limit of the key, which is l, still counts. The next take begins it.
func daysThatHaveNotBegun(b *bench, l limit.Limit) {
	day := limit.PerDay(20).Anchored()
	limits := []limit.Limit{day, l}
	for _, late := range []time.Duration{0, 20 * time.Second} { // of the refund
		b.reset("")
		b.mustTake(charge("key", 1, limits...))
		b.clock.add(day.Period() - 10*time.Second)
		b.mustTake(charge("key", 1, limits...))
		b.clock.add(20 * time.Second)
		r := b.mustTake(charge("key", 1, limits...)) // begins the second day
		b.clock.add(late)
		b.settle(r, 0)
		b.clock.add(time.Second)
		if d := b.peek(charge("key", 0, limits...))[0]; d.Used != 0 || d.Since != 0 || d.ResetAfter != 0 {
			b.Fatalf("after the refund, the day has begun: %+v", d)
		}
		r, decisions := b.take(charge("key", 1, limits...))
		if d := decisions[0]; r == nil || d.Used != 1 || d.Since != b.clock.now() || d.ResetAfter != day.Period() {
			b.Fatalf("the take after the refund did not begin the day: %+v", d)
		}
	}
}

// refundsDoNotAddUp: once a bucket's first take was given back, the amount of the second has
// drained, so it is not given back again.
func refundsDoNotAddUp(t *testing.T, newStore opener) {
	for _, a := range []limit.Algorithm{limit.GCRA, limit.TokenBucket, limit.LeakyBucket} {
		b := newBench(t, newStore)
		l := limit.New(1, time.Second).WithBurst(2).Using(a)
		first, second := b.mustTake(charge("key", 1, l)), b.mustTake(charge("key", 1, l))
		b.settle(first, 0)
		b.clock.add(time.Second)
		b.mustTake(charge("key", 1, l))
		b.settle(second, 0)
		b.wantLeft(1, "key", l, "beside one that was just taken")
	}
}

// resetVoidsReceipts: a take from before a reset is not given back after it.
func resetVoidsReceipts(b *bench, l limit.Limit) {
	for _, by := range []time.Duration{0, 1} {
		b.reset("")
		r := b.mustTake(charge("key", l.Count(), l))
		b.reset("key")
		again := b.mustTake(charge("key", l.Count(), l))
		b.clock.add(by)
		b.settle(r, 0)
		b.mustNotTake(charge("key", 1, l))
		b.settle(again, 0)
		b.mustTake(charge("key", l.Count(), l))
	}
	b.reset("")
	r := b.mustTake(charge("key", 2, l))
	b.reset("")
	b.settle(r, 0)
	b.wantLeft(l.Count(), "key", l, "of nothing, after what was reset was given back")
}

// clockWentBack: a clock that goes back grants nothing and freezes nothing, and settlements after
// that free nothing that others have taken.
func clockWentBack(b *bench, l limit.Limit) {
	all := charge("key", l.Count(), l)
	for _, actual := range []int64{0, 1, l.Count() + 3, -1} {
		b.reset("")
		free := b.mustTake(charge("key", 0, l))
		r := b.mustTake(charge("key", l.Count()-2, l))
		b.clock.add(1)
		b.mustTake(charge("key", 2, l))
		b.clock.add(-30 * time.Hour)
		b.mustNotTake(charge("key", 3, l))
		b.settle(free, 1)
		b.mustNotTake(charge("key", 3, l))
		b.settle(r, actual)
		if actual < 0 || actual > l.Count()-2 {
			b.mustNotTake(charge("key", 3, l))
		} else {
			b.mustNotTake(charge("key", l.Count()-actual, l))
		}
		retry := b.mustNotTake(all)
		if retry <= 0 || retry > 3*l.Period() {
			b.Fatalf("%v: come back after %v, after the clock went back", l, retry)
		}
		b.clock.add(retry)
		b.mustTake(all)
	}
}

// peekedWhileBack: a peek while the clock is back frees nothing.
func peekedWhileBack(b *bench, l limit.Limit) {
	for _, back := range []time.Duration{time.Second, time.Hour, 30 * time.Hour} {
		b.reset("")
		r := b.mustTake(charge("key", 4, l))
		b.clock.add(-back)
		b.peek(charge("key", 1, l))
		b.clock.add(back)
		b.mustTake(charge("key", 3, l))
		b.settle(r, 0)
		b.clock.add(1)
		b.mustNotTake(charge("key", l.Count()-2, l)) // beside 3
		b.clock.add(l.Period() - back - 1)           // everything from the past has left by then
		if l.Algorithm() == limit.SlidingLog && back < l.Period() {
			b.mustNotTake(charge("key", l.Count()-2, l))
		}
	}
}

// stepsBack: a clock that steps back over the boundary of a window, and comes to it again, begins
// no new window.
func stepsBack(b *bench, l limit.Limit) {
	b.clock.add(-1) // at midnight
	for _, by := range []time.Duration{1, time.Millisecond, 10 * time.Second} {
		b.reset("")
		b.mustTake(charge("key", l.Count(), l))
		b.clock.add(-by)
		b.mustNotTake(charge("key", l.Count(), l))
		b.clock.add(by)
		b.mustNotTake(charge("key", l.Count(), l))
	}
}

// owedWhileBack: what was used beyond a take is owed, even if the settlement is the first call
// after the clock went back.
func owedWhileBack(b *bench, l limit.Limit) {
	for _, back := range []time.Duration{time.Second, time.Hour, 30 * time.Hour} {
		b.reset("")
		r := b.mustTake(charge("key", 4, l))
		b.clock.add(-back)
		b.settle(r, 9)
		b.wantLeft(1, "key", l, "after 9 were used")
	}
}

// foreignReceipts: a receipt of another store, or without one amount for each charge, changes
// nothing.
func foreignReceipts(t *testing.T, newStore opener) {
	b, other := newBench(t, newStore), newBench(t, newStore)
	l := limit.PerMinute(10)
	c := charge("key", 4, l)
	r, foreign := b.mustTake(c), other.mustTake(c)
	for _, test := range []struct {
		name    string
		receipt store.Receipt
		actual  []int64
	}{
		{"of another store", foreign, []int64{0}},
		{"a string", "receipt", []int64{0}},
		{"a number", 1, []int64{0}},
		{"a limit's", limit.Receipt{}, []int64{0}},
		{"no amount", r, nil},
		{"two amounts for one charge", r, []int64{0, 0}},
	} {
		if err := b.store.Settle(t.Context(), test.receipt, test.actual); !errors.Is(err, store.ErrReceipt) {
			t.Errorf("%s: %v; want %v", test.name, err, store.ErrReceipt)
		}
		b.wantLeft(6, "key", l, "after 4 were taken and not settled")
		other.wantLeft(6, "key", l, "of the other store")
	}
	b.settle(nil)
	b.settle(nil, 1, 2, 3)
	b.settle(r, 1)
	b.wantLeft(9, "key", l, "after 1 of 4 was used")
}

// ownCopies: a store does not keep the caller's slice of charges.
func ownCopies(t *testing.T, newStore opener) {
	b := newBench(t, newStore)
	l, other := limit.PerMinute(10).Using(limit.SlidingLog), limit.PerHour(99)
	charges := []store.Charge{charge("key", 4, l)}
	r := b.mustTake(charges...)
	charges[0] = charge("other", 50, other)
	b.settle(r, 1)
	b.wantLeft(9, "key", l, "after 1 of 4 was used")
	b.wantLeft(99, "other", other, "of what was never taken")
}
