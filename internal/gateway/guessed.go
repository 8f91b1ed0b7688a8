package gateway

import (
	"slices"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Origin is where the maxima of a quota are from.
type Origin string

// The origins of quotas.
const (
	Set     Origin = "set"     // the operator has set the maxima, in the configuration or at run time
	Guessed Origin = "guessed" // the provider has published the maxima; its headers will replace them
	Learned Origin = "learned" // the provider's headers have the maxima
)

// Origin returns where the maxima of a quota are from.
func (g *Gateway) Origin(name string) Origin {
	current, _ := g.limits.Models.Quota(name)
	declared, ok := g.setup.Load().declared[name]
	switch {
	case !current.Auto:
		return Set
	case !ok || !sameMaxima(current, declared.ModelQuota):
		return Learned
	case declared.isDefault:
		return Guessed
	}
	return Set
}

// Guesses returns the models of a provider whose quota is guessed, at any of its deployments.
func (g *Gateway) Guesses(provider string) []config.Model {
	u := g.setup.Load().upstreams[provider]
	if u == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.Models), func(m config.Model) bool {
		return !slices.ContainsFunc(u.deployments, func(d *deployment) bool { return g.Origin(u.quotaName(m.Name, d.name)) == Guessed })
	})
}

// higherLimits returns the limits of one account that are above a guessed quota, so that a
// guess which is too low for each of several accounts does not hold them up. What is left of
// one account's limits is left out: it does not concern the other accounts.
func (x *exchange) higherLimits(windows []llm.Window) (higher []llm.Window) {
	if !x.setup.declared[x.Quota].isDefault {
		return nil
	}
	current, _ := x.g.limits.Models.Quota(x.Quota)
	for _, w := range windows {
		if m := maximum(&current, w); m > 0 && w.Limit > int64(m) {
			higher = append(higher, llm.Window{Unit: w.Unit, Per: w.Per, Limit: w.Limit, Remaining: -1})
		}
	}
	return higher
}

// maximum returns the maximum of a quota for a provider's window, or 0 for none.
func maximum(q *ratelimit.ModelQuota, w llm.Window) int {
	if k, ok := kind.Reported(string(w.Unit), w.Per); ok {
		return int(quotaFields.Get(q, k))
	}
	return 0
}

// quotaFields finds the maxima of a quota.
var quotaFields = kind.NewFields[ratelimit.ModelQuota](kind.Model)

// sameMaxima reports whether two quotas have the same maxima, as far as a provider reports them.
func sameMaxima(one, other ratelimit.ModelQuota) bool {
	other.Auto, other.Margin = one.Auto, one.Margin
	keepUnreported(&other, &one)
	return one == other
}

// keepUnreported gives a quota what no provider reports of another one.
func keepUnreported(to, of *ratelimit.ModelQuota) {
	to.MaxConcurrent, to.DayResetsAt, to.Reserve, to.MaxEnqueuedTokens = of.MaxConcurrent, of.DayResetsAt, of.Reserve, of.MaxEnqueuedTokens
	to.MaxTokensInFlight, to.ReserveTokens, to.OnOverrun = of.MaxTokensInFlight, of.ReserveTokens, of.OnOverrun
	to.Pace, to.PaceBurst, to.Count = of.Pace, of.PaceBurst, of.Count
}

// isPublished reports whether the state's quota has the published maxima of q without being
// automatic: an older version has written it, which took these maxima for certain.
func isPublished(current ratelimit.ModelQuota, q quota) bool {
	return q.Auto && !current.Auto && sameMaxima(current, q.ModelQuota)
}
