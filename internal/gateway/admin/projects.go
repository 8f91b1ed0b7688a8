package admin

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// Project is a project's limit, and what is left of it.
type Project struct {
	ID      string        `json:"project"`
	Limit   project.Limit `json:"limit"`
	Own     bool          `json:"own"`     // the project has a limit of its own, and not the default
	Windows []Window      `json:"windows"` // its own, and not those above it; nil while the store does not answer

	Harm   string       `json:"harm,omitempty"`        // in the state: the worst that happens to its calls, as in the overview
	Shares []InnerShare `json:"shares,omitempty"`      // the projects below it that share its limits, as this gateway knows: 100 at most
	More   bool         `json:"more_shares,omitempty"` // there are more than these

	Paused   bool     `json:"paused"`              // an operator has paused the project, or one above it
	PausedBy string   `json:"paused_by,omitempty"` // which of these is paused: the highest
	Mode     string   `json:"mode"`                // "enforce", or "shadow": its limits deny nothing
	MaxWait  Seconds  `json:"max_wait"`            // how long its calls may wait
	Fit      bool     `json:"fit"`                 // max_tokens of its calls is lowered to what is left
	FitMin   int      `json:"fit_min"`             // but not below this
	Models   []string `json:"models,omitempty"`    // names or patterns of the models that it may call, beside what those above it may; empty: all
	Lifted   []string `json:"lifted,omitempty"`    // in the answer to a change: the limits that it has removed
	Term     *Term    `json:"term,omitempty"`      // of the last change, if it has one

	UnknownUsage string `json:"unknown_usage"` // what a call is charged whose response did not report its usage
	FailedCalls  string `json:"failed_calls"`  // what a call costs that the provider has answered with an error of its own
}

// ProjectSettings is what a PATCH can change of a project: the limit, and what is switched at run time. Of the latter,
// what is nil or empty is as the configuration says.
type ProjectSettings struct {
	project.Limit
	control.Project
}

// IsSwitched reports whether a field of a project wins over the configuration once it is set, so that a reload does not
// undo it.
func IsSwitched(field string) bool {
	_, ok := fieldNamed(reflect.TypeFor[control.Project](), field)
	return ok
}

// Window is one window of a project's limit, and what is left of it.
type Window struct {
	Name       string  `json:"window"`
	Unit       string  `json:"unit"` // "requests", "tokens" or "nanodollars"
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Period     float64 `json:"period_seconds"`
	ResetAfter float64 `json:"reset_after_seconds"` // until all of it is left, if no other call passes
	Reserved   int64   `json:"reserved,omitempty"`  // of what is used, what calls under way hold, if the limit reserves the most of a call
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
	for _, id := range a.gateway.Controls().State().Projects() {
		all[id] = project.Limit{}
	}
	for _, k := range a.gateway.Keys().List() {
		all[k.Project] = project.Limit{}
	}
	for _, rec := range a.gateway.Recent("", 0, math.MaxInt) {
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
	limits, switched := limiter.Limits(), a.gateway.Controls().State()
	list := []Project{}
	for _, id := range ids {
		_, own := limits[id]
		p := Project{ID: id, Limit: limiter.Limit(id), Own: own, Windows: a.windowsOf(ctx, id), PausedBy: switched.PausedAt(id)}
		p.Shares, p.More = a.innerShares(id)
		terms := a.gateway.Terms(id)
		p.Paused, p.MaxWait, p.Models, p.Mode = p.PausedBy != "", Seconds(terms.MaxWait), terms.Models, a.gateway.ProjectMode(id)
		p.Fit, p.FitMin, p.UnknownUsage, p.FailedCalls = terms.Fit, terms.FitMin, terms.UnknownUsage, terms.FailedCalls
		p.Term = a.termOf(control.ProjectTerm, id)
		list = append(list, p)
	}
	return list
}

func (a *Admin) projectOf(ctx context.Context, id string) Project {
	return a.projectsOf(ctx, []string{id})[0]
}

// windowsOf returns the windows of a project, or nil if the store does not answer.
func (a *Admin) windowsOf(ctx context.Context, id string) []Window {
	d, err := a.gateway.Projects().Peek(ctx, id)
	if err != nil || d.Local {
		return nil
	}
	return NewWindows(d, id)
}

// NewWindows returns the windows of a project itself, and not those above it, as a decision has them.
func NewWindows(d project.Decision, id string) []Window {
	windows := []Window{}
	for _, s := range d.Windows() {
		if s.Owner != id {
			continue
		}
		windows = append(windows, Window{s.Window.Name, kind.Counted(s.Window.Unit), s.Window.Count, s.Remaining, s.Window.Period.Seconds(), s.ResetAfter.Seconds(), max(s.Reserved, 0)})
	}
	return windows
}

// projectIn returns the id of the project in the path.
func projectIn(r *http.Request) (string, error) {
	id := r.PathValue("project")
	if project.IsTemplate(id) {
		return id, problemf(http.StatusBadRequest, "%.80q has the name *, which stands for every name: set its limits in the configuration", id)
	}
	return id, invalid(project.CheckID(id))
}

func (a *Admin) project(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	return a.projectOf(r.Context(), id), nil
}

// setLimit replaces the limit of a project. If the configuration names the project, the limit
// holds until the next reload. What is switched at run time, such as a pause, stays.
func (a *Admin) setLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	limit, err := decode[project.Limit](r)
	if err != nil {
		return nil, err
	}
	return editProject(a, r, id, edit[project.Limit]{
		action: "limit.set", subject: id,
		now:  func() project.Limit { return a.gateway.Projects().Limit(id) },
		next: func(project.Limit) (project.Limit, error) { return limit, a.checkLimit(id, limit) },
		apply: func(ctx context.Context, before, after project.Limit) error {
			return unchanged(a.gateway.Projects().ReplaceLimit(ctx, id, before, after))
		},
		kind: control.ProjectTerm,
		held: func(before, after project.Limit, t *control.Term) {
			t.Limit, t.LimitBefore = &after, a.ownLimit(id, before)
		},
	})
}

