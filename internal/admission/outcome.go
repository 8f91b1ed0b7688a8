package admission

import (
	"iter"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Outcome is what the limits of its scopes say to a call. Do not copy one: it may point
// to itself.
type Outcome struct {
	Denied bool

	asked     bool // the limits were asked
	standings []Standing
	said      []limit.Decision

	// Room for what most calls have, so that they need no heap.
	fewStandings [2]Standing
	fewSaid      [12]limit.Decision
}

// Standing is what the limits of one scope say to a call.
type Standing struct {
	Scope  *Scope
	Closed Closed // by the gate of the scope

	plan *plan
	said []limit.Decision // in the order of plan.limits
}

// Pass makes the outcome that of a call which no limit governs.
func (o *Outcome) Pass() { o.asked = true }

// Of returns what a scope said, or nil if it was not asked.
func (o *Outcome) Of(s *Scope) *Standing {
	for i := range o.standings {
		if o.standings[i].Scope == s {
			return &o.standings[i]
		}
	}
	return nil
}

// Rules returns the rules by which the scope was decided on: nil where it has none.
func (s *Standing) Rules() *Rules { return s.plan.rules }

// Decisions returns the limits that were asked, and what each of them said.
func (s *Standing) Decisions() iter.Seq2[*Limit, *limit.Decision] {
	return func(yield func(*Limit, *limit.Decision) bool) {
		for i := range s.said {
			if !yield(&s.plan.rules.Limits[s.plan.limits[i]], &s.said[i]) {
				return
			}
		}
	}
}

// denied reports whether the scope denies the call.
func (s *Standing) denied() bool {
	for i := range s.said {
		if !s.said[i].Allowed {
			return true
		}
	}
	return s.Closed.For > 0
}

// Wait returns when the scope lets the call pass, as far as is known. When a call that
// is under way ends is not known, at the latest it is the end of its lease: guess is what
// to take for it. What is known comes before a guess that is longer.
func (s *Standing) Wait(guess time.Duration) time.Duration { return s.wait(guess, s.Closed.For) }

func (s *Standing) wait(guess, closed time.Duration) time.Duration {
	known, slot := closed, time.Duration(0)
	for i := range s.said {
		switch retry := s.said[i].RetryAfter; {
		case retry == 0:
		case retry != limit.Never && s.plan.rules.Limits[s.plan.limits[i]].Unit == Slots:
			slot = retry
		default:
			known = max(known, retry)
		}
	}
	if known > 0 {
		guess = min(guess, SlotGuess)
	}
	return max(known, min(slot, guess))
}

// PausedName is the name of the limit that a closed gate stands for.
const PausedName = "paused"

// By returns the limit that decides where the scope denies: its name, and its decision,
// which is nil for a closed gate.
func (s *Standing) By() (name string, by *limit.Decision) {
	deciding := -1
	for i := range s.said {
		switch d := &s.said[i]; {
		case d.Allowed:
		case deciding < 0 || s.precedes(i, deciding):
			deciding = i
		}
	}
	if deciding < 0 {
		return PausedName, nil
	}
	return s.plan.rules.Limits[s.plan.limits[deciding]].Name, &s.said[deciding]
}

// precedes reports whether of two limits that deny the first decides.
func (s *Standing) precedes(a, b int) bool {
	x, y := s.said[a].RetryAfter, s.said[b].RetryAfter
	if s.plan.rules.InOrder && (x == limit.Never) == (y == limit.Never) {
		return s.plan.limits[a] < s.plan.limits[b]
	}
	if x, y = s.told(a), s.told(b); x != y {
		return x > y
	}
	return s.plan.limits[a] < s.plan.limits[b]
}

// told returns for how long callers are told that a limit denies.
func (s *Standing) told(i int) time.Duration {
	retry := s.said[i].RetryAfter
	if retry != limit.Never && s.plan.rules.Limits[s.plan.limits[i]].Unit == Slots {
		return min(retry, SlotGuess)
	}
	return retry
}

// Deciding returns the standing that denies longest, where one denies: of several, the
// first.
func (o *Outcome) Deciding() *Standing {
	var deciding *Standing
	longest := time.Duration(0)
	for i := range o.standings {
		if wait := o.standings[i].Wait(SlotGuess); wait > longest {
			deciding, longest = &o.standings[i], wait
		}
	}
	return deciding
}

// wait returns when every scope lets the call pass, as far as is known.
func (o *Outcome) wait(guess time.Duration) (longest time.Duration) {
	for i := range o.standings {
		longest = max(longest, o.standings[i].Wait(guess))
	}
	return longest
}

// waits returns when the shared scope lets the call ask again, and when its own scopes do.
func (o *Outcome) waits(guess time.Duration) (shared, own time.Duration) {
	for i := range o.standings {
		s := &o.standings[i]
		if wait := s.wait(guess, s.Closed.Probe); s.Scope.line != nil {
			shared = max(shared, wait)
		} else {
			own = max(own, wait)
		}
	}
	return shared, own
}

// remainingMinute returns how many requests the innermost of the call's own scopes has
// left in the minute, or -1.
func (o *Outcome) remainingMinute() int64 {
	for i := range o.standings {
		s := &o.standings[i]
		if s.Scope.line != nil {
			continue
		}
		for l, d := range s.Decisions() {
			if l.Unit == Requests && l.Limit.Period() == time.Minute {
				return d.Remaining
			}
		}
	}
	return -1
}
