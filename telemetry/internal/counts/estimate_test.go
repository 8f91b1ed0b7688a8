package counts

import (
	"math"
	"testing"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/llm"
)

func TestComparedTokens(t *testing.T) {
	for _, c := range []struct {
		estimated int64
		used      llm.Tokens
		want      int64
		ok        bool
	}{
		{1000, llm.Tokens{Input: 900, Output: 600}, 1500, true},
		{1000, llm.Tokens{Input: 250}, 250, true},
		{1000, llm.Tokens{}, 0, true},
		{1, llm.Tokens{Input: math.MaxInt, Output: math.MaxInt}, 1 << 54, true},
		{1000, llm.Tokens{Input: 900, Output: 600, FreeInput: 800, FreeOutput: 450}, 250, true},
		{1000, llm.Tokens{Input: 900, Output: 600, FreeInput: 900, FreeOutput: 600}, 0, true},
		{1000, llm.Tokens{Input: 900, Output: 600, FreeInput: math.MaxInt, FreeOutput: math.MinInt}, 600, true},
		{1000, llm.Tokens{Input: 900, Output: -1}, 0, false},
		{1000, llm.Tokens{Input: -1, Output: 300}, 0, false},
		{0, llm.Tokens{Input: 900, Output: 300}, 0, false},
		{-1, llm.Tokens{Input: 900, Output: 300}, 0, false},
	} {
		got, ok := comparedTokens(&event.Event{Estimated: c.estimated, Used: c.used})
		if got != c.want || ok != c.ok {
			t.Errorf("%d, and %+v used: %d, %v; want %d, %v", c.estimated, c.used, got, ok, c.want, c.ok)
		}
	}
}
