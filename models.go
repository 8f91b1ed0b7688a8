package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/feedback"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/store"
)

// modelLocked returns the model of a name, and makes one where there is none. The caller has
// locked mu.
func (rl *RateLimiter) modelLocked(name string) *model {
	if m := (*rl.quotas.Load())[name]; m != nil {
		return m
	}
	m := rl.withoutQuota[name]
	if m == nil {
		if len(rl.withoutQuota) >= mostWithoutQuota {
			rl.forgetIdle(nil)
		}
		m = rl.newModel(name, state.Quota{})
		rl.withoutQuota[name] = m
	}
	return m
}

// mostWithoutQuota is how many models without a quota are kept here. When there are more,
// those that no call waits for are forgotten. Their usage stays in the store.
const mostWithoutQuota = 2 * mostUnknown

// forgetIdle forgets the models without a quota that no call waits for, except those in but.
// The caller has locked mu.
func (rl *RateLimiter) forgetIdle(but []string) {
	maps.DeleteFunc(rl.withoutQuota, func(name string, m *model) bool {
		return m.scope.Waiting() == 0 && !slices.Contains(but, name)
	})
}

// SetQuota sets the quota of a model. Its usage stays; a day that is under way ends when
// the new quota says. A limiter on Redis or SQLite writes the quota there too, and the other
// limiters follow: at once on Redis, within a second on SQLite. Until then they use the quota
// that they know.
func (rl *RateLimiter) SetQuota(model string, quota ModelQuota) error {
	rl.setting.Lock()
	defer rl.setting.Unlock()
	return rl.setQuotaLocked(model, state.Quota(quota))
}

// setQuotaLocked is SetQuota for a caller that has locked setting.
func (rl *RateLimiter) setQuotaLocked(model string, quota state.Quota) error {
	if err := state.Check(model, quota); err != nil {
		return err
	}
	if rl.keeper != nil {
		if err := rl.keeper.PutQuotas(map[string]state.Quota{model: quota}); err != nil {
			return err
		}
	}
	return rl.useQuota(model, quota)
}

// ReplaceQuota sets the quota of a model if the model still has the quota was, as [RateLimiter.Quota] returns
// it, and reports whether it has. So of several who change different fields of one quota at the same time,
// through any limiters on one store, none undoes what another has done: one that gets false reads the quota
// again.
func (rl *RateLimiter) ReplaceQuota(ctx context.Context, model string, was, quota ModelQuota) (bool, error) {
	if err := state.Check(model, state.Quota(quota)); err != nil {
		return false, err
	}
	rl.setting.Lock()
	defer rl.setting.Unlock()
	if current, _ := rl.Quota(model); current != was {
		return false, nil
	}
	if rl.keeper != nil {
		if swapped, err := rl.keeper.SwapQuota(ctx, model, state.Quota(was), state.Quota(quota)); !swapped {
			return false, err
		}
	}
	return true, rl.useQuota(model, state.Quota(quota))
}

// useQuota uses a quota that the keeper has. The caller has locked setting.
func (rl *RateLimiter) useQuota(model string, quota state.Quota) error {
	rl.declared[model] = quota
	before, _ := rl.Quota(model)
	quotas := map[string]state.Quota{model: quota}
	if err := rl.setQuotas(quotas); err != nil || before.DayResetsAt == quota.DayResetsAt {
		return err
	}
	return rl.engine.Refit(context.Background(), rl.find(model).scope)
}

// AddProvider sets the quotas of a provider's models to those of [DefaultProfiles].
// Quotas of other models stay, and so do those that Redis or a SQLite file holds. Other
// limiters follow, as after SetQuota.
func (rl *RateLimiter) AddProvider(provider Provider) error {
	profile, err := profileOf(provider)
	if err != nil {
		return err
	}
	rl.setting.Lock()
	defer rl.setting.Unlock()
	quotas := stateQuotas(profile.Models)
	if rl.keeper != nil {
		if quotas, err = rl.keeper.AddQuotas(quotas); err != nil {
			return err
		}
	}
	maps.Copy(rl.declared, stateQuotas(profile.Models))
	rl.logStored(quotas)
	return rl.setQuotas(quotas)
}

// logStored logs which quotas that a file or a store holds are used in place of those that the program sets:
// once for each model.
func (rl *RateLimiter) logStored(stored map[string]state.Quota) {
	var models []string
	for model, q := range rl.declared {
		held, ok := stored[model]
		if !ok || held == q || held.Auto && q.Auto || rl.logged[model] { // an Auto quota has learned
			continue
		}
		models = append(models, model)
		rl.logged[model] = true
	}
	if models != nil {
		slices.Sort(models)
		rl.log.Warn("ratelimit: the quotas of these models differ from those that the program sets, and are used: change them with SetQuota", "models", models)
	}
}

func profileOf(provider Provider) (ProviderProfile, error) {
	profiles := DefaultProfiles()
	profile, ok := profiles[provider]
	if !ok {
		return profile, fmt.Errorf("ratelimit: unknown provider %q: it must be one of %v", provider, slices.Sorted(maps.Keys(profiles)))
	}
	return profile, nil
}

// setQuotas sets all of the quotas, or none if one is not valid.
func (rl *RateLimiter) setQuotas(quotas map[string]state.Quota) error {
	for name, q := range quotas {
		if err := state.Check(name, q); err != nil {
			return err
		}
	}
	rl.mu.Lock()
	defer rl.mu.Unlock()
	models := maps.Clone(*rl.quotas.Load())
	for name, q := range quotas {
		if m := models[name]; m != nil && *m.quota() == q {
			continue
		}
		m := rl.modelLocked(name)
		if err := m.setQuota(q); err != nil {
			return err
		}
		delete(rl.withoutQuota, name)
		models[name] = m
	}
	rl.quotas.Store(&models)
	return nil
}

