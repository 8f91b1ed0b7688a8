package gateway

import (
	"cmp"
	"context"
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// choose asks the limits of one deployment after another, until one admits the call. A
// denial takes nothing. If all of them deny the call, choose asks the deployment that would
// admit it soonest once more, and lets the call wait there if it may wait.
func (x *exchange) choose(ctx context.Context) error {
	candidates := x.candidates()
	soonest, wait := candidates[0], ratelimit.Never
	if len(candidates) == 1 {
		candidates = nil // there is nothing to choose
	}
	for _, d := range candidates {
		err := x.askAt(ctx, d, x.call.TryTentatively)
		if err != nil || x.decision.Allowed {
			return err
		}
		if x.decision.RetryAfter < wait {
			soonest, wait = d, x.decision.RetryAfter
		}
		if x.decision.Code == ratelimit.DecisionProjectLimit {
			break // the project has the same limits at every deployment
		}
	}
	if x.call.MaxWait > 0 {
		return x.askAt(ctx, soonest, x.call.Acquire)
	}
	return x.askAt(ctx, soonest, x.call.Try)
}

// askAt asks the limits of a deployment about the call, and keeps their decision.
func (x *exchange) askAt(ctx context.Context, d *deployment, ask func(context.Context) (ratelimit.Decision, error)) (err error) {
	x.chosen, x.Deployment = d, d.name
	x.Quota = x.upstream.quotaName(x.call.Request.Model, d.name)
	x.call.Model, x.call.Owner = x.Quota, x.owner()
	x.call.ShadowModel = x.g.modelMode(x.setup, x.Quota) == config.ModeShadow
	x.call.QuotaGuessed = x.setup.declared[x.Quota].isDefault && x.g.Origin(x.Quota) == Guessed
	x.decision, err = ask(ctx)
	if err == nil && len(x.upstream.deployments) > 1 {
		x.upstream.usage.record(x.Quota, &x.decision, time.Now())
	}
	return err
}

// candidates returns the deployments that the call may be sent to: of those whose quotas are not
// paused, and that were not tried yet, or else of all, the healthy ones, or else all. The one with the largest part of
// the model's quota left comes first.
func (x *exchange) candidates() []*deployment {
	all := x.upstream.deployments
	if len(all) == 1 || x.firstAlone || x.call.Request.Background { // responses are fetched from the first deployment
		return all[:1]
	}
	now, model, switched := time.Now(), x.call.Request.Model, x.g.controls.State()
	all = preferred(all, func(d *deployment) bool { return !switched.Model(x.upstream.quotaName(model, d.name)).Paused })
	all = preferred(all, func(d *deployment) bool { return !slices.Contains(x.tried, d) })
	all = preferred(all, func(d *deployment) bool { return d.healthy(now, model) })
	used := make(map[*deployment]float64, len(all))
	for _, d := range all {
		used[d] = x.upstream.usage.at(x.upstream.quotaName(model, d.name), now)
	}
	slices.SortStableFunc(all, func(a, b *deployment) int {
		return cmp.Or(cmp.Compare(used[a], used[b]), cmp.Compare(a.active.Load(), b.active.Load()))
	})
	return all
}

// preferred returns the deployments that are preferable, or all deployments if none is.
func preferred(all []*deployment, preferable func(*deployment) bool) []*deployment {
	some := slices.DeleteFunc(slices.Clone(all), func(d *deployment) bool { return !preferable(d) })
	if len(some) == 0 {
		return slices.Clone(all)
	}
	return some
}
