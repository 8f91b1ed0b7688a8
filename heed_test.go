package ratelimit

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A provider's windows are those of a quota, or nothing that it knows.
func TestDimensionOf(t *testing.T) {
	want := map[llm.Window]dimension{
		{Unit: llm.Requests, Per: time.Minute}:     rpm,
		{Unit: llm.Requests, Per: llm.Day}:         rpd,
		{Unit: llm.AllTokens, Per: time.Minute}:    tpm,
		{Unit: llm.AllTokens, Per: llm.Day}:        tpd,
		{Unit: llm.InputTokens, Per: time.Minute}:  inputTPM,
		{Unit: llm.OutputTokens, Per: time.Minute}: outputTPM,
	}
	for _, unit := range []llm.Unit{llm.Requests, llm.AllTokens, llm.InputTokens, llm.OutputTokens, "", "images"} {
		for _, per := range []time.Duration{0, time.Second, time.Minute, time.Hour, llm.Day, -time.Minute} {
			w := llm.Window{Unit: unit, Per: per}
			d, known := want[w]
			if got, ok := dimensionOf(w); ok != known || got != d {
				t.Errorf("%q in %v: %v, %t; want %v, %t", unit, per, got, ok, d, known)
			}
		}
	}
}

// Each dimension of a quota can be replaced, and no other is changed by it.
func TestQuotaWith(t *testing.T) {
	q := ModelQuota{MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7, DayResetsAt: "00:00 UTC", Auto: true}
	for d := range paused {
		changed := q.with(d, 100)
		if changed.max(d) != 100 || changed.with(d, q.max(d)) != q {
			t.Errorf("%s: %+v", facts[d].name, changed)
		}
	}
}

// missingAt is what is missing at a time, by the book: rounded up, so that nobody is
// told that there is more than there is.
func missingAt(n, from, until, now int64) int64 {
	if now >= until {
		return 0
	}
	left := big.NewRat(until-max(now, from), until-from)
	left.Mul(left, new(big.Rat).SetInt64(n))
	whole, rest := new(big.Int).DivMod(left.Num(), left.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64()
}

// What is missing comes back evenly, and when some of it is back is never told early,
// nor late by more than one of it takes.
func TestMissingComesBackEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, maxQuota)).Draw(t, "n")
		lasts := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, int64(longest))).Draw(t, "lasts")
		from := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "from")
		now := from + rapid.Int64Range(-10, lasts+10).Draw(t, "since")
		var e elsewhere
		e[tpm].n, e[tpm].from, e[tpm].until = n, from, from+lasts
		want := missingAt(n, from, from+lasts, now)
		less := e.at(now)
		if less == nil {
			if want != 0 {
				t.Fatalf("nothing is missing; want %d", want)
			}
			return
		}
		if less[tpm].n != want || want == 0 {
			t.Fatalf("%d are missing; want %d", less[tpm].n, want)
		}
		much := rapid.Int64Range(1, want).Draw(t, "much")
		in := int64(less.after(tpm, much))
		base := max(now, from)
		if still := missingAt(n, from, from+lasts, base+in); still > want-much {
			t.Fatalf("in %d, when %d of %d should be back, %d are missing", in, much, want, still)
		}
		if early := base + in - lasts/n - 2; early > base && missingAt(n, from, from+lasts, early) <= want-much {
			t.Fatalf("%d of %d are back before %d: in %d at the latest", much, want, in, early-base)
		}
		if all := less.after(tpm, want+1); int64(all) != from+lasts-base {
			t.Fatalf("all of it is back in %d; want %d", all, from+lasts-base)
		}
	})
}

// However many names are refused, so many are paused at a time. Those that are may be
// for longer.
func TestPausedModelsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := memLimiter(t, ModelQuota{})
		refuse := func(model string, pause time.Duration) {
			rl.Heed(t.Context(), model, llm.Limits{Cause: llm.Overloaded, Pause: pause})
		}
		left := func(model string, want time.Duration) {
			t.Helper()
			if d := rl.Decide(model, 1); d.RetryAfter != want {
				t.Errorf("%s: %+v; want it paused for %v", model, d, want)
			}
		}
		full := map[string]int64{}
		for i := range mostPaused - 1 {
			full[fmt.Sprint(i)] = rl.clock() + int64(time.Hour)
		}
		full["0"] = rl.clock() + int64(time.Second)
		rl.pauses.until.Store(&full)
		before := maps.Clone(full)
		refuse("last", time.Minute)
		refuse("one too many", time.Minute)
		left("last", time.Minute)
		left("one too many", 0)
		refuse("1", 2*time.Hour)
		left("1", 2*time.Hour)
		time.Sleep(time.Second)
		refuse("another", time.Minute) // in the place of the one that has ended
		refuse("one too many", time.Minute)
		left("another", time.Minute)
		left("one too many", 0)
		if n := len(*rl.pauses.until.Load()); n != mostPaused {
			t.Errorf("%d are paused; want %d", n, mostPaused)
		}
		if !maps.Equal(full, before) {
			t.Error("a map that others may be reading was changed")
		}
	})
}
