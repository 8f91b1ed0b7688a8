package limit

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"
)

// historyLogs is one log that serves several limits, beside a naive log of its
// own for each.
type historyLogs struct {
	limits []Limit
	log    history
	naive  []*modelLog

	// If the clock went back, a window that was empty has the entries again that had left
	// it.
	mayBeStricter bool
}

func newHistoryLogs(limits ...Limit) *historyLogs {
	h := &historyLogs{limits: limits}
	for _, l := range limits {
		h.naive = append(h.naive, newModelLog(l))
	}
	return h
}

// take asks every limit, compares the answers with the models, and adds n if all limits
// allow it. It returns the answer of the first.
func (h *historyLogs) take(t historyT, now, n int64) modelAnswer {
	t.Helper()
	var first modelAnswer
	allowed := true
	for i, l := range h.limits {
		got, want := modelAnswerOf(h.log.check(l, now, n)), h.naive[i].look(now, n)
		laxer := got.remaining > want.remaining && !want.allowed || got.retry < want.retry
		if laxer || !h.mayBeStricter && got != want {
			t.Fatalf("%v of %v: take %d at %d: %+v, and a scan of %v says %+v", l, h.limits, n, now, got, h.naive[i].passed, want)
		}
		if i == 0 {
			first = got
		}
		allowed = allowed && got.allowed
	}
	if allowed && n > 0 {
		h.log.add(now, n)
		for _, m := range h.naive {
			m.passed = append(m.passed, modelPassed{now, n})
		}
	}
	first.allowed = allowed
	return first
}

// propertyLog: one log for several windows decides as one log for each would, and its
// RetryAfter and ResetAfter are exact.
func propertyLog(t historyT, src historySource) {
	l := historyLimit(src, SlidingLog)
	limits := []Limit{l}
	for range src.pick(3) { // longer and shorter ones
		period := l.Period() / time.Duration(1+src.pick(60))
		if src.pick(2) == 1 {
			period = min(l.Period(), maxPeriod/60) * time.Duration(1+src.pick(60))
		}
		limits = append(limits, New(max(1, historyNumber(src, l.Count())), max(1, period)).Using(SlidingLog))
	}
	h := newHistoryLogs(limits...)
	w := newHistoryWalk(src, l, src.pick(2) == 1)
	h.mayBeStricter = !w.forward && len(limits) > 1
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		last = h.take(t, now, n)
		if len(limits) == 1 && !last.allowed && last.retry != Never {
			later := now + int64(last.retry)
			early, due := h.copy(), h.copy()
			if early.log.check(l, later-1, n).Allowed || !due.log.check(l, later, n).Allowed {
				t.Fatalf("%v: take %d at %d: RetryAfter is %d, and that is not the first time it passes", l, n, now, last.retry)
			}
		}
	}
	for _, l := range limits { // nothing is counted for longer than a period
		if v := h.log.check(l, w.now+int64(l.Period()), 0); v.Remaining != l.Count() || v.ResetAfter != 0 {
			t.Fatalf("%v of %v: %+v a period after %d", l, limits, v, w.now)
		}
	}
}

func (h *historyLogs) copy() *historyLogs {
	c := *h
	c.log.ring = slices.Clone(h.log.ring)
	c.log.windows = slices.Clone(h.log.windows)
	return &c
}

func TestLogAgreesWithItsDefinition(t *testing.T) { historyRapid(t, propertyLog) }

// propertyLogBound: in any window, wherever it begins, at most count passes.
func propertyLogBound(t historyT, src historySource) {
	l := historyLimit(src, SlidingLog)
	var log history
	passed := historyAdmissions(src, newHistoryWalk(src, l, true), func(now, n int64) modelAnswer {
		a := modelAnswerOf(log.check(l, now, n))
		if a.allowed && n > 0 {
			log.add(now, n)
		}
		return a
	})
	historyLogBound(t, l, passed)
}

