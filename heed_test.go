package ratelimit

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

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
		full := map[string]span{}
		until := func(d time.Duration) span {
			end := rl.engine.Now() + int64(d)
			return span{from: rl.engine.Now(), word: end, until: end, probe: end, step: int64(firstProbe)}
		}
		for i := range mostPaused - 1 {
			full[fmt.Sprint(i)] = until(2 * time.Minute)
		}
		full["0"] = until(time.Second)
		rl.pauses.spans.Store(&full)
		before := maps.Clone(full)
		refuse("last", time.Minute)
		refuse("one too many", time.Minute)
		left("last", time.Minute)
		left("one too many", 0)
		refuse("1", 3*time.Minute)
		left("1", 3*time.Minute)
		time.Sleep(time.Second)
		refuse("another", time.Minute) // in the place of the one that has ended
		refuse("one too many", time.Minute)
		left("another", time.Minute)
		left("one too many", 0)
		if n := len(*rl.pauses.spans.Load()); n != mostPaused {
			t.Errorf("%d are paused; want %d", n, mostPaused)
		}
		if !maps.Equal(full, before) {
			t.Error("a map that others may be reading was changed")
		}
	})
}
