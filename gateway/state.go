package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/project"
)

// newModels opens the state, and returns the limiter that counts there.
func newModels(s *setup, o ratelimit.Observer) (*ratelimit.RateLimiter, error) {
	cfg := ratelimit.Config{
		Quotas:    s.quotas(),
		Providers: []ratelimit.Provider{ratelimit.ProviderLocal}, // which has none of its own
		Observer:  o,
	}
	switch {
	case s.cfg.State == config.Memory:
	case strings.HasPrefix(s.cfg.State, "redis://"), strings.HasPrefix(s.cfg.State, "rediss://"):
		cfg.Backend, cfg.FilePath, cfg.OnStoreLoss = ratelimit.BackendRedis, s.cfg.State, s.cfg.OnStoreLoss
	default:
		return ratelimit.NewWithSQLiteConfig(s.cfg.State, cfg)
	}
	return ratelimit.NewWithConfig(cfg)
}

// quotas returns all quotas of the configuration.
func (s *setup) quotas() map[string]ratelimit.ModelQuota {
	all := map[string]ratelimit.ModelQuota{}
	for _, u := range s.upstreams {
		for _, m := range u.Models {
			for _, d := range u.deployments {
				all[u.quota(m.Name, d.name)] = m.Quota
			}
		}
	}
	return all
}

func (s *setup) projectLimits() map[string]project.Limit {
	all := map[string]project.Limit{}
	for id, p := range s.cfg.Projects {
		all[id] = p.Limit
	}
	return all
}

// declared is what a configuration has named, and the state remembers: so that what the
// next one does not name any more is taken back.
type declared struct {
	Quotas   []string `json:"quotas"`
	Projects []string `json:"projects"`
}

// declaredSetting is its name among the settings of a store.
const declaredSetting = "gateway/declared"

// declare sets the quotas and limits of a configuration in place of those of the one
// before. What was set in other ways, and the configuration does not name, stays.
func (g *Gateway) declare(s *setup) error {
	quotas, limits := s.quotas(), s.projectLimits()
	before, err := g.declaredBefore()
	if err != nil {
		return err
	}
	for _, name := range before.Quotas {
		if _, stays := quotas[name]; !stays {
			quotas[name] = ratelimit.ModelQuota{}
		}
	}
	if err := g.setQuotas(quotas); err != nil {
		return err
	}
	for _, id := range before.Projects {
		if _, stays := limits[id]; !stays {
			if err := g.limits.Projects.UnsetLimit(id); err != nil {
				return err
			}
		}
	}
	if err := g.limits.Projects.SetDefault(s.cfg.Defaults.Limit); err != nil {
		return err
	}
	if err := g.limits.Projects.SetLimits(limits); err != nil {
		return err
	}
	return g.remember(s)
}

// setQuotas sets quotas that differ. Maxima that were learned stay where both the old
// one and the new one let them be.
func (g *Gateway) setQuotas(quotas map[string]ratelimit.ModelQuota) error {
	for name, q := range quotas {
		held, ok := g.limits.Models.Quota(name)
		if ok && (held == q || held.Auto && q.Auto) {
			continue
		}
		if err := g.limits.Models.SetQuota(name, q); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gateway) keeper() settings.Keeper {
	k, _ := g.limits.Models.Projects().Store().(settings.Keeper)
	return k
}

func (g *Gateway) declaredBefore() (d declared, err error) {
	k := g.keeper()
	if k == nil {
		if old := g.setup.Load(); old != nil {
			d = declarationOf(old)
		}
		return d, nil
	}
	all, err := k.Settings(context.Background())
	if err != nil {
		return d, err
	}
	if text := all[declaredSetting]; text != "" {
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return d, fmt.Errorf("ratelimit: the state's setting %q: %w", declaredSetting, err)
		}
	}
	return d, nil
}

// remember writes down what a configuration names.
func (g *Gateway) remember(s *setup) error {
	k := g.keeper()
	if k == nil {
		return nil
	}
	text, err := json.Marshal(declarationOf(s))
	if err != nil {
		return err
	}
	_, err = k.PutSettings(context.Background(), map[string]string{declaredSetting: string(text)}, false)
	return err
}

func declarationOf(s *setup) (d declared) {
	for name := range s.quotas() {
		d.Quotas = append(d.Quotas, name)
	}
	for id := range s.cfg.Projects {
		d.Projects = append(d.Projects, id)
	}
	slices.Sort(d.Quotas)
	slices.Sort(d.Projects)
	return d
}