func historyLogBound(t historyT, l Limit, passed []modelPassed) {
	t.Helper()
	first, left := 0, l.Count()
	for _, last := range passed {
		for passed[first].at <= last.at-int64(l.Period()) {
			left += passed[first].n
			first++
		}
		left -= last.n
		if left < 0 {
			t.Fatalf("%v: %d too many in the window that ends with %d", l, -left, last.at)
		}
	}
}

func TestLogBoundInAnyWindow(t *testing.T) { historyRapid(t, propertyLogBound) }

// propertyLogSettle: a log that was settled decides as if the corrected amounts
// had been taken.
func propertyLogSettle(t historyT, src historySource) {
	l := historySettleLimit(src, SlidingLog)
	historySettlesExactly(t, src, l, 1, func(takes []modelPassed) model {
		m := newModelLog(l)
		m.passed = takes
		return m
	})
}

func TestLogSettlesAsTheReplay(t *testing.T) { historyRapid(t, propertyLogSettle) }

// A take of zero gets an entry when it is settled: as of its own time or that of the next
// entry, so it is forgotten no earlier than in the replay.
func TestLogSettlesWhatWasTakenForNothing(t *testing.T) {
	l := PerMinute(10).Using(SlidingLog)
	const start, s = int64(1_700_000_000_000_000_000), int64(time.Second)
	k := newHistorySettling(l)
	k.take(start, 3)
	k.take(start+s, 0)
	k.take(start+s, 0)
	before := k.look(start+4*s, 0)
	k.settle(2, start+4*s, 0)
	if after := k.look(start+4*s, 0); after != before {
		t.Errorf("nothing was taken and nothing used: %+v became %+v", before, after)
	}
	k.settle(1, start+5*s, 4)
	if a := k.look(start+5*s, 0); a.remaining != 3 || a.reset != 56*time.Second {
		t.Errorf("3 were taken and 4 used: %+v", a)
	}
}

// Cancelling leaves no trace, wherever in the log the entry is.
func TestLogCancelLeavesNoTrace(t *testing.T) {
	l := PerMinute(10).Using(SlidingLog)
	const start, s = int64(1_700_000_000_000_000_000), int64(time.Second)
	k := newHistorySettling(l)
	k.take(start, 3)
	before := k.look(start+2*s, 0)
	k.take(start+s, 4)
	k.settle(1, start+2*s, 0)
	if after := k.look(start+2*s, 0); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
	k.take(start+3*s, 5)
	k.settle(0, start+3*s, 0)
	if a := k.look(start+3*s, 10); a.retry != 60*time.Second {
		t.Errorf("5 are left of what was taken last: %+v", a)
	}
}

// A take from a log before 1970 can be settled.
func TestLogSettlesBeforeTheEpoch(t *testing.T) {
	l := PerMinute(10).Using(SlidingLog)
	for _, start := range []int64{0, -1, -1_000_000_000_000} {
		k := newHistorySettling(l)
		k.take(start, 4)
		k.settle(0, start+1, 1)
		if a := k.look(start+2, 0); a.remaining != 9 {
			t.Errorf("4 taken at %d, and 1 of it used: %+v", start, a)
		}
	}
}

// An entry that has left a window does not come back if the clock goes back, and is not
// merged with what passes at the time to which the clock returns.
func TestLogClockForwardAndBack(t *testing.T) {
	l := PerMinute(3).Using(SlidingLog)
	const start, s = int64(1_700_000_000_000_000_000), int64(time.Second)
	for _, back := range []int64{0, -10 * s} {
		h := newHistoryLogs(l)
		h.take(t, start, 3)
		h.take(t, start+60*s, 0) // all has left
		h.take(t, start+back, 2)
		h.take(t, start+back, 2) // denied
		h.take(t, start+back+59*s, 2)
		h.take(t, start+back+60*s, 3)
	}
}

