package limit

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLimitBinary(t *testing.T) {
	losAngeles, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	limits := []Limit{
		PerSecond(1), PerMinute(100).WithBurst(7), New(1<<62, maxPeriod), New(1, 1),
		PerHour(5).Using(FixedWindow), PerDay(5).Anchored(), PerDay(5).ResetAt(0, nil), PerDay(5).ResetAt(90*time.Minute, losAngeles),
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

// drawAccount returns an account with a random history, its limits, and the time.
func drawAccount(t *rapid.T) (*Account, []Limit, int64) {
	all := []Limit{
		PerMinute(40), PerHour(70).WithBurst(30), PerMinute(50).Using(FixedWindow), PerHour(60).Anchored(),
		PerDay(90).ResetAt(time.Hour, nil), PerMinute(60).Using(SlidingCounter), PerMinute(50).Using(SlidingLog), PerHour(80).Using(SlidingLog),
	}
	limits := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 5, rapid.ID).Draw(t, "limits")
	a, now := new(Account), accountStart
	var receipts []Receipt
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
	return a, limits, now
}

// The account of a snapshot is the one that it was made of.
func TestSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, _, _ := drawAccount(t)
		copied, err := a.Snapshot().Account()
		if err != nil {
			t.Fatal(err)
		}
		want, _ := a.AppendBinary(nil)
		if got, _ := copied.AppendBinary(nil); !bytes.Equal(got, want) {
			t.Fatalf("got  %x\nwant %x", got, want)
		}
	})
}

// A counter by itself says what its account says, and takes as it does.
func TestSnapshotCounters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, limits, now := drawAccount(t)
		now += rapid.Int64Range(0, int64(time.Minute)).Draw(t, "later")
		n := rapid.Int64Range(0, 100).Draw(t, "n")
		for _, l := range limits {
			if l.Algorithm() == SlidingLog {
				continue
			}
			want := a.Fork(now).Check(l, now, n)
			c := Counter{Limit: l}
			if a.enter(now); a.epoch != 0 {
				for _, each := range a.Snapshot().Counters {
					if each.Limit == l {
						c = each
					}
				}
			}
			if got := c.Check(now, n); got != want {
				t.Fatalf("%d of %v: %+v; its account says %+v", n, l, got, want)
			}
			if !want.Allowed || n == 0 {
				continue
			}
			fork := a.Fork(now)
			fork.Take([]Limit{l}, now, n)
			if got, want := c.Take(now, n).Check(now, 0), fork.Check(l, now, 0); got != want {
				t.Fatalf("after %d of %v: %+v; its account says %+v", n, l, got, want)
			}
		}
	})
}

func TestSnapshotThatCannotBe(t *testing.T) {
	window := []Window{{Period: time.Minute}}
	for name, s := range map[string]Snapshot{
		"an invalid limit":       {Epoch: 1, Counters: []Counter{{}}},
		"parts beyond the count": {Epoch: 1, Counters: []Counter{{Limit: PerMinute(3), B: 3}}},
		"a negative entry":       {Epoch: 1, Windows: window, Entries: []Entry{{1, -1}}},
		"entries in disorder":    {Epoch: 1, Windows: window, Entries: []Entry{{2, 1}, {1, 1}}},
		"a window of no length":  {Epoch: 1, Windows: []Window{{}}},
		"a window beyond":        {Epoch: 1, Windows: []Window{{Period: 1, First: 2}}, Entries: []Entry{{1, 1}}},
	} {
		if _, err := s.Account(); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// An account that was prepared says what it said, and has room in its log.
func TestPrepare(t *testing.T) {
	limits := []Limit{PerMinute(1 << 40).Using(SlidingLog), PerHour(1000)}
	var a Account
	now := accountStart
	for range 3 * mostEntries {
		a.Prepare(limits, now)
		if h := a.counters.log; h != nil && h.full() {
			t.Fatal("the log is full")
		}
		if a.Check(limits[1], now, 1).Allowed {
			a.Take(limits, now, 1)
		} else {
			a.Take(limits[:1], now, 1)
		}
		now += int64(time.Millisecond)
	}
	before := []Decision{a.Fork(now).Check(limits[0], now, 1), a.Fork(now).Check(limits[1], now, 1)}
	a.Prepare(limits, now)
	for i, l := range limits {
		if got := a.Check(l, now, 1); got != before[i] {
			t.Errorf("%v says %+v; before it was %+v", l, got, before[i])
		}
	}
	gone := now + int64(2*time.Hour)
	a.Take(limits[:1], gone, 1)
	a.Prepare(limits[:1], gone)
	if n := len(a.counters.each); n != 0 {
		t.Errorf("%d counters are left that are full", n)
	}
}
