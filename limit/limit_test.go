package limit

import (
	"bytes"
	"testing"
	"time"
)

func TestLimitBinary(t *testing.T) {
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	limits := []Limit{
		PerSecond(1), PerMinute(100).WithBurst(7), New(1<<62, maxPeriod), New(1, 1),
		PerHour(5).Using(FixedWindow), PerDay(5).Anchored(), PerDay(5).ResetAt(0, nil), PerDay(5).ResetAt(90*time.Minute, losAngeles),
		PerHour(5).ResetHourly(0, nil), PerHour(5).ResetHourly(15*time.Minute, losAngeles),
		PerWeek(5).ResetWeekly(time.Monday, 0, nil), PerWeek(5).ResetWeekly(time.Sunday, 0, losAngeles),
		PerMonth(5).ResetMonthly(1, 0, nil), PerMonth(5).ResetMonthly(31, 24*time.Hour-time.Minute, losAngeles), Total(5),
		PerHour(5).Using(SlidingLog), PerHour(5).Using(SlidingCounter), PerHour(5).Using(TokenBucket), PerHour(5).Using(LeakyBucket),
	}
	for i, l := range limits {
		b, err := l.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var read Limit
		if err := read.UnmarshalBinary(b); err != nil || read != l {
			t.Errorf("%v was read as %v: %v", l, read, err)
		}
		for cut := range b {
			if err := read.UnmarshalBinary(b[:cut]); err == nil {
				t.Errorf("%v: %d of %d bytes were read", l, cut, len(b))
			}
		}
		if err := read.UnmarshalBinary(append(b, 0)); err == nil || read != l {
			t.Errorf("%v and a byte more was read as %v: %v", l, read, err)
		}
		for _, other := range limits[i+1:] {
			if o, _ := other.AppendBinary(nil); bytes.Equal(b, o) {
				t.Errorf("%v and %v have the same bytes", l, other)
			}
		}
	}
	if err := new(Limit).UnmarshalBinary([]byte{0, 1, 1, 0, 0}); err == nil {
		t.Error("a limit of nothing was read")
	}
}

func TestWithCount(t *testing.T) {
	for _, c := range []struct{ got, want Limit }{
		{PerMinute(10).WithCount(3), PerMinute(3).WithBurst(10)},
		{PerMinute(10).WithBurst(5).WithCount(20), PerMinute(20).WithBurst(5)},
		{PerMinute(10).Using(SlidingLog).WithCount(3), PerMinute(3).Using(SlidingLog)},
		{PerDay(10).Anchored().WithCount(3), PerDay(3).Anchored()},
	} {
		if c.got != c.want {
			t.Errorf("got %v; want %v", c.got, c.want)
		}
	}
}