// A window that is added later has the entries that are still in the log.
func TestLogWindowAddedLater(t *testing.T) {
	minute, hour := PerMinute(100).Using(SlidingLog), PerHour(1000).Using(SlidingLog)
	second := PerSecond(5).Using(SlidingLog)
	h := newHistoryLogs(minute)
	now := int64(1_700_000_000_000_000_000)
	for range 90 {
		h.take(t, now, 1)
		now += int64(400 * time.Millisecond)
	}
	for _, l := range []Limit{hour, second} {
		naive := newModelLog(l)
		naive.passed = slices.Clone(h.naive[0].passed)
		h.limits, h.naive = append(h.limits, l), append(h.naive, naive)
	}
	for range 300 {
		h.take(t, now, 1)
		now += int64(700 * time.Millisecond)
	}
}

// The ring grows as it fills, wherever it begins, and drops entries that have left every
// window. The sums stay right.
func TestLogRing(t *testing.T) {
	second, minute := PerSecond(40).Using(SlidingLog), PerMinute(900).Using(SlidingLog)
	h := newHistoryLogs(second, minute)
	random := rand.New(rand.NewPCG(1, 2))
	now := int64(1_700_000_000_000_000_000)
	for i := range 6000 {
		switch {
		case i%1500 == 0:
			now += int64(3 * time.Minute) // all has left
		case i%500 == 0:
			now += int64(50 * time.Second)
		case i%701 == 0:
			now -= int64(2 * time.Second)
		default:
			now += random.Int64N(int64(60 * time.Millisecond))
		}
		h.take(t, now, random.Int64N(3))
		if size := len(h.log.ring); size&(size-1) != 0 || size > 2048 {
			t.Fatalf("a ring of %d for at most 900 entries", size)
		}
	}
}

// Settling a take whose entry has left every window and was dropped changes nothing.
func TestLogSettlesWhatWasDropped(t *testing.T) {
	minute := PerMinute(1000).Using(SlidingLog)
	k := newHistorySettling(minute)
	const start, s = int64(1_700_000_000_000_000_000), int64(time.Second)
	for i := range int64(20) {
		k.take(start+i, 1)
	}
	now := start + 61*s
	for i := range int64(40) {
		k.take(now+i, 1)
	}
	now += 100
	for range 20 {
		k.settle(0, now, 500) // no debt in a later window
	}
	if a := k.look(now, 0); a.remaining != 960 {
		t.Errorf("40 passed in the last minute: %+v", a)
	}
	k.settle(0, now, 0)
	if a := k.look(now, 0); a.remaining != 961 {
		t.Errorf("40 passed in the last minute, and 1 was cancelled: %+v", a)
	}
}

// Merging. The exact log is a list with running sums. At any time, a window of the log that
// merges counts at least what is in the exact window, and at most that and what has left it
// within the time by which merged entries may be late.

type historyExact struct {
	at   []int64
	upTo []int64 // how much passed up to and with each
}

func (x *historyExact) add(at, n int64) {
	if len(x.upTo) > 0 {
		n += x.upTo[len(x.upTo)-1]
	}
	x.at, x.upTo = append(x.at, at), append(x.upTo, n)
}

// since returns how much passed after t.
func (x *historyExact) since(t int64) int64 {
	i := sort.Search(len(x.at), func(i int) bool { return x.at[i] > t })
	all := x.upTo[len(x.upTo)-1]
	if i == 0 {
		return all
	}
	return all - x.upTo[i-1]
}

// historyGaps are ways in which entries follow each other.
var historyGaps = []struct {
	name string
	gap  func(i int, random *rand.Rand) time.Duration
}{
	{"every 15 ms", func(int, *rand.Rand) time.Duration { return 15 * time.Millisecond }},
	{"every microsecond", func(int, *rand.Rand) time.Duration { return time.Microsecond }},
	{"every 2 s", func(int, *rand.Rand) time.Duration { return 2 * time.Second }},
	{"every 29 ms, which is 1/2048 of a minute", func(int, *rand.Rand) time.Duration { return time.Minute / 2048 }},
	{"at random", func(_ int, random *rand.Rand) time.Duration {
		return time.Duration(1 + random.Int64N(1<<random.IntN(32)))
	}},
	{"in bursts", func(i int, random *rand.Rand) time.Duration {
		if i%3000 == 2999 {
			return time.Duration(random.Int64N(int64(2 * time.Minute)))
		}
		return time.Duration(1 + random.Int64N(10_000))
	}},
	{"in bursts of two", func(i int, random *rand.Rand) time.Duration {
		if i%2 == 0 {
			return 1
		}
		return time.Duration(random.Int64N(int64(100 * time.Millisecond)))
	}},
}

