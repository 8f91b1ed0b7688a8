package limit

import (
	"testing"
	"time"
)

// countersTake asks all limits of a key, as a decision does, and takes n if
// all of them allow it.
func countersTake(c *counters, limits []Limit, now, n int64) []modelAnswer {
	answers := make([]modelAnswer, len(limits))
	allowed := true
	for i, l := range limits {
		answers[i] = modelAnswerOf(c.check(l, now, n))
		allowed = allowed && answers[i].allowed
	}
	if allowed && n > 0 {
		c.take(limits, now, n)
	}
	return answers
}

// propertyCounters: the limits of a key, of every algorithm, each decide as if
// they were alone and had been charged what passed all of them; a denial by one
// takes nothing of the others.
func propertyCounters(t historyT, src historySource) {
	period := historyPeriod(src)
	var limits []Limit
	var states []state
	var logs []*modelLog
	for a := range algorithms {
		l := New(historyCount(src), period).Using(a)
		limits = append(limits, l)
		states = append(states, state{})
		logs = append(logs, newModelLog(l))
	}
	limits = limits[:1+src.pick(len(limits))]
	if src.pick(2) == 1 {
		limits = append(limits, limits[0]) // twice the same is once
		states, logs = append(states, state{}), append(logs, newModelLog(limits[0]))
	}
	var c counters
	w := newHistoryWalk(src, limits[0], true)
	w.now = max(w.now, 1)
	last := modelAnswer{}
	for range historySteps(src) {
		now, n := w.step(last)
		answers := countersTake(&c, limits, now, n)
		passed := true
		longest := time.Duration(0)
		for i, l := range limits {
			var want modelAnswer
			if l.Algorithm() == SlidingLog {
				want = logs[i].look(now, n)
			} else {
				_, v := l.take(states[i], now, n)
				want = modelAnswerOf(v)
			}
			if answers[i] != want {
				t.Fatalf("%v of %v: take %d at %d: %+v; alone it says %+v", l, limits, n, now, answers[i], want)
			}
			passed = passed && want.allowed
			if want.allowed && n > 0 {
				longest = max(longest, want.reset)
			}
		}
		last = answers[src.pick(len(answers))]
		if !passed || n == 0 {
			continue
		}
		for i, l := range limits {
			states[i], _ = l.take(states[i], now, n)
			logs[i].passed = append(logs[i].passed, modelPassed{now, n})
		}
		if c.fullAt < now+int64(longest) {
			t.Fatalf("%v: in use until %d, and fullAt is %d", limits, now+int64(longest), c.fullAt)
		}
	}
}

func TestCountersOfSeveralLimits(t *testing.T) { historyRapid(t, propertyCounters) }

// From fullAt on a key is the same as one that was never used, also after it
// was settled.
func propertyCountersFullAt(t historyT, src historySource) {
	var limits []Limit
	for range 1 + src.pick(3) {
		limits = append(limits, historySettleLimit(src, Algorithm(src.pick(int(algorithms)))))
	}
	var c counters
	w := newHistoryWalk(src, limits[0], true)
	w.now = max(w.now, 1)
	for range 1 + src.pick(10) {
		now, _ := w.step(modelAnswer{})
		n := 1 + historyNumber(src, limits[0].Burst()-1)
		allowed := true
		for _, a := range countersTake(&c, limits, now, n) {
			allowed = allowed && a.allowed
		}
		if allowed && src.pick(2) == 1 {
			receipts := c.receipts(limits, now, n)
			later, _ := w.step(modelAnswer{})
			c.settle(limits, receipts, later, historyActual(src, n, limits[0].Burst()), func(Limit, backlog) {})
		}
	}
	now := max(c.fullAt, w.now)
	for _, l := range limits {
		if a := c.check(l, now, 0); a.Remaining != l.Burst() || a.ResetAfter != 0 {
			t.Fatalf("%v is said to be full at %d, and at %d it is %+v", limits, c.fullAt, now, a)
		}
	}
}

func TestCountersFullAt(t *testing.T) { historyRapid(t, propertyCountersFullAt) }

// A key is in use until its entries have left the longest of its windows, in whatever
// order its logs are named, and whatever else is asked in between.
func TestCountersFullAtOfTheLongestLog(t *testing.T) {
	second, minute, hour := PerSecond(10).Using(SlidingLog), PerMinute(100).Using(SlidingLog), PerHour(1000).Using(SlidingLog)
	for _, limits := range [][]Limit{
		{second, minute, hour}, {hour, minute, second}, {minute, hour, second}, {hour, second}, {second, hour},
	} {
		var c counters
		now := int64(1_700_000_000_000_000_000)
		for range 3 {
			countersTake(&c, limits, now, 1)
			if left := c.fullAt - now; left < int64(time.Hour) {
				t.Errorf("%v: in use for %v", limits, time.Duration(left))
			}
			c.check(PerDay(1).Using(SlidingLog), now, 1)
			now += int64(2 * time.Second)
		}
		if v := c.check(hour, now, 0); v.Remaining != 997 {
			t.Errorf("%v: %+v of the hour", limits, v)
		}
	}
}

