package ratelimit

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// settingsKeeper keeps quotas as settings of a store, one setting for each model.
type settingsKeeper struct {
	limiter *RateLimiter
	store   settings.Keeper
}

const quotaPrefix = "quota/" // the model's name follows

func (k *settingsKeeper) PutQuotas(quotas map[string]state.Quota) error {
	_, err := settings.Put(context.Background(), k.store, quotaPrefix, modelQuotas(quotas), false)
	return err
}

func (k *settingsKeeper) SwapQuota(ctx context.Context, model string, was, quota state.Quota) (bool, error) {
	all, err := k.store.Settings(ctx)
	if err != nil {
		return false, err
	}
	if current, there := k.parse(all)[model]; there && current != was {
		return false, nil
	}
	next := ModelQuota(quota)
	return settings.Swap(ctx, k.store, all, quotaPrefix, model, &next)
}

func (k *settingsKeeper) AddQuotas(quotas map[string]state.Quota) (map[string]state.Quota, error) {
	values, err := settings.Put(context.Background(), k.store, quotaPrefix, modelQuotas(quotas), true)
	return k.parse(values), err
}

func (k *settingsKeeper) Quotas(ctx context.Context) (map[string]state.Quota, error) {
	values, err := k.store.Settings(ctx)
	if err != nil {
		return nil, err
	}
	k.limiter.loadPauses(values)
	return k.parse(values), nil
}

// Save writes nothing. Quotas that were set at run time are in the store already. All others are
// in the node's Config, and another node's Config may differ.
func (k *settingsKeeper) Save(map[string]state.Quota) error { return nil }

func (k *settingsKeeper) parse(values map[string]string) map[string]state.Quota {
	check := func(model string, q ModelQuota) error { return state.Check(model, state.Quota(q)) }
	quotas, unset := settings.Parse(values, quotaPrefix, check, k.limiter.engine.Miss)
	for _, model := range unset {
		k.limiter.engine.Miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: it must be one quota", quotaPrefix+model))
	}
	return stateQuotas(quotas)
}