func TestLogMerges(t *testing.T) {
	for _, limits := range [][]Limit{
		{PerMinute(1 << 50).Using(SlidingLog)},
		{PerSecond(1 << 50).Using(SlidingLog), PerMinute(1 << 50).Using(SlidingLog), PerDay(1 << 50).Using(SlidingLog)},
		{PerHour(1 << 50).Using(SlidingLog), New(1<<50, time.Millisecond).Using(SlidingLog)},
	} {
		for _, gaps := range historyGaps {
			t.Run(limits[0].String()+" "+gaps.name, func(t *testing.T) {
				random := rand.New(rand.NewPCG(3, 4))
				var log history
				var exact historyExact
				now := int64(1_700_000_000_000_000_000)
				for i := range 15_000 {
					for _, l := range limits {
						historyMerged(t, &log, &exact, l, int64(len(limits)), now)
					}
					n := 1 + random.Int64N(9)
					log.add(now, n)
					exact.add(now, n)
					if kept := log.next - log.oldest; kept > mostEntries || len(log.ring) > mostEntries {
						t.Fatalf("%d entries in a ring of %d", kept, len(log.ring))
					}
					now += int64(gaps.gap(i, random))
				}
				for range 300 { // and as all of it leaves
					for _, l := range limits {
						historyMerged(t, &log, &exact, l, int64(len(limits)), now)
					}
					now += int64(limits[0].Period()) / 100
				}
			})
		}
	}
}

