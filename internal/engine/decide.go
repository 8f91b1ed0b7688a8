package engine

import (
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Decide fills in d, which is empty, with the answer to a call: what decides, and where the projects, the key and the run
// stand that the call is charged to.
func (r *Result) Decide(d *decision.Decision) {
	all := r.Outcome.All()
	for k := range all {
		if s := &all[k]; !s.Scope.OfModel() && s.Scope.Kind != Counter && s.plan.rules != nil {
			s.enterInto(d)
		}
	}
	d.Allowed, d.RetryAfter, d.Limit, d.Shadow = r.Allowed(), r.RetryAfter(), r.Limit(), r.Outcome.Shadow
	if r.Outcome.Denied && r.Outcome.Deciding().Scope.OfModel() {
		d.Owner = ""
	}
}

// enterInto adds the answers of the limits of a project, a key or a run to a decision.
func (s *Standing) enterInto(d *decision.Decision) {
	decision.MarkAsked(d)
	var slots *Limit
	var slotsSaid *limit.Decision
	for i := range s.Len() {
		l, said := s.At(i)
		d.Local = d.Local || said.Local
		if l.Window == nil {
			slots, slotsSaid = l, said
			continue
		}
		to := decision.Enter(d, s.Scope.Name, l.Window, said, s.RetryAfter(i))
		to.Held = s.IsHeld(i)
		to.Reserved = min(s.Reserved(i), to.Used)
	}
	if share := s.share; share != nil && decision.Deny(d, s.Scope.Name, share.Name, share.RetryAfter) {
		d.Share = share.Denied()
	}
	if slots != nil { // calls at a time come last, whatever their place
		decision.EnterSlots(d, s.Scope.Name, slots.Limit.Count(), slotsSaid, SlotGuess)
	}
}
