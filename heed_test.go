package ratelimit

import (
	"testing"
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
