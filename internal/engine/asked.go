package engine

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/decision"
)

// Asked is what each limit has answered to a call: see [Call].Asked. The zero Asked is ready to use, and may be used
// again for another call.
type Asked struct {
	ask       Ask
	admitted  bool // the decisions count the call as used
	standings []Standing
	held      []int64 // what calls under way have reserved of each limit, if it reserves the most of a call
}

// keep keeps the answers to a call, unless a is nil. It is cheap: what they mean is worked out by Limits.
func (a *Asked) keep(c *Call, r *Result) {
	if a == nil {
		return
	}
	a.ask, a.admitted, a.held = c.ask, r.Reservation != nil, a.held[:0]
	a.standings = append(a.standings[:0], r.Outcome.All()...)
	for i := range a.standings {
		s := &a.standings[i]
		for k := range s.Len() {
			n := int64(0)
			if s.plan.rules.hard {
				n = s.Reserved(k)
			}
			a.held = append(a.held, n)
		}
	}
}

// Forget resets a to the zero Asked.
func (a *Asked) Forget() {
	clear(a.standings) // so that what they point at may go
	*a = Asked{standings: a.standings[:0], held: a.held[:0]}
}

// Clone returns a copy that does not change when a is used again.
func (a *Asked) Clone() *Asked {
	b := *a
	b.standings, b.held = slices.Clone(a.standings), slices.Clone(a.held)
	return &b
}

// LimitAnswer is what one limit has answered to a call.
type LimitAnswer struct {
	Owner string // whose limit it is, as in project.Decision; empty: the model's
	Limit string // its name, as in event.Event
	Unit  string // "requests", "tokens", "calls" at a time, or "nanodollars"

	Max       int64
	Used      int64 // before the call
	Reserved  int64 // the part of Used that calls under way held, if the limit reserves the most of a call: see [Standing.Reserved]
	Elsewhere int64 // what others use of the account, as the provider reports it
	Needed    int64 // by the call

	RetryAfter time.Duration // until the limit lets the call pass: zero if it does, [limit.Never] if it cannot
	ResetAfter time.Duration // until nothing is used of it, if nothing else passes; zero if that is not known

	Local  bool                 // the store has answered without its server: Used and ResetAfter are not known
	Shadow bool                 // the limit is in shadow: it counts, and denies nothing
	Share  decision.DeniedShare // of a project that has used its share of the limit; zero for any other answer
}

// Limits returns what each limit has answered: those of the model, of the call's project and of all
// above it, of its key and of its run. It is empty if none was asked.
func (a *Asked) Limits() (list []LimitAnswer) {
	held := a.held
	for i := range a.standings {
		s := &a.standings[i]
		if s.Scope.Kind != Counter {
			list = a.appendAnswers(list, s, held)
		}
		held = held[s.Len():]
	}
	return list
}

// appendAnswers appends what the limits of one scope have answered. held is what calls under way have reserved of each.
func (a *Asked) appendAnswers(list []LimitAnswer, s *Standing, held []int64) []LimitAnswer {
	if s.Closed.For > 0 {
		one := s.answer()
		one.Limit, one.Unit, one.Needed, one.RetryAfter = PausedName, Slots.Counted(), 1, s.Closed.For
		list = append(list, one)
	}
	for k := range s.Len() {
		if l, _ := s.At(k); !l.Free {
			list = append(list, a.answer(s, k, held[k]))
		}
	}
	if share := s.share; share != nil {
		one := s.answer()
		one.Limit, one.Unit, one.Max, one.Used = share.Name, share.Limit.Unit.Counted(), share.Share, share.Used
		one.Needed, one.RetryAfter, one.Share = s.plan.rules.Amount(share.Limit.Unit, &a.ask), share.RetryAfter, share.Denied()
		list = append(list, one)
	}
	return list
}

// answer returns what one of the limits of a scope has answered. held is what calls under way have reserved of it.
func (a *Asked) answer(s *Standing, i int, held int64) LimitAnswer {
	l, said := s.At(i)
	one := s.answer()
	one.Limit, one.Unit, one.Needed, one.Elsewhere = l.Name, l.Unit.Counted(), s.plan.rules.Amount(l.Unit, &a.ask), l.Elsewhere
	one.Max = l.Limit.Burst() + l.Elsewhere // which the limit was lowered by
	one.Used, one.Reserved = said.Used, held
	if a.admitted { // its own
		one.Used -= one.Needed
		if held > 0 {
			one.Reserved -= one.Needed
		}
	}
	one.Reserved = min(one.Reserved, one.Used)
	one.Local, one.RetryAfter, one.ResetAfter = said.Local, said.RetryAfter, said.ResetAfter
	if s.IsHeld(i) {
		one.RetryAfter = min(one.RetryAfter, SlotGuess)
	}
	return one
}

// answer returns whose limits have answered.
func (s *Standing) answer() (one LimitAnswer) {
	one.Shadow = s.Scope.Kind == Shadow
	if !s.Scope.OfModel() {
		one.Owner = s.Scope.Name
	}
	return one
}
