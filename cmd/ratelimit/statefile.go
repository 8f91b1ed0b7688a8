package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/project"
)

// stateLimits is what a state says of quotas, limits and usage, without a gateway. It has what the store
// keeps, and nothing of a gateway's configuration that was never in the store.
type stateLimits struct {
	path     string
	models   *ratelimit.RateLimiter
	projects *project.Limiter
}

// openLimits opens a state that exists.
func openLimits(path string) (*stateLimits, error) {
	s, err := openState(path)
	if err != nil {
		return nil, err
	}
	s.Close() // it was only looked for
	cfg := ratelimit.Config{NoDefaults: true}
	open := func() (*ratelimit.RateLimiter, error) { return ratelimit.NewWithSQLiteConfig(path, cfg) }
	if isRedis(path) {
		cfg.Backend, cfg.FilePath = ratelimit.BackendRedis, path
		open = func() (*ratelimit.RateLimiter, error) { return ratelimit.NewWithConfig(cfg) }
	}
	models, err := open()
	if err != nil {
		return nil, err
	}
	projects, err := models.NewProjects(project.Config{Default: &project.Limit{}})
	if err != nil {
		models.Close()
		return nil, err
	}
	return &stateLimits{path, models, projects}, nil
}

func (s *stateLimits) close() {
	s.projects.Close()
	s.models.Close()
}

// State returns what is used, as a gateway would say it.
func (s *stateLimits) State(ctx context.Context) (admin.State, error) {
	state := admin.State{Ready: true, Store: s.path, Models: []admin.Model{}, Projects: []admin.Project{}}
	quotas := s.models.Quotas()
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		u := s.models.Stats(name)
		state.Models = append(state.Models, admin.Model{
			Name: name, Quota: admin.Quota{ModelQuota: quotas[name]}, Paused: s.models.Paused(name).Seconds(),
			Usage: admin.NewUsage(&u),
		})
	}
	for _, id := range s.names() {
		p, err := s.project(ctx, id)
		if err != nil {
			return state, err
		}
		state.Projects = append(state.Projects, p)
	}
	slices.SortStableFunc(state.Projects, func(a, b admin.Project) int { return cmp.Compare(pressureOf(b), pressureOf(a)) })
	return state, nil
}

// names returns the projects that have limits of their own, in order. A template, such as acme/*, is none: nothing
// is charged to it.
func (s *stateLimits) names() []string {
	names := slices.Sorted(maps.Keys(s.projects.Limits()))
	return slices.DeleteFunc(names, project.IsTemplate)
}

// Projects returns a project and those below it.
func (s *stateLimits) Projects(ctx context.Context, below string) (all []admin.Project, err error) {
	ids := []string{below}
	for _, id := range s.names() {
		if strings.HasPrefix(id, below+"/") {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		p, err := s.project(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (s *stateLimits) project(ctx context.Context, id string) (admin.Project, error) {
	d, err := s.projects.Peek(ctx, id)
	if err != nil {
		return admin.Project{}, err
	}
	_, own := s.projects.Limits()[id]
	return admin.Project{ID: id, Limit: s.projects.Limit(id), Own: own, Windows: admin.NewWindows(d, id)}, nil
}
