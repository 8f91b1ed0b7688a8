package redisstore

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
)

// drawAccount returns an account with a random history.
func drawAccount(t *rapid.T) *limit.Account {
	all := []limit.Limit{
		limit.PerMinute(40), limit.PerHour(70).WithBurst(30), limit.PerMinute(50).Using(limit.FixedWindow), limit.PerHour(60).Anchored(),
		limit.PerDay(90).ResetAt(time.Hour, nil), limit.PerMonth(90).ResetMonthly(31, time.Hour, nil),
		limit.PerMinute(60).Using(limit.SlidingCounter), limit.PerMinute(50).Using(limit.SlidingLog), limit.PerHour(80).Using(limit.SlidingLog),
	}
	limits := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 5, rapid.ID).Draw(t, "limits")
	a, now := new(limit.Account), noon.UnixNano()
	var receipts []limit.Receipt
	for range rapid.IntRange(0, 30).Draw(t, "steps") {
		now += rapid.Int64Range(-int64(time.Second), int64(20*time.Second)).Draw(t, "time")
		n := rapid.Int64Range(0, 12).Draw(t, "n")
		if len(receipts) > 0 && rapid.Bool().Draw(t, "settle") {
			a.Settle(limits, receipts[0], now, n)
			receipts = receipts[1:]
			continue
		}
		allowed := true
		for _, l := range limits {
			allowed = a.Check(l, now, n).Allowed && allowed
		}
		if allowed {
			receipts = append(receipts, a.Take(limits, now, n))
		}
	}
	return a
}

// The account of a snapshot is the one that it was made of.
func TestSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAccount(t)
		shot := snapshotOf(a)
		var copied limit.Account
		if err := shot.restore(&copied); err != nil {
			t.Fatal(err)
		}
		want, _ := a.AppendBinary(nil)
		if got, _ := copied.AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("got  %x\nwant %x", got, want)
		}
	})
}

func TestSnapshotThatCannotBe(t *testing.T) {
	window := []logWindow{{period: time.Minute}}
	for name, s := range map[string]snapshot{
		"an invalid limit":       {epoch: 1, counters: []counterState{{limit: limit.New(0, 1)}}},
		"parts beyond the count": {epoch: 1, counters: []counterState{{limit: limit.PerMinute(3), b: 3}}},
		"a negative entry":       {epoch: 1, windows: window, entries: []logEntry{{1, -1}}},
		"entries in disorder":    {epoch: 1, windows: window, entries: []logEntry{{2, 1}, {1, 1}}},
		"a window of no length":  {epoch: 1, windows: []logWindow{{}}},
		"a window beyond":        {epoch: 1, windows: []logWindow{{period: 1, first: 2}}, entries: []logEntry{{1, 1}}},
	} {
		if err := s.restore(new(limit.Account)); !errors.Is(err, errCorrupt) {
			t.Errorf("%s: %v; want %v", name, err, errCorrupt)
		}
	}
}

// Limits have one shape if the usage of one is the other's when it replaces that.
func TestShapes(t *testing.T) {
	day, minute := limit.PerDay(10), limit.PerMinute(10)
	limits := []limit.Limit{
		minute, minute.WithCount(3), minute.WithBurst(20), minute.Using(limit.TokenBucket), limit.PerHour(10),
		minute.Using(limit.FixedWindow), minute.Using(limit.FixedWindow).WithCount(7), minute.Anchored(), minute.Using(limit.SlidingCounter),
		day.Using(limit.FixedWindow), day.Anchored(), day.ResetAt(0, nil), day.ResetAt(time.Hour, nil).WithCount(9),
		limit.New(10, 24*time.Hour+time.Second).Anchored(), limit.New(10, 24*time.Hour+time.Minute).Anchored(),
		limit.PerHour(10).ResetHourly(0, nil), limit.PerHour(10).Anchored(), limit.PerWeek(10).ResetWeekly(time.Monday, 0, nil),
		limit.PerMonth(10).ResetMonthly(1, 0, nil), limit.PerMonth(10).ResetMonthly(31, 0, nil), limit.PerMonth(10).Anchored(), limit.Total(10),
	}
	now := noon.UnixNano()
	for _, was := range limits {
		for _, is := range limits {
			var a limit.Account
			a.Take([]limit.Limit{was}, now, 2)
			a.Fit([]limit.Limit{is}, now)
			if stays := a.Check(is, now, 0).Used == 2; stays != (shapeOf(was) == shapeOf(is)) {
				t.Errorf("%v becomes %v: the usage stays is %v, and the shapes are %+v and %+v", was, is, stays, shapeOf(was), shapeOf(is))
			}
		}
	}
}

// The cost of an amount is the backlog that a take of it leaves in an empty bucket.
func TestCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := limit.New(rapid.Int64Range(1, 1<<62).Draw(t, "count"), time.Duration(rapid.Int64Range(1, 1<<61).Draw(t, "period")))
		n := rapid.Int64Range(1, l.Burst()).Draw(t, "n")
		var a limit.Account
		a.Take([]limit.Limit{l}, noon.UnixNano(), n)
		shot := snapshotOf(&a)
		if c := shot.find(l); costOf(l, n) != (backlog{c.a, c.b}) {
			t.Fatalf("%d of %v costs %+v; it leaves %+v", n, l, costOf(l, n), *c)
		}
	})
}

// An account that is fitted to limits says what it said, has a window of its log for each of them, and
// no counter that is full again, unless its refunds must be known.
func TestFitDropsFullCounters(t *testing.T) {
	now := noon.UnixNano()
	minute, hour, day := limit.PerMinute(10), limit.PerHour(10), limit.PerDay(10)
	log := hour.Using(limit.SlidingLog)
	s := stored{account: new(limit.Account)}
	s.account.Take([]limit.Limit{minute, day.Using(limit.SlidingLog)}, now, 1)
	refunded := s.account.Take([]limit.Limit{hour}, now, 2)
	s.account.Settle([]limit.Limit{hour}, refunded, now, 1)
	s.account.Take([]limit.Limit{day}, now, 3)
	now += int64(2 * time.Hour)
	if err := s.fit([]limit.Limit{day, log}, now); err != nil {
		t.Fatal(err)
	}
	shot := snapshotOf(s.account)
	if shot.find(minute) != nil || shot.find(hour) == nil || shot.find(day) == nil {
		t.Errorf("counters %+v are left; want those of %v, whose refunds must be known, and %v", shot.counters, hour, day)
	}
	if !slices.ContainsFunc(shot.windows, func(w logWindow) bool { return w.period == log.Period() }) {
		t.Errorf("windows %+v; want one of %v", shot.windows, log.Period())
	}
	if d := s.account.Check(day, now, 0); d.Used != 3 {
		t.Errorf("after 3 of %v and two hours: %+v", day, d)
	}
}
