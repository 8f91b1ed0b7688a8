package gateway

import (
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway/config"
)

// Origin is where the maxima of a quota are from.
type Origin string

// The origins of quotas.
const (
	Set     Origin = "set"     // by the configuration, or at run time
	Guessed Origin = "guessed" // they are published ones, until the provider says what they are
	Learned Origin = "learned" // by the provider's word
)

// Origin returns where the maxima of a quota are from.
func (g *Gateway) Origin(name string) Origin {
	held, _ := g.limits.Models.Quota(name)
	declared, ok := g.setup.Load().declared[name]
	switch {
	case !held.Auto:
		return Set
	case !ok || !sameMaxima(held, declared.ModelQuota):
		return Learned
	case declared.usual:
		return Guessed
	}
	return Set
}

// Guesses returns the models of a provider whose quota is guessed, at one of its
// deployments at least.
func (g *Gateway) Guesses(provider string) []config.Model {
	u := g.setup.Load().upstreams[provider]
	if u == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.Models), func(m config.Model) bool {
		return !slices.ContainsFunc(u.deployments, func(d *deployment) bool { return g.Origin(u.quota(m.Name, d.name)) == Guessed })
	})
}

// sameMaxima reports whether two quotas have the same maxima, of those that a provider
// tells.
func sameMaxima(one, other ratelimit.ModelQuota) bool {
	other.Auto, other.Margin, other.MaxConcurrent, other.DayResetsAt = one.Auto, one.Margin, one.MaxConcurrent, one.DayResetsAt
	return one == other
}

// published reports whether a quota that is held is a published one, of a state that was
// written when these were no guesses.
func published(held ratelimit.ModelQuota, q quota) bool {
	return q.Auto && !held.Auto && sameMaxima(held, q.ModelQuota)
}
