package ratelimit

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/llm"
)

// A window of the provider maps to a dimension of a quota, or is ignored.
func TestDimensionOf(t *testing.T) {
	want := map[llm.Window]state.Dimension{
		{Unit: llm.Requests, Per: time.Minute}:     state.RPM,
		{Unit: llm.Requests, Per: llm.Day}:         state.RPD,
		{Unit: llm.AllTokens, Per: time.Minute}:    state.TPM,
		{Unit: llm.AllTokens, Per: llm.Day}:        state.TPD,
		{Unit: llm.InputTokens, Per: time.Minute}:  state.InputTPM,
		{Unit: llm.OutputTokens, Per: time.Minute}: state.OutputTPM,
	}
	for _, unit := range []llm.Unit{llm.Requests, llm.AllTokens, llm.InputTokens, llm.OutputTokens, "", "images"} {
		for _, per := range []time.Duration{0, time.Second, time.Minute, time.Hour, llm.Day, -time.Minute} {
			w := llm.Window{Unit: unit, Per: per}
			d, known := want[w]
			if got, ok := dimensionOf[w]; ok != known || got != d {
				t.Errorf("%q in %v: %v, %t; want %v, %t", unit, per, got, ok, d, known)
			}
		}
	}
}
