package server

import (
	"maps"
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/project"
)

// logUnnamed logs limits and quotas of the state that the configuration does not name: they
// were in the file once, or were set with the admin API.
func (s *server) logUnnamed(cfg *config.Config) {
	if s.File == "" {
		return
	}
	limits := s.gateway.Projects().Limits()
	maps.DeleteFunc(limits, func(id string, _ project.Limit) bool { return cfg.Projects[id] != nil })
	s.warnNames("projects that the configuration does not name keep their limits from the state: DELETE /v1/projects/{project} lifts one",
		"projects", slices.Sorted(maps.Keys(limits)))
	quotas := s.gateway.Models().Quotas()
	maps.DeleteFunc(quotas, func(name string, q ratelimit.ModelQuota) bool {
		return q == ratelimit.ModelQuota{} || s.gateway.Charges(name)
	})
	s.warnNames("no call is charged to some quotas of the state, which limit nothing here", "quotas", slices.Sorted(maps.Keys(quotas)))
}

const maxNames = 20 // how many names a line of the log has

func (s *server) warnNames(what, kind string, names []string) {
	if len(names) > 0 {
		s.Log.Warn(what, "count", len(names), kind, names[:min(len(names), maxNames)])
	}
}
