package telemetry

import (
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// outcome is what became of a call that asked to be made.
type outcome int

const (
	admitted outcome = iota
	denied
	refused // no limit was asked
	left
	lost
	outcomes
)

var outcomeNames = [outcomes]string{"admitted", "denied", "refused", "left", "lost"}

// outcomeOf returns the outcome of a decision. Other events are none.
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

// waited reports whether a decision counts among the waits: all that were admitted, and
// of the others those that have waited in vain.
func waited(e *ratelimit.Event, became outcome) bool {
	return became == admitted || became.waits() && e.Waited > 0
}

// other stands for all names that get no series of their own.
const other = "other"

// limitNames is the limits that an event may name. The first is none, and the last
// stands for those that are not known here.
var limitNames = [...]string{
	"",
	"minute", "hour", "day", "tokens-minute", "tokens-hour", "tokens-day", "tokens-month", "concurrent-project",
	"rpm", "tpm", "rpd", "input_tpm", "output_tpm", "tpd", "concurrent", "paused",
	other,
}

// limits is how many values the label has.
const limits = len(limitNames)

// limitOf returns the place of a limit in limitNames.
func limitOf(name string) int {
	if i := slices.Index(limitNames[:], name); i >= 0 {
		return i
	}
	return limits - 1
}

// causeNames is why providers throttle calls, as labels have it. The last stands for what
// is not known here.
var causeNames = [...]string{"rate_limit", "day_limit", "spend_cap", "overload", other}

// causes is how many values the label has.
const causes = len(causeNames)

// causeOf returns the place of a cause in causeNames.
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

// shadows is how many values the label has: the call was held to the decision, or
// not.
const shadows = 2

var shadowNames = [shadows]string{"false", "true"}

func shadowOf(shadow bool) int {
	if shadow {
		return 1
	}
	return 0
}

// verdict is a decision as far as it is counted.
type verdict struct {
	outcome outcome
	limit   int // place in limitNames
	shadow  int // place in shadowNames
}

func verdictOf(e *ratelimit.Event, became outcome) verdict {
	return verdict{became, limitOf(e.Limit), shadowOf(e.Shadow)}
}

// perVerdict has a T for each verdict.
type perVerdict[T any] [outcomes][limits][shadows]T

func (p *perVerdict[T]) at(v verdict) *T { return &p[v.outcome][v.limit][v.shadow] }
