package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/project"
)

// Project is a project's limit, and what is left of it.
type Project struct {
	ID      string        `json:"project"`
	Limit   project.Limit `json:"limit"`
	Own     bool          `json:"own"`     // the project has a limit of its own, and not the default
	Windows []Window      `json:"windows"` // its own, and not those above it; nil while the store does not answer
}

// Window is one window of a project's limit, and what is left of it.
type Window struct {
	Name       string  `json:"window"`
	Unit       string  `json:"unit"` // "requests", "tokens" or "nanodollars"
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Period     float64 `json:"period_seconds"`
	ResetAfter float64 `json:"reset_after_seconds"` // until all of it is left, if no other call passes
}

// ProjectList is a page of projects.
type ProjectList struct {
	Projects []Project `json:"projects"`
	Next     string    `json:"next,omitempty"` // the parameter after of the next page; empty: this is the last
}

func (a *Admin) projects(r *http.Request) (any, error) {
	ids := a.knownProjects()
	if below := r.URL.Query().Get("below"); below != "" {
		if err := invalid(project.CheckID(below)); err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, below+"/") })
		ids = append(ids, below)
	}
	ids, next, err := pageOf(r, ids, func(id string) string { return id }, "below")
	return ProjectList{a.projectsOf(r.Context(), ids), next}, err
}

// knownProjects returns the projects that have a limit or a key, and those of the last
// requests, with their users. Templates are no projects.
func (a *Admin) knownProjects() []string {
	all := a.gateway.Projects().Limits()
	for id := range a.gateway.Config().Projects {
		all[id] = project.Limit{}
	}
	for _, k := range a.gateway.Keys().List() {
		all[k.Project] = project.Limit{}
	}
	for _, rec := range a.gateway.Recent("", 0, maxEntries) {
		all[rec.Project] = project.Limit{}
		if rec.User != "" {
			all[rec.Project+"/"+rec.User] = project.Limit{}
		}
	}
	maps.DeleteFunc(all, func(id string, _ project.Limit) bool { return project.CheckID(id) != nil }) // a request that was refused before identify has no project
	return slices.Sorted(maps.Keys(all))
}

func (a *Admin) projectsOf(ctx context.Context, ids []string) []Project {
	limiter := a.gateway.Projects()
	limits := limiter.Limits()
	list := []Project{}
	for _, id := range ids {
		_, own := limits[id]
		list = append(list, Project{id, limiter.Limit(id), own, a.windowsOf(ctx, id)})
	}
	return list
}

func (a *Admin) projectOf(ctx context.Context, id string) Project {
	return a.projectsOf(ctx, []string{id})[0]
}

// windowsOf returns the windows of a project, or nil if the store does not answer.
func (a *Admin) windowsOf(ctx context.Context, id string) []Window {
	d, err := a.gateway.Projects().Peek(ctx, id)
	if err != nil {
		return nil
	}
	windows := []Window{}
	for _, s := range d.Windows() {
		if s.Owner != id {
			continue
		}
		w := Window{s.Window.Name, "requests", s.Window.Count, s.Remaining, s.Window.Period.Seconds(), s.ResetAfter.Seconds()}
		switch {
		case s.Window.Tokens:
			w.Unit = "tokens"
		case s.Window.Dollars:
			w.Unit = "nanodollars"
		}
		windows = append(windows, w)
	}
	return windows
}

// projectIn returns the id of the project in the path.
func projectIn(r *http.Request) (string, error) {
	id := r.PathValue("project")
	return id, invalid(project.CheckID(id))
}

func (a *Admin) project(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	return a.projectOf(r.Context(), id), nil
}

// setLimit sets the limit of a project. If the configuration names the project, the limit
// holds until the next reload.
func (a *Admin) setLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	limit, err := decode[project.Limit](r)
	if err != nil {
		return nil, err
	}
	if err := withJSONNames[project.Limit](limit.Validate()); err != nil {
		return nil, err
	}
	all := a.gateway.Projects().Limits()
	all[id] = limit
	if err := invalid(project.CheckShares(all)); err != nil {
		return nil, err
	}
	return a.changeLimit(r, id, "limit.set", func() (any, error) { return limit, a.gateway.Projects().SetLimit(id, limit) })
}

// unsetLimit gives a project the default limit again.
func (a *Admin) unsetLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	return a.changeLimit(r, id, "limit.unset", func() (any, error) { return nil, a.gateway.Projects().UnsetLimit(id) })
}

func (a *Admin) changeLimit(r *http.Request, id, action string, apply func() (after any, err error)) (any, error) {
	if err := a.do(r, change{action: action, subject: id, before: func() any { return a.limitOf(id) }, apply: apply}); err != nil {
		return nil, err
	}
	return a.projectOf(r.Context(), id), nil
}

// limitOf returns the limit of a project, or nil if it has none of its own.
func (a *Admin) limitOf(id string) any {
	if limit, ok := a.gateway.Projects().Limits()[id]; ok {
		return limit
	}
	return nil
}
