package limit

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"
)

// propertyBuckets: the one bucket of the package decides as the token bucket,
// the leaky bucket and GCRA do by their own definitions, all three.
func propertyBuckets(t historyT, src historySource) {
	l := historyLimit(src, historyOneOf(src, GCRA, TokenBucket, LeakyBucket))
	historyAgree(t, src, newHistoryWalk(src, l, false), newModelTokens(l), newModelLeaky(l), newModelArrival(l))
}

func TestBucketsAgreeWithTheirDefinitions(t *testing.T) { historyRapid(t, propertyBuckets) }

// propertyBacklog: backlogs add and subtract exactly, and stop where they would
// overflow.
func propertyBacklog(t historyT, src historySource) {
	l := historyLimit(src, GCRA)
	parts := func(b backlog) *big.Int {
		if b.Parts < 0 || b.Parts >= l.Count() {
			t.Fatalf("%v: %+v is more than a nanosecond's parts", l, b)
		}
		ns := new(big.Int).Mul(big.NewInt(b.NS), big.NewInt(l.Count()))
		return ns.Add(ns, big.NewInt(b.Parts))
	}
	most := new(big.Int).Mul(big.NewInt(maxCount), big.NewInt(l.Count()))
	any := func() int64 { return historyOneOf(src, l.Burst(), 1, historyNumber(src, math.MaxInt64)>>src.pick(63)) }
	n, m := any(), any()
	a, b := l.backlogOf(n), l.backlogOf(m)
	want := new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(l.Period())))
	if got := parts(a); got.Cmp(want) != 0 && (want.Cmp(most) < 0 || got.Cmp(most) < 0) {
		t.Fatalf("%v: %d cost %v parts; want %v", l, n, got, want)
	}
	want.Add(parts(a), parts(b))
	if got := parts(l.sum(a, b)); got.Cmp(want) != 0 && (want.Cmp(most) < 0 || got.Cmp(most) < 0) {
		t.Fatalf("%v: %+v + %+v is %v parts; want %v", l, a, b, got, want)
	}
	want.Sub(parts(a), parts(b))
	if want.Sign() < 0 {
		want.SetInt64(0)
	}
	if got := parts(l.difference(a, b)); got.Cmp(want) != 0 {
		t.Fatalf("%v: %+v - %+v is %v parts; want %v", l, a, b, got, want)
	}
}

func TestBacklogIsExact(t *testing.T) { historyRapid(t, propertyBacklog) }

// A cost whose nanoseconds need exactly one bit more than a word has.
func TestBacklogOfTooMuch(t *testing.T) {
	for n := int64(1); n < 64; n++ {
		if got := New(1, maxPeriod).backlogOf(n); got.NS != maxPeriod && got.NS != maxCount {
			t.Errorf("%d of 1 every %v: %+v", n, time.Duration(maxPeriod), got)
		}
	}
}

// A used amount is from zero to the largest count.
func TestCorrect(t *testing.T) {
	for _, test := range []struct{ used, delta, want int64 }{
		{5, 3, 8}, {5, -3, 2}, {5, -5, 0}, {5, -6, 0}, {0, math.MinInt64, 0},
		{maxCount, -maxCount, 0}, {maxCount - 1, 1, maxCount}, {maxCount, 1, maxCount}, {0, math.MaxInt64, maxCount}, {maxCount, math.MaxInt64, maxCount},
	} {
		if got := correct(test.used, test.delta); got != test.want {
			t.Errorf("correct(%d, %d) = %d; want %d", test.used, test.delta, got, test.want)
		}
	}
}

// propertyBucketBound: whatever is asked, at most the burst and what the rate supplies
// in that time passes in any interval.
func propertyBucketBound(t historyT, src historySource) {
	l := historyLimit(src, GCRA)
	var s state
	passed := historyAdmissions(src, newHistoryWalk(src, l, true), func(now, n int64) modelAnswer {
		var v Verdict
		s, v = l.take(s, now, n)
		return modelAnswerOf(v)
	})
	historyBucketBound(t, l, passed)
}

func TestBucketBoundInAnyInterval(t *testing.T) { historyRapid(t, propertyBucketBound) }

func historyBucketBound(t historyT, l Limit, passed []modelPassed) {
	t.Helper()
	for i := range passed {
		sum := new(big.Int)
		for _, last := range passed[i:] {
			sum.Add(sum, big.NewInt(last.n))
			length := last.at - passed[i].at
			most := ratAdd(modelRat(l.Burst()), ratMul(modelRat(length), modelRate(l)))
			if new(big.Rat).SetInt(sum).Cmp(most) > 0 {
				t.Fatalf("%v: %v passed in %d ns from %d on, and at most %v may", l, sum, length, passed[i].at, most)
			}
		}
	}
}

