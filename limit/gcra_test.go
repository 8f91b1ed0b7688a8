package limit

import (
	"math/big"
	"testing"
	"time"
)

// propertyWord: a counter of one word decides as the bucket does, and its
// backlog is the same to the unit.
func propertyWord(t historyT, src historySource) {
	l := historyLimit(src, historyOneOf(src, GCRA, TokenBucket, LeakyBucket))
	g, ok := inOneWord(l)
	if !ok {
		return
	}
	w := newHistoryWalk(src, l, false)
	var s state
	var backlog, at = uint64(0), w.now
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		if now < s.at || s == (state{}) { // the table's business
			s.at, at = now, now
		}
		before := backlog
		if elapsed := uint64(now - at); elapsed > backlog/g.unit {
			before = 0
		} else {
			before -= elapsed * g.unit
		}
		next, v := l.take(s, now, n)
		after, word := g.check(before, n)
		last = modelAnswerOf(v)
		if got := modelAnswerOf(word); got != last {
			t.Fatalf("%v: take %d at %d of %d: %+v, but the bucket says %+v", l, n, now, before, got, last)
		}
		if d := g.verdict(after, n, word.Allowed).By(l); d != v.By(l) {
			t.Fatalf("%v: take %d at %d of %d: %+v, but the bucket says %+v", l, n, now, before, d, last)
		}
		if word.Allowed && n > 0 {
			backlog, at = after, now
		} else if after != before {
			t.Fatalf("%v: take %d at %d takes nothing, and of %d it leaves %d", l, n, now, before, after)
		}
		s = next
		if exact := wordOf(l, s); exact.Cmp(new(big.Int).SetUint64(backlog)) != 0 {
			t.Fatalf("%v: take %d at %d leaves %d; the bucket has %v", l, n, now, backlog, exact)
		}
	}
}

// wordOf returns the backlog of a bucket in the units of a word.
func wordOf(l Limit, s state) *big.Int {
	count, period := big.NewInt(l.Count()), big.NewInt(int64(l.Period()))
	parts := new(big.Int).Mul(big.NewInt(s.a), count)
	parts.Add(parts, big.NewInt(s.b))
	return parts.Quo(parts, new(big.Int).GCD(nil, nil, count, period))
}

func TestWordAgreesWithTheBucket(t *testing.T) { historyRapid(t, propertyWord) }

func TestInOneWord(t *testing.T) {
	for _, test := range []struct {
		limit Limit
		fits  bool
		unit  uint64
		each  uint64
	}{
		{PerSecond(1), true, 1, 1_000_000_000},
		{PerSecond(3), true, 3, 1_000_000_000},
		{PerSecond(1_000_000), true, 1, 1000},
		{PerMinute(7), true, 7, 60_000_000_000},
		{PerDay(1_000_000), true, 1, 86_400_000},
		{PerSecond(1 << 16), true, 1 << 7, 1_953_125},
		{New(65_536, 1), true, 65_536, 1},
		{New(65_537, 1), false, 0, 0}, // its unit is too small
		{New(1<<62, 1), false, 0, 0},
		{New(1, 1<<60), true, 1, 1 << 60},
		{New(1, 1<<60+1), false, 0, 0}, // its burst is too large
		{New(1, modelYear), true, 1, uint64(modelYear)},
		{New(1, 1<<61), false, 0, 0},
		{PerSecond(1).WithBurst(1 << 31), false, 0, 0},
		{PerSecond(1).WithBurst(1 << 30), true, 1, 1_000_000_000},
		{PerSecond(3).Using(TokenBucket), true, 3, 1_000_000_000},
		{PerSecond(3).Using(LeakyBucket), true, 3, 1_000_000_000},
		{PerSecond(3).Using(FixedWindow), false, 0, 0},
		{PerSecond(3).Using(SlidingLog), false, 0, 0},
		{PerSecond(3).Using(SlidingCounter), false, 0, 0},
	} {
		g, fits := inOneWord(test.limit)
		if fits != test.fits || fits && (g.unit != test.unit || g.each != test.each || g.room != g.each*uint64(test.limit.Burst())) {
			t.Errorf("%v: %+v, %v; want %+v", test.limit, g, fits, test)
		}
	}
}

// wordStart returns a reading of clock that the words of a new table can express.
func wordStart() int64 { return clock() + int64(time.Second) }

// propertyWordSettle: a counter of one word that is settled never grants more,
// nor earlier, than the replay.
func propertyWordSettle(t historyT, src historySource) { wordSettle(t, src, 1) }

func wordSettle(t historyT, src historySource, least int64) {
	l := New(historyOneOf[int64](src, 3, 1, 2, 10, 97, 1000), historyOneOf(src, time.Second, 7, 1000, 999_999_937, time.Minute))
	l = l.WithBurst(historyOneOf(src, l.Count(), 1, 2*l.Count()))
	k := newWordSettling(l)
	historySettles(t, src, k, wordStart(), least)
}

func TestWordSettlesNoLaxerThanTheReplay(t *testing.T) { historyRapid(t, propertyWordSettle) }

func TestWordSettlesWhatWasTakenForNothing(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) { wordSettle(t, src, 0) })
}

// A counter of one word decides as a bucket does, also after both were settled.
func TestWordSettlesAsTheBucket(t *testing.T) {
	historyRapid(t, func(t historyT, src historySource) {
		l := New(historyOneOf[int64](src, 3, 1, 2, 10, 97, 1000), historyOneOf(src, time.Second, 7, 1000, 999_999_937, time.Minute))
		word, bucket := newWordSettling(l), newHistorySettling(l)
		now := wordStart()
		a := modelAnswer{}
		for range 4 + src.pick(24) {
			now += historyOneOf(src, 0, int64(l.Period())/l.Count()+1, 1, int64(a.reset)/2, int64(a.reset))
			if len(word.open) > 0 && src.pick(2) == 1 {
				i := src.pick(len(word.open))
				actual := historyActual(src, word.takes[word.open[i]].n, l.Burst())
				word.settle(i, now, actual)
				bucket.settle(i, now, actual)
			} else {
				n := max(1, historyOneOf(src, 1, a.remaining, l.Burst()/2))
				word.take(now, n)
				bucket.take(now, n)
			}
			for _, n := range []int64{l.Burst(), 1, 0} {
				a = word.look(now, n)
				if want := bucket.look(now, n); a != want {
					t.Fatalf("%v: take %d at %d: %+v, but the bucket says %+v", l, n, now, a, want)
				}
			}
		}
	})
}

// Cancelling at once leaves no trace in a counter of one word.
func TestWordCancelAtOnceGivesAllBack(t *testing.T) {
	for _, l := range []Limit{PerSecond(3), New(7, 1000).WithBurst(20), PerMinute(65_521)} {
		k := newWordSettling(l)
		now := wordStart()
		k.take(now, 1)
		k.settle(0, now, 0)
		if a := k.look(now, 0); a.remaining != l.Burst() || a.reset != 0 {
			t.Errorf("%v: took 1 and cancelled it: %+v", l, a)
		}
	}
}
