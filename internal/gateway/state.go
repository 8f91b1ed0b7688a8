package gateway

import (
	"log/slog"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/project"
)

// newModels opens the state, and returns the limiter of models that counts there.
func newModels(s *setup, o event.Observer) (*ratelimit.RateLimiter, error) {
	cfg := ratelimit.Config{
		Quotas:     map[string]ratelimit.ModelQuota{},
		NoDefaults: true,
		Log:        slog.New(slog.DiscardHandler), // the gateway decides itself which quotas count
		Observer:   o,
	}
	for name, q := range s.declared {
		cfg.Quotas[name] = q.ModelQuota
	}
	switch {
	case s.cfg.State == config.Memory:
	case s.cfg.Redis():
		cfg.Backend, cfg.FilePath, cfg.OnStoreLoss = ratelimit.BackendRedis, s.cfg.State, s.cfg.OnStoreLoss
	default:
		return ratelimit.NewWithSQLiteConfig(s.cfg.State, cfg)
	}
	return ratelimit.NewWithConfig(cfg)
}

// quota is a quota of the configuration.
type quota struct {
	ratelimit.ModelQuota
	isDefault bool   // a published quota that the file does not name
	mode      string // see [config.Model]
}

// quotas returns all quotas of the configuration.
func (s *setup) quotas() map[string]quota {
	all := map[string]quota{}
	for _, u := range s.upstreams {
		for _, m := range u.Models {
			for _, d := range u.deployments {
				all[u.quotaName(m.Name, d.name)] = quota{m.Quota, m.IsDefault, m.Mode}
			}
		}
	}
	return all
}

// Charges reports whether calls may be charged to a quota with this name.
func (g *Gateway) Charges(name string) bool {
	s := g.setup.Load()
	if _, ok := s.declared[name]; ok {
		return true
	}
	provider, model, _ := strings.Cut(name, "/")
	u := s.upstreams[provider]
	if u == nil || strings.Contains(model, "*") { // only the configuration may name patterns
		return false
	}
	return slices.ContainsFunc(u.deployments, func(d *deployment) bool {
		of := strings.TrimSuffix(model, "@"+d.name)
		return of != "" && u.quotaName(of, d.name) == name
	})
}

// WithMargin returns a quota with the margin of the provider whose calls are charged to the
// quota with this name.
func (g *Gateway) WithMargin(name string, q ratelimit.ModelQuota) ratelimit.ModelQuota {
	s := g.setup.Load()
	if u := s.upstreams[s.providerOf(name)]; u != nil {
		return u.WithMargin(q)
	}
	return q
}

// providerOf returns the name of the provider whose calls are charged to a quota, or "".
func (s *setup) providerOf(quota string) string {
	if provider, _, _ := strings.Cut(quota, "/"); s.upstreams[provider] != nil {
		return provider
	}
	for name, u := range s.upstreams {
		for _, m := range u.Models {
			if slices.ContainsFunc(u.deployments, func(d *deployment) bool { return u.quotaName(m.Name, d.name) == quota }) {
				return name
			}
		}
	}
	return ""
}

// declare sets the quotas and limits of a setup in place of those of the setup before, which
// is empty at the start. It removes what the setup before named and this one does not. Quotas
// and limits that no configuration has named stay.
func (g *Gateway) declare(s, before *setup) error {
	for id := range before.cfg.Projects {
		if s.cfg.Projects[id] == nil {
			if err := g.limits.Projects.UnsetLimit(id); err != nil {
				return err
			}
		}
	}
	for name := range union(s.declared, before.declared) {
		if err := g.setQuota(name, s.declared[name], before.declared[name]); err != nil { // without a quota, if this setup does not name it
			return err
		}
	}
	if err := g.limits.Projects.SetThresholds(s.cfg.Thresholds.At); err != nil {
		return err
	}
	if err := g.limits.Projects.SetDefault(s.cfg.Defaults.Limit); err != nil {
		return err
	}
	if err := g.limits.Projects.SetRuns(project.RunLimit(s.cfg.Runs)); err != nil {
		return err
	}
	return g.limits.Projects.SetLimits(g.limitsOf(s))
}

// limitsOf returns the limits of all projects of a configuration, but for those that an operator has changed for longer
// than the configuration is not read.
func (g *Gateway) limitsOf(s *setup) map[string]project.Limit {
	limits := s.limits()
	for id := range limits {
		if held := g.controls.State().Term(control.ProjectTerm, id).Limit; held != nil {
			limits[id] = *held
		}
	}
	return limits
}

// ConfiguredQuota returns the quota that the configuration gives to a model, or the one before if it gives none. That
// may be nil.
func (g *Gateway) ConfiguredQuota(name string, before *ratelimit.ModelQuota) ratelimit.ModelQuota {
	if q, ok := g.setup.Load().declared[name]; ok {
		return q.ModelQuota
	}
	if before == nil {
		return ratelimit.ModelQuota{}
	}
	return *before
}

// limits returns the limits of all projects of the configuration.
func (s *setup) limits() map[string]project.Limit {
	limits := map[string]project.Limit{}
	for id, p := range s.cfg.Projects {
		limits[id] = p.Limit
	}
	return limits
}

// setQuota sets a quota of the configuration; old is the quota of the configuration before.
func (g *Gateway) setQuota(name string, q, old quota) error {
	to := g.quotaAfter(name, q, old)
	if current, ok := g.limits.Models.Quota(name); ok && current == to {
		return nil
	}
	return g.limits.Models.SetQuota(name, to)
}

// quotaAfter returns what the quota of a model becomes by one of the configuration; old is that of the
// configuration before. A default quota replaces no other. Learned maxima stay, unless the
// configuration has changed. The margin is always the configuration's.
func (g *Gateway) quotaAfter(name string, q, old quota) ratelimit.ModelQuota {
	if held := g.controls.State().Term(control.ModelTerm, name).Quota; held != nil {
		return *held
	}
	current, ok := g.limits.Models.Quota(name)
	first := old == quota{}
	old.Margin, old.mode = q.Margin, q.mode
	to := q.ModelQuota
	switch {
	case ok && q.isDefault && (first || old.isDefault) && !isPublished(current, q):
		to = current
	case ok && current.Auto && q.Auto && (first || old == q):
		to = current
		keepUnreported(&to, &q.ModelQuota)
	}
	if to != (ratelimit.ModelQuota{}) {
		to.Margin = q.Margin
	}
	return to
}
