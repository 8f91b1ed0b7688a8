package ratelimit

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/settings"
)

// posted is quotas as settings of a store: one a model.
type posted struct {
	keeper settings.Keeper
	miss   func(error)
}

const quotaSetting = "quota/" // and the model's name

func (p *posted) putQuotas(quotas map[string]ModelQuota) error {
	_, err := settings.Put(context.Background(), p.keeper, quotaSetting, quotas, false)
	return err
}

func (p *posted) addQuotas(quotas map[string]ModelQuota) (map[string]ModelQuota, error) {
	values, err := settings.Put(context.Background(), p.keeper, quotaSetting, quotas, true)
	return p.parse(values), err
}

func (p *posted) load(ctx context.Context, rl *RateLimiter) error {
	values, err := p.keeper.Settings(ctx)
	if err != nil {
		return err
	}
	rl.hearPauses(values)
	return rl.setQuotas(p.parse(values))
}

// save has nothing to write: what was set at run time is there, and what else a node
// goes by is in its Config, where the next one may say otherwise.
func (p *posted) save(*RateLimiter) error { return nil }

func (p *posted) parse(values map[string]string) map[string]ModelQuota {
	quotas, unset := settings.Parse(values, quotaSetting, checkQuota, p.miss)
	for _, model := range unset {
		p.miss(fmt.Errorf("ratelimit: the store's setting %.80q is not used: it must be one quota", quotaSetting+model))
	}
	return quotas
}

func checkQuota(model string, quota ModelQuota) error {
	_, err := newRulesOf(map[string]ModelQuota{model: quota})
	return err
}
