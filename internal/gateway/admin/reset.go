package admin

import (
	"context"
	"net/http"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/project"
)

// Reset names the model or the project whose usage is set to zero.
type Reset struct {
	Model   string `json:"model,omitempty"`
	Project string `json:"project,omitempty"`
}

func (a *Admin) reset(r *http.Request) (any, error) {
	ask, err := decode[Reset](r)
	if err != nil {
		return nil, err
	}
	switch {
	case (ask.Model == "") == (ask.Project == ""):
		return nil, problemf(http.StatusBadRequest, "the body: it must have either model or project")
	case ask.Model != "":
		return nil, a.resetModel(r, ask.Model)
	default:
		return nil, a.resetProject(r, ask.Project)
	}
}

func (a *Admin) resetModel(r *http.Request, name string) error {
	if a.quotaOf(name) == nil {
		return noQuota(name)
	}
	return a.do(r, change{
		action: "model.reset", subject: name,
		before: func() any {
			m, _ := a.model(name)
			return m.Usage
		},
		apply: func() (any, error) {
			a.gateway.Models().Reset(name)
			if a.gateway.Models().Decide(name, 0).Code == ratelimit.DecisionStoreLost {
				return nil, problemf(http.StatusServiceUnavailable, "the store cannot be asked: model %q may not have been reset", name)
			}
			return nil, nil
		},
	})
}

func (a *Admin) resetProject(r *http.Request, id string) error {
	if err := invalid(project.CheckID(id)); err != nil {
		return err
	}
	return a.do(r, change{
		action: "project.reset", subject: id,
		before: func() any { return a.windowsOf(r.Context(), id) },
		apply:  func() (any, error) { return nil, a.gateway.Projects().Reset(context.WithoutCancel(r.Context()), id) },
	})
}
