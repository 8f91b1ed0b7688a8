package telemetry

import (
	"math"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

func TestComparison(t *testing.T) {
	for _, c := range []struct {
		estimated int64
		used      ratelimit.Tokens
		want      comparison
		ok        bool
		by        float64
	}{
		{1000, ratelimit.Tokens{Input: 900, Output: 600}, comparison{1000, 1500}, true, 0.5},
		{1000, ratelimit.Tokens{Input: 250}, comparison{1000, 250}, true, -0.75},
		{1000, ratelimit.Tokens{}, comparison{1000, 0}, true, -1},
		{1, ratelimit.Tokens{Input: math.MaxInt, Output: math.MaxInt}, comparison{1, math.MaxInt64}, true, 1 << 63},
		{1000, ratelimit.Tokens{Input: 900, Output: 600, FreeInput: 800, FreeOutput: 450}, comparison{1000, 250}, true, -0.75},
		{1000, ratelimit.Tokens{Input: 900, Output: 600, FreeInput: 900, FreeOutput: 600}, comparison{1000, 0}, true, -1},
		{1000, ratelimit.Tokens{Input: 900, Output: 600, FreeInput: math.MaxInt, FreeOutput: math.MinInt}, comparison{1000, 600}, true, 600.0/1000 - 1},
		{1000, ratelimit.Tokens{Input: 900, Output: -1}, comparison{}, false, 0},
		{1000, ratelimit.Tokens{Input: -1, Output: 300}, comparison{}, false, 0},
		{0, ratelimit.Tokens{Input: 900, Output: 300}, comparison{}, false, 0},
		{-1, ratelimit.Tokens{Input: 900, Output: 300}, comparison{}, false, 0},
	} {
		got, ok := comparisonOf(&ratelimit.Event{Estimated: c.estimated, Used: c.used})
		if got != c.want || ok != c.ok {
			t.Errorf("%d, and %+v used: %+v, %v; want %+v, %v", c.estimated, c.used, got, ok, c.want, c.ok)
		}
		if ok && got.error() != c.by {
			t.Errorf("%d, and %+v used: an error of %v, want %v", c.estimated, c.used, got.error(), c.by)
		}
	}
}
