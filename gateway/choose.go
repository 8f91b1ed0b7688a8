package gateway

import (
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// choose returns the deployment that the call is sent to: one that was not tried yet, is
// healthy, and has the largest part of the model's quota left, or will admit the call soonest.
func (x *exchange) choose() *deployment {
	all := x.upstream.deployments
	best := all[0]
	if len(all) > 1 {
		best = x.best(all)
		x.tried = append(x.tried, best)
	}
	x.Deployment = best.name
	x.Quota = x.upstream.quotaName(x.call.Request.Model, best.name)
	x.call.Quota = x.Quota
	x.call.QuotaGuessed = x.setup.declared[x.Quota].isDefault && x.g.Origin(x.Quota) == Guessed
	return best
}

func (x *exchange) best(all []*deployment) *deployment {
	now := time.Now()
	var best *candidate
	for _, d := range all {
		c := &candidate{
			deployment: d,
			decision:   x.g.limits.Models.Decide(x.upstream.quotaName(x.call.Request.Model, d.name), x.call.Request.Prompt),
			tried:      slices.Contains(x.tried, d),
			healthy:    d.healthy(now, x.call.Request.Model),
		}
		if best == nil || c.betterThan(best) {
			best = c
		}
	}
	return best.deployment
}

// candidate is a deployment that a call may go to.
type candidate struct {
	*deployment
	decision       ratelimit.Decision
	tried, healthy bool
}

// betterThan reports whether c is a better choice than o.
func (c *candidate) betterThan(o *candidate) bool {
	switch {
	case c.tried != o.tried:
		return o.tried
	case c.healthy != o.healthy:
		return c.healthy
	case c.decision.Allowed != o.decision.Allowed:
		return c.decision.Allowed
	case !c.decision.Allowed:
		return c.decision.RetryAfter < o.decision.RetryAfter
	}
	if a, b := headroom(&c.decision.Stats), headroom(&o.decision.Stats); a != b {
		return a > b
	}
	return c.active.Load() < o.active.Load()
}

// headroom returns which part of a model's quota is left, in the scarcest dimension.
func headroom(s *ratelimit.ModelStats) float64 {
	least := 1.0
	for _, of := range [...]struct{ used, max int }{
		{s.RPM, s.MaxRPM}, {s.TPM, s.MaxTPM}, {s.RPD, s.MaxRPD}, {s.TPD, s.MaxTPD},
		{s.InputTPM, s.MaxInputTPM}, {s.OutputTPM, s.MaxOutputTPM}, {s.Concurrent, s.MaxConcurrent},
	} {
		if of.max > 0 {
			least = min(least, 1-float64(of.used)/float64(of.max))
		}
	}
	return least
}
