package gateway

import (
	"cmp"
	"maps"
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/project"
)

// The kinds of what a configuration limits.
const (
	KindDefaults = "defaults" // the limit of projects that have none of their own
	KindModel    = "model"
	KindProject  = "project"
)

// Changed is a project or a model whose limits another configuration changes.
type Changed struct {
	Kind         string
	Name         string                  // of the project, the template or the quota; empty for the defaults
	Limit        [2]project.Limit        // of a project or the defaults: before and after
	Quota        [2]ratelimit.ModelQuota // of a model: before and after
	SetAtRunTime bool                    // the configuration is unchanged here: what changes was set at run time
}

// Changes returns which limits a reload with a configuration would change. It changes nothing.
func (g *Gateway) Changes(cfg *config.Config) ([]Changed, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	old := g.setup.Load()
	if err := changeable(old.cfg, cfg); err != nil {
		return nil, err
	}
	next := g.newSetup(cfg)
	all, err := g.changedLimits(next, old)
	if err != nil {
		return nil, err
	}
	all = append(all, g.changedQuotas(next, old)...)
	slices.SortFunc(all, func(a, b Changed) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// changedLimits returns which limits of projects and templates another setup changes.
func (g *Gateway) changedLimits(next, old *setup) (changed []Changed, err error) {
	now, declared, before := g.limits.Projects, g.limitsOf(next), g.limitsOf(old)
	limits := now.Limits()
	for id := range before {
		delete(limits, id)
	}
	maps.Copy(limits, declared)
	// A limiter knows which limit a template or the default gives to a project that has none any more.
	then, err := project.NewWithConfig(project.Config{Default: &next.cfg.Defaults.Limit, Limits: limits})
	if err != nil {
		return nil, err
	}
	defer then.Close()
	for id := range union(declared, before) {
		c := Changed{Kind: KindProject, Name: id, Limit: [2]project.Limit{now.Limit(id), then.Limit(id)}}
		was, named := before[id]
		c.SetAtRunTime = named && was == declared[id]
		if c.Limit[0] != c.Limit[1] {
			changed = append(changed, c)
		}
	}
	if usual := [2]project.Limit{old.cfg.Defaults.Limit, next.cfg.Defaults.Limit}; usual[0] != usual[1] {
		changed = append(changed, Changed{Kind: KindDefaults, Limit: usual})
	}
	return changed, nil
}

// changedQuotas returns which quotas another setup changes.
func (g *Gateway) changedQuotas(next, old *setup) (changed []Changed) {
	for name := range union(next.declared, old.declared) {
		now, _ := g.limits.Models.Quota(name)
		then := g.quotaAfter(name, next.declared[name], old.declared[name])
		if now != then {
			changed = append(changed, Changed{Kind: KindModel, Name: name, Quota: [2]ratelimit.ModelQuota{now, then}, SetAtRunTime: next.declared[name] == old.declared[name]})
		}
	}
	return changed
}

// union returns the keys of two maps.
func union[V any](one, other map[string]V) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]V{one, other} {
		for key := range m {
			all[key] = true
		}
	}
	return all
}