// A bucket that settles is compared with a replay: the same takes at the same
// times, of the amounts that were used in the end.

// modelReplay returns the level of a bucket at now, in 1/count parts of a
// nanosecond, after takes in the order of time.
func modelReplay(l Limit, takes []modelPassed, now int64) *big.Int {
	level, at := new(big.Int), now
	drain := func(to int64) {
		level.Sub(level, new(big.Int).Mul(big.NewInt(to-at), big.NewInt(l.Count())))
		if level.Sign() < 0 {
			level.SetInt64(0)
		}
		at = to
	}
	for i, taken := range takes {
		if i == 0 {
			at = taken.at
		}
		drain(taken.at)
		level.Add(level, new(big.Int).Mul(big.NewInt(taken.n), big.NewInt(int64(l.Period()))))
	}
	drain(now)
	return level
}

// modelReplayAnswer returns the answer of a bucket with a level to a request for n.
func modelReplayAnswer(l Limit, parts *big.Int, n int64) modelAnswer {
	level := ratQuo(new(big.Rat).SetInt(parts), modelRat(int64(l.Period())))
	after := ratAdd(level, modelRat(n))
	a := modelAnswer{}
	if over := ratSub(after, modelRat(l.Burst())); over.Sign() <= 0 {
		a.allowed = true
		level = after
	} else {
		a.retry = time.Duration(ratCeil(ratQuo(over, modelRate(l))))
	}
	a.used, a.remaining = ratCeil(level), max(ratFloor(ratSub(modelRat(l.Burst()), level)), 0)
	a.reset = time.Duration(ratCeil(ratQuo(level, modelRate(l))))
	return a
}

// historySettling is one key of a book, with all takes of it, settled and not. Times are
// explicit.
type historySettling struct {
	limit  Limit
	key    *demand
	offset int64 // from the clock that the book counts by to that of the history

	takes  []modelPassed // with what was used in the end
	claims []*claim
	open   []int // the indexes of the takes that are not settled
}

// newHistorySettling returns a key whose counters are any number of states.
func newHistorySettling(l Limit) *historySettling {
	b := newBook(nil)
	return &historySettling{limit: l, key: &demand{book: b, hash: 1, limits: []Limit{l}}, offset: b.offset}
}

// newWordSettling returns a key whose counter is one word.
func newWordSettling(l Limit) *historySettling {
	return &historySettling{limit: l, key: &demand{book: newBook([]Limit{l}), hash: 1, limits: []Limit{l}}}
}

func (k *historySettling) look(now, n int64) modelAnswer {
	k.key.lock(true)
	defer k.key.unlock()
	r := unruled
	k.key.check(&r, now-k.offset, n)
	return modelAnswerOf(r.Verdict)
}

// take takes n if the limit allows it.
func (k *historySettling) take(now, n int64) modelAnswer {
	a := k.look(now, n)
	if !a.allowed {
		return a
	}
	k.key.lock(true)
	defer k.key.unlock()
	k.key.n = n
	k.key.take(now - k.offset)
	var r Reservation
	r.add(k.key, now-k.offset)
	k.claims = append(k.claims, r.claims...)
	k.open = append(k.open, len(k.takes))
	k.takes = append(k.takes, modelPassed{now, n})
	return a
}

// settle settles the i-th of the open takes.
func (k *historySettling) settle(i int, now, actual int64) {
	at := k.open[i]
	k.open = append(k.open[:i:i], k.open[i+1:]...)
	k.takes[at].n = actual
	k.key.lock(true)
	defer k.key.unlock()
	k.key.settle(k.claims[at], now-k.offset, actual)
}

// historySettleLimit returns a limit of which several times the count can be a debt and
// still be counted exactly.
func historySettleLimit(src historySource, a Algorithm) Limit {
	count := historyOneOf[int64](src, 3, 1, 2, 10, 97, 1000, 65_537, 1_000_000_007)
	period := historyOneOf(src, time.Second, 7, 1000, 999_999_937, time.Minute, time.Hour, 24*time.Hour)
	l := New(count, period).Using(a)
	if a.bursts() {
		l = l.WithBurst(historyOneOf(src, count, 1, 2*count))
	}
	return l
}

func historyActual(src historySource, taken, burst int64) int64 {
	switch src.pick(5) {
	case 0:
		return 0
	case 1:
		return taken / 2
	case 2:
		return taken
	case 3:
		return taken + historyNumber(src, burst)
	default:
		return historyNumber(src, max(taken, 1))
	}
}

