package limit

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// Lists of limits whose plans have the same hash do not get each other's plans.
func TestPlanOf(t *testing.T) {
	var all []*Plan
	var limits [][]Limit
	for i := range 400 {
		l := []Limit{New(1, time.Duration(1+i%100)).Using(SlidingLog), New(1+int64(i/200), time.Duration(1+i/100%2)).Using(SlidingLog)}
		limits, all = append(limits, l), append(all, PlanOf(l))
	}
	for i, p := range all {
		if !slices.Equal(p.Limits(), limits[i]) || p.longest != int64(max(limits[i][0].period, limits[i][1].period)) {
			t.Fatalf("%v has %+v", limits[i], p)
		}
	}
	if last := limits[len(limits)-1]; PlanOf(slices.Clone(last)) != PlanOf(last) {
		t.Error("the same limits have two plans")
	}
	last := limits[0]
	p := PlanOf(last)
	last[0] = PerDay(3)
	if slices.Equal(p.Limits(), last) {
		t.Error("a plan has changed with the slice that it was made of")
	}
}

// A plan knows where an account has what was used of each limit.
func TestPlanPlaces(t *testing.T) {
	minute, hour := PerMinute(9).Using(SlidingLog), PerHour(30).Using(SlidingLog)
	day, bucket := PerDay(60).Anchored(), PerMinute(20)
	for _, test := range []struct {
		name     string
		limits   []Limit
		at       []int
		windows  int
		counters []int
		buckets  bool
	}{
		{"none", nil, nil, 0, nil, false},
		{"logs", []Limit{minute, hour}, []int{0, 1}, 2, nil, false},
		{"logs of one period", []Limit{minute, hour, minute.WithCount(3)}, []int{0, 1, 0}, 2, nil, false},
		{"a window and a log", []Limit{day, minute}, []int{0, 0}, 1, []int{0}, false},
		{"a limit twice", []Limit{day, bucket, day}, []int{0, 1, 0}, 0, []int{0, 1}, true},
	} {
		p := PlanOf(test.limits)
		if !slices.Equal(p.at, test.at) || len(p.periods) != test.windows || !slices.Equal(p.counters, test.counters) || p.Buckets() != test.buckets {
			t.Errorf("%s: %+v", test.name, p)
		}
	}
}

// A look under a longer limit changes nothing: the account is forgotten when it would have been without it.
func TestPeekChangesNothing(t *testing.T) {
	minute, day := PerMinute(5).Using(SlidingLog), PerDay(9).Using(SlidingLog)
	now := time.Date(2026, time.March, 14, 7, 0, 0, 0, time.UTC).UnixNano()
	var a Account
	a.Take([]Limit{minute}, now, 1)
	before, _ := a.AppendBinary(nil)
	verdicts := make([]Verdict, 1)
	if !a.Peek(a.PlanOf([]Limit{day}), now, 1, verdicts) || verdicts[0].Used != 1 {
		t.Errorf("the look says %+v", verdicts)
	}
	if after, _ := a.AppendBinary(nil); !bytes.Equal(before, after) || a.FullAt() != now+int64(time.Minute) {
		t.Errorf("%x before the look, %x after it, forgotten after %v", before, after, time.Duration(a.FullAt()-now))
	}
}

// A look under another limit costs the same however long the log is: it copies the entries only if they are to change,
// because they are in the future or to be merged, and they stay as they are then, too.
func TestPeekCopiesLittle(t *testing.T) {
	taken, asked := PerHour(1<<40).Using(SlidingLog), PerHour(1<<39).Using(SlidingLog)
	const start = int64(1e18)
	for _, test := range []struct {
		entries int
		after   time.Duration // the last entry
		copies  bool
	}{
		{3, 0, false}, {4, 0, false}, {mostEntries - 1, time.Second, false}, {mostEntries - 1, time.Hour, false},
		{3, -time.Millisecond, true}, {mostEntries, 0, true},
	} {
		var a Account
		now := start
		for range test.entries {
			now += int64(time.Second) / 2
			a.Take([]Limit{taken}, now, 2)
		}
		before, _ := a.AppendBinary(nil)
		now += int64(test.after)
		want := a.Fork().Check(asked, now, 0).Used
		verdicts := make([]Verdict, 1)
		a.Peek(a.PlanOf([]Limit{asked}), now, 1, verdicts)
		if verdicts[0].Used != want {
			t.Errorf("%+v: %d is used; want %d", test, verdicts[0].Used, want)
		}
		if after, _ := a.AppendBinary(nil); !bytes.Equal(before, after) {
			t.Errorf("%+v: the look has changed the account", test)
		}
		log := a.counters.log
		if copied := &log.view(now).ring[0] != &log.ring[0]; copied != test.copies {
			t.Errorf("%+v: the entries are copied: %v", test, copied)
		}
	}
}
