package engine

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Outcome is what the limits of its scopes say to a call.
type Outcome struct {
	Denied bool

	// Shadow is a limit in shadow that would have denied the call, if it has passed.
	Shadow decision.ShadowDenial

	asked    bool   // the limits were asked
	shadowed bool   // some of them count the call, and do not deny it
	counted  bool   // a share denies it by what the store has counted, of which this process had not known
	divided  uint32 // the scopes whose limits may be divided, one bit for each
	capped   uint32 // the scopes with a maximum share of the limits of others

	n    int                 // how many scopes there are
	few  [fewScopes]Standing // what they say, unless there are more
	many []Standing          // what they say if there are more
}

// fewScopes is how many scopes most calls have at most.
const fewScopes = 3

// all returns what each scope says, also before the limits were asked. It points into the outcome, which most callers have
// on their stack: whoever keeps it makes a copy.
func (o *Outcome) all() []Standing {
	if o.many != nil {
		return o.many
	}
	return o.few[:o.n]
}

// Standing is what one scope says to a call.
type Standing struct {
	Scope  *Scope
	Closed Closed // by the gate of the scope

	charged
	said  []limit.Decision // of each limit of the plan; behind its length, as far as its capacity, of each of the holds
	share *Share           // that denies; nil: none does
	held  uint32           // the limits that deny the call only because of what is reserved, one bit for each
}

// charged is the amounts that a call uses of the limits of one scope.
type charged struct {
	plan   *plan
	counts bool // the store counts what the call reserves: see holds
}

// All returns what each scope says. It is empty before the limits were asked.
func (o *Outcome) All() []Standing {
	if !o.asked {
		return nil
	}
	return o.all()
}

// Pass sets the outcome of a call which no limit governs.
func (o *Outcome) Pass() { o.asked = true }

// Of returns what a scope, or its shadow, says, or nil if it was not asked.
func (o *Outcome) Of(s *Scope) *Standing {
	all := o.all()
	for i := range all {
		if o.asked && all[i].Scope.Real() == s {
			return &all[i]
		}
	}
	return nil
}

// Rules returns the rules by which the scope was decided on: nil where it has none.
func (s *Standing) Rules() *Rules { return s.plan.rules }

// Len returns how many limits of the scope were asked.
func (s *Standing) Len() int { return len(s.said) }

// At returns one of the limits of the scope that were asked, and what it said.
func (s *Standing) At(i int) (*Limit, *limit.Decision) {
	return &s.plan.rules.Limits[s.plan.limits[i]], &s.said[i]
}

// Said returns what one of the limits of the scope that were asked said, and its place in [Rules].Limits.
func (s *Standing) Said(i int) (place int, said *limit.Decision) {
	return s.plan.limits[i], &s.said[i]
}

// denies reports whether the scope denies the call.
func (s *Standing) denies() bool {
	for i := range s.Len() {
		if !s.said[i].Allowed {
			return true
		}
	}
	return s.Closed.For > 0 || s.share != nil
}

// Wait returns after how long the scope admits the call, as far as is known. Nobody knows when a call under way ends and
// gives back its slot and what it has reserved: guess stands for that time. A time that is known is returned in place of
// a longer guess.
func (s *Standing) Wait(guess time.Duration) time.Duration {
	return s.wait(guess, s.Closed.For)
}

func (s *Standing) wait(guess, closed time.Duration) time.Duration {
	if s.share != nil && s.share.Never {
		return limit.Never
	}
	known, slot := closed, time.Duration(0)
	for i := range s.Len() {
		l, d := s.At(i)
		switch retry := d.RetryAfter; {
		case retry == 0:
		case s.IsHeld(i), retry != limit.Never && l.Unit.InFlight():
			slot = max(slot, retry)
		default:
			known = max(known, retry)
		}
	}
	if known > 0 {
		guess = min(guess, SlotGuess)
	} else if s.share != nil && guess > 0 {
		known = s.share.RetryAfter // at the latest
	}
	return max(known, min(slot, guess))
}

// PausedName is the name of the limit that a closed gate stands for.
const PausedName = "paused"

// By returns the limit that decides where the scope denies, and what it said: nil and nil for
// a closed gate.
func (s *Standing) By() (*Limit, *limit.Decision) {
	deciding := s.deciding()
	if deciding < 0 {
		return nil, nil
	}
	return s.At(deciding)
}

// deciding returns the place of the limit that decides where the scope denies, or -1.
func (s *Standing) deciding() int {
	deciding := -1
	for i := range s.Len() {
		if !s.said[i].Allowed && (deciding < 0 || s.precedes(i, deciding)) {
			deciding = i
		}
	}
	return deciding
}

// NameOf returns the name of the limit that decides where the scope denies, or of the share.
func (s *Standing) NameOf() string {
	if s.share != nil && s.share.Never {
		return s.share.Name
	}
	if l, _ := s.By(); l != nil {
		return l.Name
	}
	if s.share != nil && s.Closed.For == 0 {
		return s.share.Name
	}
	return PausedName
}

// precedes reports whether of two limits that deny the first decides: the one that denies longest, or else the one that
// comes first.
func (s *Standing) precedes(a, b int) bool {
	x, y := s.RetryAfter(a), s.RetryAfter(b)
	return x > y || x == y && s.plan.limits[a] < s.plan.limits[b]
}

// RetryAfter returns after how long callers of a limit that denies should ask again.
func (s *Standing) RetryAfter(i int) time.Duration {
	l, d := s.At(i)
	if s.IsHeld(i) || d.RetryAfter != limit.Never && l.Unit.InFlight() {
		return min(d.RetryAfter, SlotGuess)
	}
	return d.RetryAfter
}

// Deciding returns the standing that denies longest, where one denies: of several, the
// first.
func (o *Outcome) Deciding() *Standing {
	var deciding *Standing
	longest := time.Duration(0)
	all := o.all()
	for i := range all {
		if wait := all[i].Wait(SlotGuess); wait > longest {
			deciding, longest = &all[i], wait
		}
	}
	return deciding
}

// longest returns after how long every scope admits the call, as far as is known.
func (o *Outcome) longest(guess time.Duration) (longest time.Duration) {
	all := o.all()
	for i := range all {
		longest = max(longest, all[i].Wait(guess))
	}
	return longest
}

// waits returns after how long the call may ask its shared scope again, and after how long its own scopes.
func (o *Outcome) waits(guess time.Duration) (shared, own time.Duration) {
	all := o.all()
	for i := range all {
		s := &all[i]
		if wait := s.wait(guess, s.Closed.Probe); s.Scope.Kind == Shared {
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
	if !o.asked {
		return -1
	}
	all := o.all()
	for k := range all {
		s := &all[k]
		if s.Scope.OfModel() || s.Scope.Kind == Counter {
			continue
		}
		for i := range s.Len() {
			if l, d := s.At(i); l.Unit == Requests && l.Limit.Period() == time.Minute {
				return d.Remaining
			}
		}
	}
	return -1
}