// Entries are merged if they fall into one cell, whose width depends on their age: as if the
// width was computed anew for each entry.
func TestLogMergesByAge(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		now := int64(1_700_000_000_000_000_000)
		var log history
		for range 1 + random.IntN(4) {
			log.window(time.Duration(1+random.Int64N(1<<(10+random.IntN(50)))), now)
		}
		longest := int64(1) << (1 + random.IntN(46))
		for range 1 + random.IntN(mostEntries) {
			if log.full() {
				log.grow()
			}
			*log.entry(log.next) = entry{now, 1 + random.Int64N(5)}
			log.next++
			now += random.Int64N(longest)
		}
		log.drop(now)
		if log.next == log.oldest {
			continue
		}
		want := historyCells(&log)
		log.merge()
		var got []entry
		for i := log.oldest; i < log.next; i++ {
			got = append(got, *log.entry(i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d entries in windows of %+v became %d; want %d", len(log.ring), log.windows, len(got), len(want))
		}
	}
}

// historyCells returns the entries that a log must have after merging.
func historyCells(h *history) (kept []entry) {
	newest, end := h.entry(h.next-1).at, int64(0)
	for i := h.oldest; i < h.next; i++ {
		e := *h.entry(i)
		begins := slices.ContainsFunc(h.windows, func(w slidingWindow) bool { return w.first == i })
		if len(kept) == 0 || begins || e.at >= end {
			kept = append(kept, e)
		} else {
			last := &kept[len(kept)-1]
			*last = entry{e.at, last.n + e.n}
		}
		cell, _ := h.cell(newest - e.at)
		end = floor(e.at, cell) + cell
	}
	return kept
}

// historyMerged compares a window of a log that has merged with the exact one.
func historyMerged(t *testing.T, log *history, exact *historyExact, l Limit, windows, now int64) {
	t.Helper()
	used := l.Count() - log.check(l, now, 0).Remaining
	if len(exact.at) == 0 {
		return
	}
	late := int64(l.Period()) / 1024 * windows
	begins := now - int64(l.Period())
	if least, most := exact.since(begins), exact.since(begins-late); used < least || used > most {
		t.Fatalf("%v: %d are counted after %d entries; in the window are %d, and with those that left it within %v, %d",
			l, used, len(exact.at), least, time.Duration(late), most)
	}
}

// A log that merges admits no more than an exact one, in any window.
func TestLogMergedBound(t *testing.T) {
	l, daily := PerMinute(5000).Using(SlidingLog), PerDay(60_000).Using(SlidingLog)
	random := rand.New(rand.NewPCG(5, 6))
	var log history
	var passed []modelPassed
	now := int64(1_700_000_000_000_000_000)
	for range 80_000 {
		n := 1 + random.Int64N(2)
		a, b := log.check(l, now, n), log.check(daily, now, n)
		if a.Allowed && b.Allowed {
			log.add(now, n)
			passed = append(passed, modelPassed{now, n})
		} else if wait := max(a.RetryAfter, b.RetryAfter); random.IntN(4) == 0 && wait < time.Minute {
			now += int64(wait) // the first time it passes, and it must not be too early
			continue
		}
		now += random.Int64N(int64(20 * time.Millisecond))
	}
	if len(passed) < 3*mostEntries {
		t.Fatalf("only %d passed", len(passed))
	}
	historyLogBound(t, l, passed)
	historyLogBound(t, daily, passed)
}

// RetryAfter is exact for the entries that the log has, merged or not.
func TestLogRetriesWhenMerged(t *testing.T) {
	l := PerMinute(20_000).Using(SlidingLog)
	h := newHistoryLogs(l)
	now := int64(1_700_000_000_000_000_000)
	for h.log.check(l, now, 1).Allowed {
		h.log.add(now, 1)
		now += int64(time.Millisecond)
	}
	for _, n := range []int64{1, 2, 3, 500, 10_000, 19_999, 20_000} {
		later := now + int64(h.log.check(l, now, n).RetryAfter)
		early, due := h.copy(), h.copy()
		if early.log.check(l, later-1, n).Allowed || !due.log.check(l, later, n).Allowed {
			t.Errorf("%d do not pass first after %v", n, time.Duration(later-now))
		}
	}
}

// A take whose entry was merged can be settled: in the entry that it is a part of.
func TestLogSettlesWhatWasMerged(t *testing.T) {
	l := PerDay(1 << 40).Using(SlidingLog)
	k := newHistorySettling(l)
	random := rand.New(rand.NewPCG(7, 8))
	now := int64(1_700_000_000_000_000_000)
	used := int64(0)
	for range 3 * mostEntries {
		k.take(now, 10)
		used += 10
		now += 1 + random.Int64N(int64(time.Millisecond))
	}
	for range 1000 {
		i := random.IntN(len(k.open))
		actual := random.Int64N(25)
		used += actual - k.takes[k.open[i]].n
		k.settle(i, now, actual)
		if a := k.look(now, 0); a.remaining != 1<<40-used {
			t.Fatalf("%d are used, and %+v", used, a)
		}
	}
	if a := k.look(now+int64(24*time.Hour), 0); a.remaining != 1<<40 || a.reset > 42*time.Second+time.Hour {
		t.Errorf("a day later: %+v", a)
	}
	if a := k.look(now+int64(25*time.Hour), 0); a.remaining != 1<<40 || a.reset != 0 {
		t.Errorf("an hour after a day: %+v", a)
	}
}

// Entries at the same time need room for one.
func TestLogOfOneInstant(t *testing.T) {
	l := PerMinute(1 << 40).Using(SlidingLog)
	var log history
	for range 100_000 {
		if !log.check(l, 1_700_000_000_000_000_000, 1).Allowed {
			t.Fatal("denied")
		}
		log.add(1_700_000_000_000_000_000, 1)
	}
	if len(log.ring) > firstEntries {
		t.Errorf("a ring of %d for one instant", len(log.ring))
	}
	if a := log.check(l, 1_700_000_000_000_000_000, 0); a.Remaining != 1<<40-100_000 {
		t.Errorf("100,000 passed: %+v", a)
	}
}
