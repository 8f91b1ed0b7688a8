package gateway

import (
	"fmt"
	"net/http"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// LimitPaused is the limit that a request is denied by which an operator has paused, in place of the name
// of a limit.
const LimitPaused = "paused-by-operator"

// codePaused is the code of a refusal of what is paused, in the bodies of the APIs that have codes.
const codePaused = "paused"

// checkPaused refuses a request whose project, key or model an operator has paused.
func (x *exchange) checkPaused() *refusal {
	scope, owner := x.pausedBy(x.g.controls.State())
	if scope == "" {
		return nil
	}
	x.Limit, x.Scope, x.Owner = LimitPaused, scope, owner
	return &refusal{dialect.Refusal{
		Status: http.StatusTooManyRequests, Code: codePaused,
		Message: fmt.Sprintf("not sent: the operator of the gateway has paused %s %q: no call of it passes until the operator resumes it", scope, owner),
	}, Denied}
}

// isPaused reports whether the request is paused.
func (x *exchange) isPaused(s *control.State) bool {
	scope, _ := x.pausedBy(s)
	return scope != ""
}

// pausedBy returns what of the request is paused: its project or one above it, its key, or a model that it
// calls or mentions. A model is paused if its quota is at every deployment that may serve the request.
func (x *exchange) pausedBy(s *control.State) (scope, owner string) {
	if id := s.PausedAt(x.path); id != "" {
		return scopeProject, id
	}
	if id := s.PausedAt(x.pausedUser); id != "" {
		return scopeProject, id
	}
	if s.Key(x.Key).Paused {
		return scopeKey, x.Key
	}
	if !s.PausesModels() {
		return "", ""
	}
	for _, models := range [...][]string{x.models, x.mentioned} {
		for _, model := range models {
			running := func(d *deployment) bool { return !s.Model(x.upstream.quotaName(model, d.name)).Paused }
			if !slices.ContainsFunc(x.servedBy(), running) {
				return scopeModel, model
			}
		}
	}
	return "", ""
}

// servedBy returns the deployments that may serve the request: the first one alone, if it is a batch or no
// call.
func (x *exchange) servedBy() []*deployment {
	if x.firstAlone {
		return x.upstream.deployments[:1]
	}
	return x.upstream.deployments
}
