package engine

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Asked keeps what the limits of its scopes have answered to a call, for those who want to know it
// later.
type Asked struct {
	ask       Ask
	admitted  bool // the decisions count the call as used
	standings []Standing
	held      []int64 // what calls under way have reserved of each limit, if it reserves the most of a call
}

// Keep keeps the answers to a call. It is cheap: what they mean is worked out by Answers.
func (a *Asked) Keep(c *Call, r *Result) {
	a.ask, a.admitted, a.standings, a.held = c.Ask, r.Reservation != nil, r.Outcome.All(), a.held[:0]
	for i := range a.standings {
		s := &a.standings[i]
		for k := range s.Len() {
			n := int64(0)
			if l, _ := s.At(k); s.plan.rules.hard {
				n = s.Scope.Held(l.Unit)
			}
			a.held = append(a.held, n)
		}
	}
}

// Forget resets a to the zero Asked.
func (a *Asked) Forget() { a.standings = nil }

// Clone returns a copy that does not change when a is used again.
func (a *Asked) Clone() Asked {
	b := *a
	b.held = slices.Clone(a.held)
	return b
}

// Answer is what one limit has answered to a call.
type Answer struct {
	Scope  *Scope
	Rules  *Rules
	Limit  *Limit // nil: the gate of the scope is closed
	Share  *Share // the flow's share of Limit has answered, and not the limit itself
	Closed Closed
	limit.Verdict

	Used   int64 // in place of the verdict's: before the call
	Held   int64 // the part of Used that calls under way in this process had reserved
	Needed int64
}

// Answers returns what each limit has answered that can deny a call, those of one scope after those
// of another.
func (a *Asked) Answers() (list []Answer) {
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
func (a *Asked) appendAnswers(list []Answer, s *Standing, held []int64) []Answer {
	if s.Closed.For > 0 {
		list = append(list, Answer{Scope: s.Scope, Rules: s.plan.rules, Closed: s.Closed, Verdict: limit.Verdict{RetryAfter: s.Closed.For}})
	}
	for k := range s.Len() {
		l, said := s.At(k)
		if l.Free {
			continue
		}
		one := a.answer(s, l, said.Verdict())
		if one.Held = held[k]; one.Held > 0 && a.admitted {
			one.Held -= one.Needed // its own
		}
		one.Held = min(one.Held, one.Used)
		if s.IsHeld(k) {
			one.RetryAfter = min(one.RetryAfter, SlotGuess)
		}
		list = append(list, one)
	}
	if s.share != nil {
		of := a.answer(s, s.share.Limit, limit.Verdict{RetryAfter: s.share.RetryAfter})
		of.Share, of.Used = s.share, s.share.Used
		list = append(list, of)
	}
	return list
}

func (a *Asked) answer(s *Standing, l *Limit, said limit.Verdict) Answer {
	one := Answer{Scope: s.Scope, Rules: s.plan.rules, Limit: l, Verdict: said, Used: said.Used, Needed: s.plan.rules.Amount(l.Unit, &a.ask)}
	if a.admitted {
		one.Used -= one.Needed
	}
	return one
}
