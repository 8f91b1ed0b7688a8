package telemetry

import (
	"math"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// comparison is a call's estimate beside what it has used.
type comparison struct{ estimated, used int64 }

// comparisonOf compares the estimate of a call that is settled with what counts of
// what it has used. It cannot where no tokens were reserved, nor where a part of what
// was used is not known.
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

// error returns by how much of the estimate more was used; negative for less.
func (c comparison) error() float64 { return float64(c.used)/float64(c.estimated) - 1 }
