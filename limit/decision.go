package limit

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that can never pass: it is larger than
// its limit, it is negative, or the limit is not valid.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one request.
type Decision struct {
	Allowed bool

	// Local says that a store has decided without the server that it shares with others. Then Used and ResetAfter
	// are not known: Used is only what must count as used for Remaining to be what this process may still use.
	Local bool

	// Limit is the limit that decided: of those that deny, the one that denies
	// longest; if all allow, the one with the least left. It is the zero Limit if
	// no limit governs the request.
	Limit Limit

	// Used is how much of Limit counts as used after this decision: for a sliding
	// log, what is in its window; for a fixed window, what was used since it began;
	// for a sliding counter its estimate, rounded down; for a bucket its backlog,
	// rounded up. If Used is more than the limit's burst, the rest is a debt, and as long as
	// there is a debt, even an amount of zero is denied.
	Used int64

	// Remaining is how much of Limit is left after this decision: the limit's burst
	// less Used, or zero if there is a debt.
	Remaining int64

	// RetryAfter is the time until the same request passes every limit, if nothing
	// else passes before it: zero if it was allowed, [Never] if it never can. While
	// other calls wait for the same key, it is the time until the first of them passes.
	RetryAfter time.Duration

	// ResetAfter is the time until nothing of Limit counts as used any more, if
	// nothing else passes.
	ResetAfter time.Duration

	// Since is when the window of a [FixedWindow] began, in Unix nanoseconds,
	// if anything is used of it, and 0 otherwise.
	Since int64
}

// Verdict is the decision of one limit, without the limit: see [Decision].
type Verdict struct {
	Allowed    bool
	Used       int64
	Remaining  int64
	RetryAfter time.Duration
	ResetAfter time.Duration
	Since      int64
}

// Verdict returns the decision without its limit.
func (d *Decision) Verdict() Verdict {
	return Verdict{d.Allowed, d.Used, d.Remaining, d.RetryAfter, d.ResetAfter, d.Since}
}

// By returns the verdict as a limit's decision.
func (v Verdict) By(l Limit) Decision {
	return Decision{Allowed: v.Allowed, Limit: l, Used: v.Used, Remaining: v.Remaining, RetryAfter: v.RetryAfter, ResetAfter: v.ResetAfter, Since: v.Since}
}

// ruling is the verdict that decides among those of several limits, and its limit.
type ruling struct {
	Verdict
	limit *Limit
}

// unruled is the answer to a request that no limit governs.
var unruled = ruling{Verdict: Verdict{Allowed: true, Remaining: math.MaxInt64}}

// add replaces the verdict by another limit's if that limit denies for longer, or
// for as long and leaves less.
func (r *ruling) add(v Verdict, l *Limit) {
	if v.RetryAfter > r.RetryAfter || v.RetryAfter == r.RetryAfter && v.Remaining <= r.Remaining {
		r.Verdict, r.limit = v, l
	}
}

func (r *ruling) decision() Decision {
	if r.limit == nil {
		return r.By(Limit{})
	}
	return r.By(*r.limit)
}
