package engine

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Asked keeps what the limits of its scopes have answered to a call, for those who want to know it
// later. Its memory can be used again for another call.
type Asked struct {
	ask       Ask
	admitted  bool // the verdicts count the call as used
	standings []Standing
	said      []limit.Verdict
	held      []int64 // what calls under way have reserved of each limit, if it reserves the most of a call
}

// Keep copies the answers to a call. It is cheap: what they mean is worked out by Answers.
func (a *Asked) Keep(c *Call, r *Result) {
	a.ask, a.admitted = c.Ask, r.Reservation != nil
	a.standings, a.said, a.held = a.standings[:0], a.said[:0], a.held[:0]
	for _, s := range r.Outcome.All() {
		if s.Scope.counts {
			continue
		}
		first := len(a.said)
		a.said = append(a.said, r.Outcome.said()[s.first:s.first+s.Len()]...)
		s.first = first
		a.held = append(a.held, make([]int64, s.Len())...)
		for k := range s.Len() {
			if r := s.plan.rules; r.hard {
				a.held[first+k] = s.Scope.Held(r.Limits[s.plan.limits[k]].Unit)
			}
		}
		a.standings = append(a.standings, s)
	}
}

// Forget makes it that of a call that no limit was asked about.
func (a *Asked) Forget() { a.standings = a.standings[:0] }

// Clone returns a copy with memory of its own.
func (a *Asked) Clone() Asked {
	b := *a
	b.standings, b.said, b.held = slices.Clone(a.standings), slices.Clone(a.said), slices.Clone(a.held)
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
	for i := range a.standings {
		s := &a.standings[i]
		if s.Closed.For > 0 {
			list = append(list, Answer{Scope: s.Scope, Rules: s.plan.rules, Closed: s.Closed, Verdict: limit.Verdict{RetryAfter: s.Closed.For}})
		}
		for k, at := range s.plan.limits {
			l := &s.plan.rules.Limits[at]
			if l.Free {
				continue
			}
			one := a.answer(s, l, a.said[s.first+k])
			if one.Held = a.held[s.first+k]; one.Held > 0 && a.admitted {
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
