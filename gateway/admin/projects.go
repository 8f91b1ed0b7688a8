package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"dappco.re/go/core/go-ratelimit/project"
)

// Project is a project's limit, and where it stands.
type Project struct {
	ID      string        `json:"project"`
	Limit   project.Limit `json:"limit"`
	Own     bool          `json:"own"`     // its limit is its own, and not the default
	Windows []Window      `json:"windows"` // nil while the store cannot be asked
}

// Window is where a project stands in one of its windows.
type Window struct {
	Name       string  `json:"window"`
	Unit       string  `json:"unit"` // "requests" or "tokens"
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Period     float64 `json:"period_seconds"`
	ResetAfter float64 `json:"reset_after_seconds"` // until it is empty if nothing else passes
}

// ProjectList is a page of projects.
type ProjectList struct {
	Projects []Project `json:"projects"`
	Next     string    `json:"next,omitempty"` // the after of the next page, if there is one
}

func (a *Admin) projects(r *http.Request) (any, error) {
	ids, next, err := pageOf(r, a.known(), func(id string) string { return id })
	return ProjectList{a.projectsOf(r.Context(), ids), next}, err
}

// known returns the projects that something is known of: those that have a limit or a
// key, and those of the last requests.
func (a *Admin) known() []string {
	all := a.gateway.Projects().Limits()
	for id := range a.gateway.Config().Projects {
		all[id] = project.Limit{}
	}
	for _, k := range a.gateway.Keys().List() {
		all[k.Project] = project.Limit{}
	}
	for _, rec := range a.gateway.Recent("", 0, remembered) {
		if project.CheckID(rec.Project) == nil { // it was not refused before it was known whose it is
			all[rec.Project] = project.Limit{}
		}
	}
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

// windowsOf returns where a project stands, or nil if the store cannot be asked.
func (a *Admin) windowsOf(ctx context.Context, id string) []Window {
	d, err := a.gateway.Projects().Peek(ctx, id)
	if err != nil {
		return nil
	}
	windows := []Window{}
	for _, s := range d.Windows() {
		w := Window{s.Window.Name, "requests", s.Window.Count, s.Remaining, s.Window.Period.Seconds(), s.ResetAfter.Seconds()}
		if s.Window.Tokens {
			w.Unit = "tokens"
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

// setLimit sets the limit of a project, until the configuration says otherwise when
// it is read the next time.
func (a *Admin) setLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	limit, err := decode[project.Limit](r)
	if err != nil {
		return nil, err
	}
	if err := inJSON[project.Limit](limit.Validate()); err != nil {
		return nil, err
	}
	err = a.do(r, change{
		action: "limit.set", subject: id,
		before: func() any { return a.limitOf(id) },
		make:   func() (any, error) { return limit, a.gateway.Projects().SetLimit(id, limit) },
	})
	if err != nil {
		return nil, err
	}
	return a.projectOf(r.Context(), id), nil
}

// unsetLimit gives a project the default again.
func (a *Admin) unsetLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	err = a.do(r, change{
		action: "limit.unset", subject: id,
		before: func() any { return a.limitOf(id) },
		make:   func() (any, error) { return nil, a.gateway.Projects().UnsetLimit(id) },
	})
	if err != nil {
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
