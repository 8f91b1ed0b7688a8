package ratelimit

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// A window of the provider maps to a dimension of a quota, or is ignored.
func TestDimensionOf(t *testing.T) {
	want := map[llm.Window]kind.Kind{
		{Unit: llm.Requests, Per: time.Minute}:     kind.MaxRPM,
		{Unit: llm.Requests, Per: llm.Day}:         kind.MaxRPD,
		{Unit: llm.AllTokens, Per: time.Minute}:    kind.MaxTPM,
		{Unit: llm.AllTokens, Per: llm.Day}:        kind.MaxTPD,
		{Unit: llm.InputTokens, Per: time.Minute}:  kind.MaxInputTPM,
		{Unit: llm.OutputTokens, Per: time.Minute}: kind.MaxOutputTPM,
	}
	for _, unit := range []llm.Unit{llm.Requests, llm.AllTokens, llm.InputTokens, llm.OutputTokens, "", "images"} {
		for _, per := range []time.Duration{0, time.Second, time.Minute, time.Hour, llm.Day, -time.Minute} {
			w := llm.Window{Unit: unit, Per: per}
			d, known := want[w]
			if got, ok := kind.Reported(string(w.Unit), w.Per); ok != known || got != d {
				t.Errorf("%q in %v: %v, %t; want %v, %t", unit, per, got, ok, d, known)
			}
		}
	}
}
