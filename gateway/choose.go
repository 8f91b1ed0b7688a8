package gateway

import (
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
)

// choose returns the deployment that the call goes to: one that it has not failed at,
// that is well, and has most left of the model's quota, or has enough soonest.
func (x *exchange) choose() *deployment {
	all := x.upstream.deployments
	best := all[0]
	if len(all) > 1 {
		best = x.best(all)
		x.tried = append(x.tried, best)
	}
	x.Deployment = best.name
	x.Quota = x.upstream.quota(x.call.Request.Model, best.name)
	x.call.Quota = x.Quota
	x.call.QuotaGuessed = x.setup.declared[x.Quota].usual && x.g.Origin(x.Quota) == Guessed
	return best
}

func (x *exchange) best(all []*deployment) *deployment {
	now := time.Now()
	var best *candidate
	for _, d := range all {
		c := &candidate{
			deployment: d,
			said:       x.g.limits.Models.Decide(x.upstream.quota(x.call.Request.Model, d.name), x.call.Request.Prompt),
			tried:      slices.Contains(x.tried, d),
			well:       d.well(now, x.call.Request.Model),
		}
		if best == nil || c.before(best) {
			best = c
		}
	}
	return best.deployment
}

// candidate is a deployment that a call may go to.
type candidate struct {
	*deployment
	said        ratelimit.Decision
	tried, well bool
}

// before reports whether a call rather goes to c than to o.
func (c *candidate) before(o *candidate) bool {
	switch {
	case c.tried != o.tried:
		return o.tried
	case c.well != o.well:
		return c.well
	case c.said.Allowed != o.said.Allowed:
		return c.said.Allowed
	case !c.said.Allowed:
		return c.said.RetryAfter < o.said.RetryAfter
	}
	if a, b := room(&c.said.Stats), room(&o.said.Stats); a != b {
		return a > b
	}
	return c.active.Load() < o.active.Load()
}

// room returns which part of a model's quota is left, of whatever is scarcest.
func room(s *ratelimit.ModelStats) float64 {
	least := 1.0
	for _, of := range [...]struct{ used, most int }{
		{s.RPM, s.MaxRPM}, {s.TPM, s.MaxTPM}, {s.RPD, s.MaxRPD}, {s.TPD, s.MaxTPD},
		{s.InputTPM, s.MaxInputTPM}, {s.OutputTPM, s.MaxOutputTPM}, {s.Concurrent, s.MaxConcurrent},
	} {
		if of.most > 0 {
			least = min(least, 1-float64(of.used)/float64(of.most))
		}
	}
	return least
}
