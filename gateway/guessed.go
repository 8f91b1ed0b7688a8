package gateway

import (
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/llm"
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

// raises returns the limits of one account that are more than those of the quota, if that
// was guessed: several accounts are not held to a guess that is too low for each of them.
// What one account has left says nothing of the others.
func (x *exchange) raises(windows []llm.Window) (higher []llm.Window) {
	if !x.setup.declared[x.Quota].usual {
		return nil
	}
	held, _ := x.g.limits.Models.Quota(x.Quota)
	for _, w := range windows {
		if most := maximum(&held, w); most > 0 && w.Limit > int64(most) {
			higher = append(higher, llm.Window{Unit: w.Unit, Per: w.Per, Limit: w.Limit, Remaining: -1})
		}
	}
	return higher
}

// maximum returns the maximum of a quota for the window of a provider's; 0 for none.
func maximum(q *ratelimit.ModelQuota, w llm.Window) int {
	switch {
	case w.Unit == llm.Requests && w.Per == time.Minute:
		return q.MaxRPM
	case w.Unit == llm.Requests && w.Per == llm.Day:
		return q.MaxRPD
	case w.Unit == llm.AllTokens && w.Per == time.Minute:
		return q.MaxTPM
	case w.Unit == llm.AllTokens && w.Per == llm.Day:
		return q.MaxTPD
	}
	return 0
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