// A limit that changes has a new counter. It replaces a counter that is full again, and
// none that is in use.
func TestCountersKeepWhatIsInUse(t *testing.T) {
	var c counters
	now := int64(1_700_000_000_000_000_000)
	long := PerHour(5)
	countersTake(&c, []Limit{long}, now, 5)
	for i := range int64(1000) {
		l := New(1+i, time.Second) // ever another one
		for _, a := range countersTake(&c, []Limit{l}, now, 1) {
			if !a.allowed {
				t.Fatalf("%v: %+v", l, a)
			}
		}
		now += int64(time.Second)
	}
	if len(c.each) > 3 {
		t.Errorf("%d counters, of which two are in use", len(c.each))
	}
	if a := c.check(long, now, 3); a.Allowed || a.Remaining != 1 {
		t.Errorf("%v after 1000 s: %+v", long, a)
	}
}

// Settling corrects each limit once, however often the limit is named.
func TestCountersSettleEachLimitOnce(t *testing.T) {
	const now = 1_700_000_000_000_000_000
	minute, hour := PerMinute(100).Using(SlidingLog), PerHour(100).Using(SlidingLog)
	window, counter, bucket := PerHour(100).Using(FixedWindow), PerHour(100).Using(SlidingCounter), PerHour(100)
	limits := []Limit{minute, window, bucket, hour, window, counter, bucket, minute, counter}
	for actual, remaining := range map[int64]int64{0: 100, 4: 96, 10: 90, 17: 83, 100: 0} {
		var c counters
		countersTake(&c, limits, now, 10)
		receipts := c.receipts(limits, now, 10)
		c.settle(limits, receipts, now, actual, func(Limit, backlog) {})
		for _, l := range limits {
			if a := c.check(l, now, 0); a.Remaining != remaining {
				t.Errorf("%v: 10 taken and %d used: %+v", l, actual, a)
			}
		}
	}
}

// The limit that decides: of those that deny, the one that denies longest; of
// limits that all allow, the one with the least left.
func TestRuling(t *testing.T) {
	a, b, c := PerSecond(1), PerMinute(2), PerHour(3)
	type heard struct {
		limit Limit
		says  Verdict
	}
	allow := func(l Limit, remaining int64) heard {
		return heard{l, Verdict{Allowed: true, Remaining: remaining, ResetAfter: time.Duration(remaining)}}
	}
	deny := func(l Limit, remaining int64, retry time.Duration) heard {
		return heard{l, Verdict{Remaining: remaining, RetryAfter: retry}}
	}
	for _, test := range []struct {
		name  string
		heard []heard
		want  Limit
	}{
		{"one", []heard{allow(a, 3)}, a},
		{"the least left", []heard{allow(a, 3), allow(b, 2), allow(c, 5)}, b},
		{"a denial before what allows", []heard{deny(a, 3, 1), allow(b, 0)}, a},
		{"a denial after what allows", []heard{allow(b, 0), deny(a, 3, 1)}, a},
		{"the longest", []heard{deny(a, 0, 5), deny(b, 9, 7), deny(c, 0, 6)}, b},
		{"never before all others", []heard{deny(a, 0, 5), deny(b, 9, Never), deny(c, 0, 6)}, b},
		{"as long, and less left", []heard{deny(a, 1, 5), deny(b, 0, 5), deny(c, 2, 5)}, b},
	} {
		r := unruled
		for i := range test.heard {
			r.add(test.heard[i].says, &test.heard[i].limit)
		}
		d := r.decision()
		if d.Limit != test.want {
			t.Errorf("%s: %v decides; want %v", test.name, d.Limit, test.want)
		}
		for _, h := range test.heard {
			if h.limit == test.want && modelAnswerOf(h.says) != modelAnswerIn(d) {
				t.Errorf("%s: %+v says %+v", test.name, h.says, d)
			}
		}
	}
	if d := unruled; !d.Allowed || d.Remaining <= 0 || d.RetryAfter != 0 || d.decision().Limit != (Limit{}) {
		t.Errorf("no limit says %+v", d.decision())
	}
}
