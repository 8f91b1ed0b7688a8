package telemetry

import (
	"math"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// comparison is a call's estimate beside what it has used.
type comparison struct{ estimated, used int64 }

// comparisonOf compares the estimate of a call that is settled. It cannot where no
// tokens were reserved, nor where a part of what was used is not known.
func comparisonOf(e *ratelimit.Event) (_ comparison, ok bool) {
	input, output := int64(e.Used.Input), int64(e.Used.Output)
	if e.Estimated <= 0 || input < 0 || output < 0 {
		return comparison{}, false
	}
	return comparison{e.Estimated, input + min(output, math.MaxInt64-input)}, true
}

// error returns by how much of the estimate more was used; negative for less.
func (c comparison) error() float64 { return float64(c.used)/float64(c.estimated) - 1 }
