package telemetry

import (
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// outcome is the result of a decision.
type outcome int

const (
	admitted outcome = iota
	denied
	refused // the call was not valid: no limit was asked
	left
	lost
	outcomes
)

var outcomeNames = [outcomes]string{"admitted", "denied", "refused", "left", "lost"}

// outcomeOf returns the outcome of a decision. ok is false for other events.
func outcomeOf(e *ratelimit.Event) (_ outcome, ok bool) {
	switch e.Kind {
	case ratelimit.EventAdmitted:
		return admitted, true
	case ratelimit.EventDenied:
		return denied, true
	case ratelimit.EventRefused:
		return refused, true
	case ratelimit.EventLeft:
		return left, true
	case ratelimit.EventLost:
		return lost, true
	default:
		return 0, false
	}
}

// waits reports whether calls with the outcome may have waited in line.
func (o outcome) waits() bool { return o == admitted || o == denied || o == left }

// waited reports whether a decision counts in the histogram of waits: every admitted call does, and
// any other if it has waited in vain.
func waited(e *ratelimit.Event, result outcome) bool {
	return result == admitted || result.waits() && e.Waited > 0
}

// other stands for all names without series of their own.
const other = "other"

// limitNames are the limits that an event may name. The first is none, and the last stands for
// unknown ones.
var limitNames = [...]string{
	"",
	"minute", "hour", "day", "tokens-minute", "tokens-hour", "tokens-day", "tokens-month", "concurrent-project",
	"rpm", "tpm", "rpd", "input_tpm", "output_tpm", "tpd", "concurrent", "paused",
	other,
}

// limits is the number of values of the label.
const limits = len(limitNames)

// limitOf returns the index of a limit in limitNames.
func limitOf(name string) int {
	if i := slices.Index(limitNames[:], name); i >= 0 {
		return i
	}
	return limits - 1
}

// causeNames are the causes for which providers throttle calls, as values of a label. The last
// stands for unknown ones.
var causeNames = [...]string{"rate_limit", "day_limit", "spend_cap", "overload", other}

// causes is the number of values of the label.
const causes = len(causeNames)

// causeOf returns the index of a cause in causeNames.
func causeOf(c llm.Cause) int {
	switch c {
	case llm.RateLimited:
		return 0
	case llm.DayLimited:
		return 1
	case llm.SpendCap:
		return 2
	case llm.Overloaded:
		return 3
	default:
		return causes - 1
	}
}

// shadows is the number of values of the label: whether the call goes on even if it is denied.
const shadows = 2

var shadowNames = [shadows]string{"false", "true"}

func shadowOf(shadow bool) int {
	if shadow {
		return 1
	}
	return 0
}

// verdict is a decision as it is counted.
type verdict struct {
	outcome outcome
	limit   int // index in limitNames
	shadow  int // index in shadowNames
}

func verdictOf(e *ratelimit.Event, result outcome) verdict {
	return verdict{result, limitOf(e.Limit), shadowOf(e.Shadow)}
}

// perVerdict has a T for each verdict.
type perVerdict[T any] [outcomes][limits][shadows]T

func (p *perVerdict[T]) at(v verdict) *T { return &p[v.outcome][v.limit][v.shadow] }