// historySettlesExactly compares a counter that is settled with a model that is built
// anew from the corrected takes, after each step. Takes are of least or more.
func historySettlesExactly(t historyT, src historySource, l Limit, least int64, build func(takes []modelPassed) model) {
	t.Helper()
	k := newHistorySettling(l)
	w := newHistoryWalk(src, l, true)
	w.now = max(w.now, 1)
	last := modelAnswer{}
	for range 4 + src.pick(30) {
		now, n := w.step(last)
		if len(k.open) > 0 && src.pick(3) == 1 {
			i := src.pick(len(k.open))
			k.settle(i, now, historyActual(src, k.takes[k.open[i]].n, l.Count()))
		} else {
			k.take(now, max(historyOneOf(src, n, 1, last.remaining), least))
		}
		for _, n := range []int64{l.Count(), 1, 0} {
			last = k.look(now, n)
			if want := build(slices.Clone(k.takes)).take(now, n); last != want {
				t.Fatalf("%v: take %d at %d: %+v, and the replay of %v says %+v", l, n, now, last, k.takes, want)
			}
		}
	}
}

// propertyBucketSettle: a bucket that was settled never grants more, nor
// earlier, than the replay.
func propertyBucketSettle(t historyT, src historySource) { bucketSettle(t, src, 1) }

// bucketSettle takes no less than least.
func bucketSettle(t historyT, src historySource, least int64) {
	l := historySettleLimit(src, GCRA)
	k := newHistorySettling(l)
	historySettles(t, src, k, 1_700_000_000_000_000_000, least)
}

func historySettles(t historyT, src historySource, k *historySettling, now, least int64) {
	t.Helper()
	l := k.limit
	each := int64(l.Period())/l.Count() + 1
	a := modelAnswer{}
	for range 8 + src.pick(24) {
		now += historyOneOf(src, 0, each, 1, int64(a.reset)/2, int64(a.reset), each/2)
		if len(k.open) > 0 && src.pick(2) == 1 {
			i := src.pick(len(k.open))
			k.settle(i, now, historyActual(src, k.takes[k.open[i]].n, l.Burst()))
		} else {
			k.take(now, max(historyOneOf(src, 1, 0, a.remaining, l.Burst()/2), least))
		}
		a = historyNoLaxer(t, k, now)
	}
}

// historyNoLaxer fails the test if a bucket allows more than the replay, or earlier. It
// returns the bucket's answer to a request for zero.
func historyNoLaxer(t historyT, k *historySettling, now int64) modelAnswer {
	t.Helper()
	l := k.limit
	level := modelReplay(l, k.takes, now)
	left := k.look(now, 0)
	got, want := left, modelReplayAnswer(l, level, 0)
	if got.remaining > want.remaining || got.reset < want.reset {
		t.Fatalf("%v at %d: %+v, and the replay of %v says %+v", l, now, got, k.takes, want)
	}
	for _, n := range []int64{1, l.Burst()} {
		got, want = k.look(now, n), modelReplayAnswer(l, level, n)
		if got.retry < want.retry {
			t.Fatalf("%v: take %d at %d: %+v, and the replay of %v says %+v", l, n, now, got, k.takes, want)
		}
	}
	return left
}

func TestBucketSettlesNoLaxerThanTheReplay(t *testing.T) { historyRapid(t, propertyBucketSettle) }

// A take of zero leaves no trace. What was used in the end is still a debt.
func TestBucketSettlesWhatWasTakenForNothing(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) { bucketSettle(t, src, 0) })
}

// If nothing else was taken in between, settling is the same as the replay: to the unit
// while the whole refund still counts, and to the nanosecond after that.
func TestBucketSettlesAsTheReplay(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) {
		l := historySettleLimit(src, GCRA)
		w := newHistoryWalk(src, l, true)
		k := newHistorySettling(l)
		for range src.pick(5) { // what was taken before it
			k.take(w.step(modelAnswer{}))
		}
		now, _ := w.step(modelAnswer{})
		n := historyNumber(src, k.look(now, 0).remaining)
		if n == 0 {
			return
		}
		k.take(now, n)
		drains := int64(k.look(now, 0).reset)
		later, _ := w.step(k.look(now, 0))
		actual := historyActual(src, n, l.Burst())
		k.settle(len(k.open)-1, later, actual)

		refund := ratQuo(modelRat(n-actual), modelRate(l))
		slack := time.Duration(0)
		if refund.Cmp(modelRat(now+drains-1-later)) > 0 {
			slack = 1
		}
		level := modelReplay(l, k.takes, later)
		for _, n := range []int64{0, 1, l.Burst()} {
			got, want := k.look(later, n), modelReplayAnswer(l, level, n)
			late := got.retry < want.retry || got.retry > want.retry+slack
			if n == 0 {
				late = got.reset < want.reset || got.reset > want.reset+slack
			}
			if late || slack == 0 && got != want {
				t.Fatalf("%v: take %d at %d: %+v, and the replay of %v says %+v", l, n, later, got, k.takes, want)
			}
		}
	})
}

