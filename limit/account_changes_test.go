package limit

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An account that is changed by what another has written is like that one, whatever happens to the other between:
// takes, settlements of takes that are near or far, limits that change, a clock that goes back, questions that take
// nothing, and very many entries.
func TestChangesMakeTheSameAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b Account
		now := time.Date(2026, time.March, 14, 12, 0, 0, 1, time.UTC).UnixNano()
		limits := []Limit{PerMinute(1 << 40).Using(SlidingLog), PerDay(1 << 40).Using(SlidingLog), PerDay(1 << 40).Using(FixedWindow)}
		var taken []Receipt
		written := func() {
			t.Helper()
			form := a.AppendChanges(nil)
			if err := b.ApplyChanges(form); err != nil {
				t.Fatal(err)
			}
			want, _ := a.AppendBinary(nil)
			if got, _ := b.AppendBinary(nil); !bytes.Equal(got, want) {
				t.Fatalf("%d entries differ from %d", len(got), len(want))
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0, 1, 2:
				taken = append(taken, a.Take(limits, now, rapid.Int64Range(0, 3).Draw(t, "n")))
			case 3, 4:
				if len(taken) > 0 {
					i := rapid.IntRange(0, len(taken)-1).Draw(t, "receipt")
					a.Settle(limits, taken[i], now, rapid.Int64Range(0, 4).Draw(t, "actual"))
					taken = append(taken[:i], taken[i+1:]...)
				}
			case 5:
				for range rapid.SampledFrom([]int{50, 500, 5000}).Draw(t, "many") {
					now += int64(time.Millisecond)
					taken = append(taken, a.Take(limits, now, 1))
				}
			case 6:
				a.Fit(limits, now)
				a.Check(limits[0], now, 1<<41)
			case 7:
				limits[0] = limits[0].WithCount(rapid.Int64Range(1<<39, 1<<40).Draw(t, "count"))
				if rapid.Bool().Draw(t, "hour") {
					limits = append(limits[:2:2], PerHour(1<<40).Using(SlidingLog))
				}
			case 8:
				written()
			}
			now += rapid.SampledFrom([]int64{0, 1, int64(time.Second), int64(time.Minute), -int64(time.Second), int64(25 * time.Hour)}).Draw(t, "time")
		}
		written()
	})
}

// The changes of an account with a full log are about as small as those of an empty one, also when an old take is
// settled.
func TestChangesAreSmall(t *testing.T) {
	var a Account
	limits := []Limit{PerMinute(1 << 40).Using(SlidingLog)}
	var taken []Receipt
	now := int64(1 << 60)
	for range 3000 {
		now += int64(10 * time.Millisecond)
		taken = append(taken, a.Take(limits, now, 7))
	}
	if whole := len(a.AppendChanges(nil)); whole < 9000 {
		t.Errorf("at first, the whole account is written: %d bytes", whole)
	}
	for _, settled := range []int{2999, 2990, 1500} {
		now += int64(10 * time.Millisecond)
		a.Take(limits, now, 7)
		a.Settle(limits, taken[settled], now, 3)
		if n := len(a.AppendChanges(nil)); n > 150 {
			t.Errorf("a take, and settling the %dth, are %d bytes", settled, n)
		}
	}
}

// Changes of another account are refused, and so are other bytes.
func TestApplyCorruptChanges(t *testing.T) {
	limits := []Limit{PerMinute(1 << 40).Using(SlidingLog)}
	var a Account
	for now := range int64(100) {
		a.Take(limits, now, 7)
	}
	whole := a.AppendChanges(nil)
	a.Take(limits, 200, 1)
	form := a.AppendChanges(nil)
	var empty, ahead Account
	ahead.ApplyChanges(whole)
	ahead.Take(limits, 150, 1)
	for name, b := range map[string]*Account{"an empty account": &empty, "an account that has changed": &ahead} {
		if err := b.ApplyChanges(form); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range form {
		var b Account
		if err := b.ApplyChanges(whole); err != nil {
			t.Fatal(err)
		}
		if err := b.ApplyChanges(form[:i]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", i, len(form), err)
		}
	}
}

func FuzzApplyChanges(f *testing.F) {
	limits := []Limit{PerMinute(1 << 40).Using(SlidingLog)}
	var a Account
	for now := range int64(100) {
		a.Take(limits, now, 7)
	}
	whole := a.AppendChanges(nil)
	r := a.Take(limits, 200, 1)
	f.Add(a.AppendChanges(nil))
	a.Settle(limits, r, 200, 0)
	f.Add(a.AppendChanges(nil))
	f.Fuzz(func(t *testing.T, form []byte) {
		var b Account
		if err := b.ApplyChanges(whole); err != nil {
			t.Fatal(err)
		}
		if b.ApplyChanges(form) == nil {
			b.Check(limits[0], 300, 1)
			b.AppendChanges(nil)
		}
	})
}
