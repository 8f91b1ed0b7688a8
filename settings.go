package ratelimit

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/internal/state"
)

// posted is quotas as settings of a store: one a model.
type posted struct {
	limiter *RateLimiter
	keeper  settings.Keeper
}

const quotaSetting = "quota/" // and the model's name

func (p *posted) PutQuotas(quotas map[string]state.Quota) error {
	_, err := settings.Put(context.Background(), p.keeper, quotaSetting, modelQuotas(quotas), false)
	return err
}

func (p *posted) AddQuotas(quotas map[string]state.Quota) (map[string]state.Quota, error) {
	values, err := settings.Put(context.Background(), p.keeper, quotaSetting, modelQuotas(quotas), true)
	return p.parse(values), err
}

func (p *posted) Quotas(ctx context.Context) (map[string]state.Quota, error) {
	values, err := p.keeper.Settings(ctx)
	if err != nil {
		return nil, err
	}
	p.limiter.hearPauses(values)
	return p.parse(values), nil
}

// Save has nothing to write: what was set at run time is there, and what else a node
// goes by is in its Config, where the next one may say otherwise.
func (p *posted) Save(map[string]state.Quota) error { return nil }

func (p *posted) parse(values map[string]string) map[string]state.Quota {
	check := func(model string, q ModelQuota) error { return state.Check(model, state.Quota(q)) }
	quotas, unset := settings.Parse(values, quotaSetting, check, p.limiter.engine.Miss)
	for _, model := range unset {
		p.limiter.engine.Miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: it must be one quota", quotaSetting+model))
	}
	return stateQuotas(quotas)
}
