package project

import (
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
)

// SetThresholds replaces [Config].Thresholds, for this limiter alone: no store keeps them. Thresholds
// of which an event was sent in a window are not sent again.
func (l *Limiter) SetThresholds(percents []int) error { return l.engine.SetThresholds(percents) }

// notice finds budgets that have reached a threshold, among the limits on requests of a plan. said is
// what the limits have answered to a call.
func (l *Limiter) notice(project string, p *plan, said []limit.Verdict, admitted bool) {
	for i := range said {
		if admitted || !said[i].Allowed {
			l.engine.Notice(project, &p.limits[i], &said[i], i, func() *engine.Scope {
				scope, _ := l.scopes.of(project) // which fails only for an id that is not valid
				return scope
			})
		}
	}
}