// checkLimit returns what is wrong with a limit for a project, beside those of all other projects.
func (a *Admin) checkLimit(id string, limit project.Limit) error {
	if err := withJSONNames[project.Limit](limit.Validate()); err != nil {
		return err
	}
	all := a.gateway.Projects().Limits()
	all[id] = limit
	return invalid(project.CheckShares(all))
}

// changeProject changes some fields of what a project has. A project without a limit of its own has one
// then, with all that the default limit or a template says in the other fields.
func (a *Admin) changeProject(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	patch, err := readPatch[ProjectSettings](r)
	if err != nil {
		return nil, err
	}
	return editProject(a, r, id, edit[ProjectSettings]{
		action: "project.change", subject: id,
		now: func() ProjectSettings { return a.projectSettings(id) },
		spelled: func(s ProjectSettings) ProjectSettings {
			s.Mode = cmp.Or(s.Mode, a.gateway.ConfiguredProjectMode(id))
			return s
		},
		next: func(before ProjectSettings) (after ProjectSettings, err error) {
			if after, err = merge(before, patch, "project"); err != nil {
				return after, err
			}
			if after.Models != nil && len(after.Models) == 0 {
				return after, problemf(http.StatusBadRequest, `models is empty: it must name one at least; "*" is all of them, and null is what the configuration says`)
			}
			if c := callerOf(r); c.project != "" && (after.UnknownUsage != before.UnknownUsage || after.FailedCalls != before.FailedCalls) {
				return after, problemf(http.StatusForbidden, "you are bound to project %q: unknown_usage and failed_calls say what its limits are charged, and are for whoever granted these", c.project)
			}
			return after, cmp.Or(a.checkLimit(id, after.Limit), invalid(after.Check()))
		},
		apply: func(ctx context.Context, before, after ProjectSettings) error {
			if !reflect.DeepEqual(before.Project, after.Project) {
				if err := unchanged(a.gateway.Controls().ReplaceProject(ctx, id, before.Project, after.Project)); err != nil {
					return err
				}
			}
			if before.Limit == after.Limit {
				return nil
			}
			return unchanged(a.gateway.Projects().ReplaceLimit(ctx, id, before.Limit, after.Limit))
		},
		kind: control.ProjectTerm,
		held: func(before, after ProjectSettings, t *control.Term) {
			t.Resume = after.Paused && !before.Paused
			if before.Limit != after.Limit {
				t.Limit, t.LimitBefore = &after.Limit, a.ownLimit(id, before.Limit)
			}
		},
	})
}

// ownLimit returns a limit that a project had before a change, or nil if that was not its own. The first of several changes
// with a term says what it was.
func (a *Admin) ownLimit(id string, before project.Limit) *project.Limit {
	if t := a.gateway.Controls().State().Term(control.ProjectTerm, id); t.Limit != nil {
		return t.LimitBefore
	}
	if _, own := a.gateway.Projects().Limits()[id]; !own {
		return nil
	}
	return &before
}

// editProject makes an edit of a project, and returns the project afterwards.
func editProject[T any](a *Admin, r *http.Request, id string, e edit[T]) (any, error) {
	lifted, preview, err := perform(a, r, e)
	if err != nil || preview != nil {
		return preview, err
	}
	p := a.projectOf(r.Context(), id)
	p.Lifted = lifted
	return p, nil
}

// projectSettings returns what a PATCH can change of a project, as it is now.
func (a *Admin) projectSettings(id string) ProjectSettings {
	return ProjectSettings{a.gateway.Projects().Limit(id), a.gateway.Controls().State().Project(id)}
}

// unsetLimit gives a project the default limit again.
func (a *Admin) unsetLimit(r *http.Request) (any, error) {
	id, err := projectIn(r)
	if err != nil {
		return nil, err
	}
	err = a.do(r, change{
		action: "limit.unset", subject: id,
		before: func() any { return a.limitOf(id) },
		apply: func() (any, error) {
			if err := a.gateway.Controls().SetTerm(r.Context(), control.ProjectTerm, id, control.Term{}); err != nil {
				return nil, err
			}
			return nil, a.gateway.Projects().UnsetLimit(id)
		},
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