// Cancelling at once leaves no trace.
func TestBucketCancelAtOnceGivesAllBack(t *testing.T) {
	for _, l := range []Limit{PerSecond(3), New(7, 1000).WithBurst(20), New(1_000_000_007, time.Minute), New(1<<62, 1)} {
		k := newHistorySettling(l)
		const now = 1_700_000_000_000_000_000
		k.take(now, 1)
		k.settle(0, now, 0)
		if a := k.look(now, 0); a.remaining != l.Burst() || a.reset != 0 {
			t.Errorf("%v: took 1 and cancelled it: %+v", l, a)
		}
	}
}

// Of two calls at the same time, both use nothing in the end. After the refund to the
// first, the second has drained, and gets no refund.
func TestBucketRefundsDoNotAddUp(t *testing.T) {
	l := New(1, 10).WithBurst(2)
	k := newHistorySettling(l)
	const start = 1000
	k.take(start, 1)
	k.take(start, 1)
	k.settle(0, start, 0)
	k.take(start+10, 1)
	k.settle(0, start+10, 0)
	if a := k.look(start+10, 2); a.allowed {
		t.Errorf("%v: 2 more may pass beside one that was just taken: %+v", l, a)
	}
	historyNoLaxer(t, k, start+10)
}

// A debt is added to others, whichever of them was taken first.
func TestBucketDebtsAddUp(t *testing.T) {
	l := New(1, 10).WithBurst(3)
	const start = 1000
	for first := range 2 {
		k := newHistorySettling(l)
		k.take(start, 1)
		k.take(start+10, 0)
		k.settle(first, start+10, 3)
		k.settle(0, start+10, 3)
		if a := k.look(start+10, 0); a.reset < 50 {
			t.Errorf("%v: 6 were used, of which 1 has drained: %+v", l, a)
		}
		historyNoLaxer(t, k, start+10)
	}
}

// A counter that is full again may be forgotten. A take from it is settled as if it had
// not been forgotten.
func TestSettlesWhatWasForgotten(t *testing.T) {
	forget := func(k *historySettling) {
		k.key.lock(true)
		defer k.key.unlock()
		if k.key.book.words != nil {
			k.key.word.set(0)
		} else {
			*k.key.cell.slot.value = counters{}
		}
	}
	test := func(l Limit, start int64, make func(Limit) *historySettling) {
		for _, before := range []int64{0, 2} {
			for _, actual := range []int64{0, 1, 4, 50, 1000} {
				kept, forgotten := make(l), make(l)
				for _, k := range []*historySettling{kept, forgotten} {
					k.take(start, before)
					k.take(start, 3)
				}
				now := start + int64(kept.look(start, 0).reset)
				forget(forgotten)
				kept.settle(1, now, actual)
				forgotten.settle(1, now, actual)
				for _, n := range []int64{0, 1, l.Burst()} {
					if got, want := forgotten.look(now, n), kept.look(now, n); got != want {
						t.Errorf("%v: take %d after %d of 3 were used of what was forgotten: %+v; otherwise %+v", l, n, actual, got, want)
					}
				}
			}
		}
	}
	for a := range algorithms {
		test(PerSecond(7).Using(a), 1_700_000_000_000_000_000, newHistorySettling)
	}
	test(PerSecond(7).Anchored(), 1_700_000_000_000_000_000, newHistorySettling)
	test(PerSecond(7), wordStart(), newWordSettling)
}

// If the clock went back, no more is refunded than before.
func TestBucketRefundAfterTheClockWentBack(t *testing.T) {
	l := New(1, 10).WithBurst(2)
	k := newHistorySettling(l)
	k.take(1100, 1)
	k.take(1109, 1)
	k.settle(0, 1050, 0) // of which 1 ns was left
	if a := k.look(1050, 0); a.reset < 10 {
		t.Errorf("%v: full again after %d ns, but what was taken last takes 10 to drain", l, a.reset)
	}
}
