package engine

import (
	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Shadow returns the scope for calls that its limits count and do not deny. It has the same counters, so
// what is used by either counts for both, and no line, no gate and no shares. It stands behind all scopes
// of a call that have limits which deny.
func (s *Scope) Shadow() *Scope {
	if s.Kind == Shadow {
		return s
	}
	twin := s.twin.Load()
	if twin == nil {
		twin = s.engine.newScope(Shadow, s.Key, s.Name)
		twin.real = s
		if !s.twin.CompareAndSwap(nil, twin) {
			twin = s.twin.Load()
		}
	}
	twin.follow()
	return twin
}

// follow gives a scope in shadow the rules that its scope has now.
func (s *Scope) follow() {
	for {
		rules, own := s.real.rules.Load(), s.rules.Load()
		if rules == nil || own != nil && own.shadowOf == rules {
			return
		}
		shadow := &Rules{
			Limits: rules.Limits, Setup: rules.Setup, LeastTokens: rules.LeastTokens, Count: rules.Count, Most: rules.Most, Cut: rules.Cut,
			Rank: rules.Rank, Weight: rules.Weight, MaxWaiting: rules.MaxWaiting, MinShare: rules.MinShare, MaxShare: rules.MaxShare,
			shadowOf: rules,
		}
		s.engine.Miss(shadow.ready(s)) // as the rules themselves were
		s.rules.CompareAndSwap(own, shadow)
	}
}

// Real returns the scope itself of one in shadow.
func (s *Scope) Real() *Scope {
	if s.Kind == Shadow {
		return s.real
	}
	return s
}

// OfModel reports whether the scope, or the one of which it is the shadow, is a model's: calls of several flows name it.
func (s *Scope) OfModel() bool { return s.Real().Kind == Shared }

// overlook finds out which limit in shadow would have denied a call that was admitted, and enters into their decisions
// what is left of these limits.
func (e *Engine) overlook(c *Call, o *Outcome) {
	all := o.all()
	o.Shadow = decision.ShadowDenial{}
	for k := range all {
		s := &all[k]
		if s.plan.rules == nil || s.plan.rules.shadowOf == nil {
			continue
		}
		for i := range s.Len() {
			l, v := s.At(i)
			if l.Free {
				continue
			}
			most := l.Limit.Burst()
			v.Remaining = max(most-v.Used, 0)
			if o.Shadow.Limit == "" && !c.part.onlyCounts(l) && exceeds(l, v, s.plan.rules.Amount(l.Unit, &c.ask)) {
				o.Shadow = decision.ShadowDenial{Owner: s.Scope.Name, Model: s.Scope.OfModel(), Limit: l.Name, Used: v.Used, Max: most}
			}
		}
		if gate := s.Scope.real.gate; gate != nil && o.Shadow.Limit == "" && !gate.Idle() && gate.Look(e.clock()) != (Closed{}) {
			o.Shadow = decision.ShadowDenial{Owner: s.Scope.Name, Model: true, Limit: PausedName}
		}
	}
}

// exceeds reports whether a limit would have denied a call of n that it has counted.
func exceeds(l *Limit, v *limit.Decision, n int64) bool {
	most := l.Limit.Burst()
	if l.Pace && n > most { // such a call passes when nothing else is used
		return v.Used > n
	}
	return v.Used > most
}
