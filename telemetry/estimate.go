package telemetry

import (
	"math"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// comparison is the estimate of a call beside what it has used.
type comparison struct{ estimated, used int64 }

// comparisonOf compares the estimate of a settled call with the used tokens that count towards its
// quota. ok is false where no tokens were reserved, or a part of the usage is unknown.
func comparisonOf(e *ratelimit.Event) (_ comparison, ok bool) {
	u := e.Used
	if e.Estimated <= 0 || u.Input < 0 || u.Output < 0 {
		return comparison{}, false
	}
	input, output := counted(u.Input, u.FreeInput), counted(u.Output, u.FreeOutput)
	return comparison{e.Estimated, input + min(output, math.MaxInt64-input)}, true
}

// counted returns how many of some tokens count towards a quota.
func counted(all, free int) int64 { return int64(all - min(max(free, 0), all)) }

// error returns the relative error of the estimate: negative if less was used.
func (c comparison) error() float64 { return float64(c.used)/float64(c.estimated) - 1 }