// Waiting returns how many calls of this limiter wait for a model.
func (rl *RateLimiter) Waiting(model string) int { return rl.find(model).scope.Waiting() }

// Quota returns the quota of a model, and whether it has one.
func (rl *RateLimiter) Quota(model string) (q ModelQuota, ok bool) {
	m := (*rl.quotas.Load())[model]
	if m == nil {
		return q, false
	}
	return ModelQuota(*m.quota()), true
}

// Quotas returns a copy of all quotas.
func (rl *RateLimiter) Quotas() map[string]ModelQuota {
	return modelQuotas(rl.stateQuotas())
}

func (rl *RateLimiter) stateQuotas() map[string]state.Quota {
	return eachModel(*rl.quotas.Load(), func(m *model) state.Quota { return *m.quota() })
}

// find returns the model of a name. If there is none, it returns a new one that is not kept.
func (rl *RateLimiter) find(name string) *model {
	if m := (*rl.quotas.Load())[name]; m != nil {
		return m
	}
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if m := rl.withoutQuota[name]; m != nil {
		return m
	}
	return rl.newModel(name, state.Quota{})
}

// findOrMake returns the model of a name. If there is none, it makes one and keeps it.
func (rl *RateLimiter) findOrMake(name string) *model {
	if m := (*rl.quotas.Load())[name]; m != nil {
		return m
	}
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return rl.modelLocked(name)
}

// State returns the usage of each model that has any.
func (rl *RateLimiter) State() map[string]UsageStats {
	used, err := rl.state()
	rl.engine.Miss(err)
	return eachModel(used, usageStats)
}

func (rl *RateLimiter) state() (map[string]state.Usage, error) {
	names, err := rl.names()
	all := map[string]state.Usage{}
	for _, name := range names {
		m := rl.find(name)
		accounts, now, failed := m.accounts(context.Background())
		err = errors.Join(err, failed)
		if failed != nil {
			continue
		}
		if u := accounts.Usage(m.quota(), now); !u.Empty() {
			all[name] = u
		}
	}
	return all, err
}

// Stats returns what is used of a model's quota, and the maxima.
func (rl *RateLimiter) Stats(model string) ModelStats {
	var v view
	var s ModelStats
	m := rl.find(model)
	if said, err := m.look(context.Background()); err != nil {
		rl.engine.Miss(err)
		v.setup = m.setup.Load()
	} else {
		v.fill(m, said)
	}
	v.fillStats(&s)
	return s
}

// AllStats returns the stats of every model that has a quota or was used.
func (rl *RateLimiter) AllStats() map[string]ModelStats { return maps.Collect(rl.Iter()) }

// Iter returns the names of all models that have a quota or were used, in
// order, with their stats.
func (rl *RateLimiter) Iter() iter.Seq2[string, ModelStats] {
	return func(yield func(string, ModelStats) bool) {
		for name := range rl.Models() {
			if !yield(name, rl.Stats(name)) {
				return
			}
		}
	}
}

// Models returns the names of all models that have a quota or were used, in
// order.
func (rl *RateLimiter) Models() iter.Seq[string] {
	return func(yield func(string) bool) {
		names, err := rl.names()
		rl.engine.Miss(err)
		for _, name := range names {
			if !yield(name) {
				return
			}
		}
	}
}

func (rl *RateLimiter) names() (names []string, err error) {
	if names, err = rl.used(); err == nil {
		rl.mu.Lock()
		rl.forgetIdle(names)
		rl.mu.Unlock()
	}
	names = slices.AppendSeq(names, maps.Keys(*rl.quotas.Load()))
	slices.Sort(names)
	return slices.Compact(names), err
}

// used returns the names of the models that have any usage in the store.
func (rl *RateLimiter) used() (names []string, err error) {
	ctx := context.Background()
	keys, err := rl.engine.Store().Keys(ctx, state.AllModels)
	for _, name := range state.ModelsOf(keys) {
		accounts, now, failed := rl.find(name).accounts(ctx)
		err = errors.Join(err, failed)
		if failed == nil && !accounts.Empty(now) {
			names = append(names, name)
		}
	}
	return names, err
}

// Reset forgets the usage of a model, and what its provider has reported, so a pause
// ends. Calls that are reserved and not yet committed or cancelled refund nothing
// later; whether what they use beyond their estimates still counts is not defined.
func (rl *RateLimiter) Reset(model string) {
	m := rl.find(model)
	rl.unpause(model, func(feedback.Pause) bool { return true })
	m.elsewhere.Store(nil)
	rl.unknown.forget(model)
	rl.engine.Miss(rl.engine.Reset(context.Background(), m.scope))
}

// BackgroundPrune forgets, once in every interval, usage that does not count any more, until
// stop is called. Memory is bounded without it; with it, some is freed earlier. An
// interval of zero or less starts nothing.
func (rl *RateLimiter) BackgroundPrune(interval time.Duration) (stop func()) {
	if interval <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var pruning sync.WaitGroup
	pruning.Go(func() {
		tick := time.Tick(interval)
		for {
			select {
			case <-tick:
				rl.prune()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		pruning.Wait()
	}
}

// prune forgets idle models without a quota, and usage that does not count any more.
func (rl *RateLimiter) prune() {
	if memory, ok := rl.engine.Store().(*store.Memory); ok {
		memory.Sweep()
	}
	_, err := rl.names()
	rl.engine.Miss(err)
}
