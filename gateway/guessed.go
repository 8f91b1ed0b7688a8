package gateway

import ratelimit "dappco.re/go/core/go-ratelimit"

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
