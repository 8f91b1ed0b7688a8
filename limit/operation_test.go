package limit

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// operationLimits are sets of limits of one key. Those of the second have replaced those of the first.
var operationLimits = [][]Limit{
	accountKinds(10),
	accountKinds(20),
	{PerMinute(30).Using(SlidingLog), PerHour(70).Using(SlidingLog)},
	{PerHour(40), PerDay(20).ResetAt(90*time.Minute, losAngeles), PerMinute(12).Using(SlidingCounter)},
}

// allowsAll reports whether all limits allow n, and changes nothing.
func allowsAll(a *Account, limits []Limit, now, n int64) bool {
	v := a.View(now)
	v.Fit(limits, now)
	return !slices.ContainsFunc(limits, func(l Limit) bool { return !v.Check(l, now, n).Allowed })
}

// All who replay the same operations at the same times have the same account, whether they replay one by one or several
// at once. It says what an account says that was changed by direct calls.
func TestOperationsAreReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var direct, done, replayed Account
		var open []Operation
		now, seed := accountStart, uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, int64(time.Second), int64(40 * time.Second), int64(2 * time.Hour), -1, -int64(time.Minute)}).Draw(t, "later")
			seed++
			var record []Operation
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				limits := operationLimits[rapid.IntRange(0, len(operationLimits)-1).Draw(t, "limits")]
				n := rapid.Int64Range(1, 9).Draw(t, "n")
				o := Operation{Kind: FitOperation, Limits: limits}
				switch i := rapid.IntRange(0, 3).Draw(t, "kind"); {
				case i == 0 && len(open) > 0:
					o = open[0]
					o.Actual, open = o.Receipt.N+rapid.SampledFrom([]int64{-1, 1, 5}).Draw(t, "more"), open[1:]
				case i < 3 && allowsAll(&done, limits, now, n):
					o = Operation{Kind: TakeOperation, Limits: limits, N: n}
				}
				was, wasDirect := done.epoch, direct.epoch
				r := done.Do(&o, now, seed)
				switch o.Kind {
				case TakeOperation:
					direct.Fit(limits, now)
					direct.Take(limits, now, n)
					open = append(open, Operation{Kind: SettleOperation, Limits: limits, Receipt: r})
				case SettleOperation:
					again := o.Receipt
					if again.Epoch&^rewinds == was&^rewinds { // which the direct account has drawn at random
						again.Epoch = again.Epoch&rewinds | wasDirect&^rewinds
					}
					direct.Settle(o.Limits, again, now, o.Actual)
				default:
					direct.Fit(limits, now)
					for _, l := range limits {
						direct.Check(l, now, 0)
					}
				}
				record = append(record, o)
			}
			if err := replayed.Replay(AppendOperations(nil, record), now, seed); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "read") {
				for _, a := range []*Account{&direct, &done, &replayed} { // all at once: a log that was read forgets at other times
					if err := a.Replay(a.AppendState(nil), now, seed); err != nil {
						t.Fatal(err)
					}
				}
			}
			want, _ := done.AppendBinary(nil)
			if got, _ := replayed.AppendBinary(nil); !bytes.Equal(got, want) {
				t.Fatalf("replayed: %x; want %x", got, want)
			}
			for _, limits := range operationLimits {
				for _, l := range limits {
					if got, want := done.View(now).Check(l, now, 3), direct.View(now).Check(l, now, 3); got != want {
						t.Fatalf("%v: %+v; after direct calls %+v", l, got, want)
					}
				}
			}
		}
	})
}

// What others charge while all limits have room for it, and time that passes, does not make a limit deny what it allowed
// with so much to spare.
func TestSpareAmounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Account
		now, seed := accountStart, uint64(0)
		step := func(limits []Limit, n int64) bool {
			seed++
			if !allowsAll(&a, limits, now, n) {
				return false
			}
			a.Do(&Operation{Kind: TakeOperation, Limits: limits, N: n}, now, seed)
			return true
		}
		limits := operationLimits[rapid.IntRange(0, len(operationLimits)-1).Draw(t, "limits")]
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			now += rapid.Int64Range(0, int64(time.Minute)).Draw(t, "later")
			step(limits, rapid.Int64Range(1, 5).Draw(t, "taken before"))
		}
		n, spare := rapid.Int64Range(1, 5).Draw(t, "n"), int64(100)
		if !allowsAll(&a, limits, now, n) {
			return
		}
		v := a.View(now)
		for _, l := range limits {
			spare = min(spare, v.Check(l, now, n).Remaining)
		}
		for spare > 0 {
			now += rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "meanwhile")
			other := rapid.Int64Range(1, spare).Draw(t, "others")
			if !step(limits, other) {
				t.Fatalf("%d of %d to spare do not pass", other, spare)
			}
			spare -= other
		}
		if !allowsAll(&a, limits, now, n) {
			t.Fatalf("%d do not pass after others have charged what was to spare", n)
		}
	})
}

// Fits is true if a take changes nothing but by its charge.
func TestFits(t *testing.T) {
	log := PerMinute(10).Using(SlidingLog)
	for name, c := range map[string]struct {
		limits []Limit
		later  int64
		want   bool
	}{
		"the same limits":          {[]Limit{PerMinute(10), log}, 1, true},
		"one of them":              {[]Limit{log}, 0, true},
		"another kind":             {[]Limit{PerHour(3).Anchored()}, 1, true},
		"another count":            {[]Limit{PerMinute(11)}, 1, false},
		"a longer log":             {[]Limit{PerHour(10).Using(SlidingLog)}, 1, false},
		"a clock that went back":   {[]Limit{log}, -1, false},
		"when nothing is in use":   {[]Limit{PerMinute(11)}, int64(time.Hour), true},
		"another count of the log": {[]Limit{log.WithCount(5)}, 1, true},
	} {
		var a Account
		a.Take([]Limit{PerMinute(10), log}, accountStart, 3)
		if got := a.Fits(c.limits, accountStart+c.later); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// Bytes that are no operations are an error, and never a panic. What is read is written as it was.
func FuzzOperations(f *testing.F) {
	a := accountUsed()
	limits := operationLimits[0]
	r := a.Do(&Operation{Kind: TakeOperation, Limits: limits, N: 1}, accountStart, 1)
	f.Add(AppendOperations(nil, []Operation{
		{Kind: TakeOperation, Limits: limits, N: 3}, {Kind: SettleOperation, Limits: limits, Receipt: r, Actual: 9}, {Kind: FitOperation, Limits: limits[:2]},
	}))
	f.Add(a.AppendState(nil))
	f.Add([]byte{9})
	f.Fuzz(func(t *testing.T, operations []byte) {
		used := accountUsed()
		for seed, at := range []int64{accountStart, accountStart - int64(time.Hour), accountStart + int64(30*day)} {
			if err := used.Replay(operations, at, uint64(seed)); err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatal(err)
				}
				return
			}
		}
		var again Account
		if err := again.Replay(used.AppendState(nil), accountStart, 1); err != nil {
			t.Fatal(err)
		}
	})
}

// Takes that no limit allows, which nobody has written, are replayed without a panic: what is not charged leaves no counter.
func TestReplayOfTakesThatAreNotAllowed(t *testing.T) {
	var a Account
	for range 2 {
		if err := a.Replay(AppendOperations(nil, []Operation{{Kind: TakeOperation, Limits: []Limit{PerMinute(1), PerHour(1)}, N: 5}}), accountStart, 1); err != nil {
			t.Error(err)
		}
	}
}
