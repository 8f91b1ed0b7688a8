package project

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/settings"
	"dappco.re/go/core/go-ratelimit/store"
)

// limitSetting is what the name of a setting begins with that is the limit of a
// project.
const limitSetting = "project/"

// SetLimit sets the limit of a project, or of a template such as "acme/*": see [Limiter]. What was
// used stays, but for windows that change from sliding to those of a calendar, or back: these begin
// empty. The new limit
// also decides on calls that wait already, but for those of projects below one that had none
// before: these pass by the limits under which they came; a new priority or weight counts from the next
// call that has to wait, and calls that are under way when MaxConcurrent is first set
// are not counted. A limiter on Redis or SQLite writes it there too, and the others
// follow: at once on Redis, within a second on SQLite. To set many, use SetLimits.
func (l *Limiter) SetLimit(projectID string, limit Limit) error {
	return l.SetLimits(map[string]Limit{projectID: limit})
}

// SetLimits sets the limits of several projects, or none if one is not valid. On
// Redis and SQLite it is one step, whatever their number.
func (l *Limiter) SetLimits(limits map[string]Limit) error {
	if l.closed.Load() {
		return store.ErrClosed
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	if keeper := hidden.Of[settings.Keeper](l.engine.Store()); keeper != nil {
		if err := l.checkLimits(limits); err != nil {
			return err
		}
		if _, err := settings.Put(context.Background(), keeper, limitSetting, limits, false); err != nil {
			return err
		}
	}
	return l.setPlans(limits)
}

// ReplaceLimit sets the limit of a project if the project still has the limit was, as [Limiter.Limit]
// returns it, and reports whether it has. So of several who change different fields of one limit at the same
// time, through any limiters on one store, none undoes what another has done: one that gets false reads the
// limit again.
func (l *Limiter) ReplaceLimit(ctx context.Context, projectID string, was, limit Limit) (bool, error) {
	if l.closed.Load() {
		return false, store.ErrClosed
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	limits := map[string]Limit{projectID: limit}
	if err := l.checkLimits(limits); err != nil {
		return false, err
	}
	keeper := hidden.Of[settings.Keeper](l.engine.Store())
	var all map[string]string
	if keeper != nil {
		var err error
		if all, err = l.load(ctx, keeper); err != nil {
			return false, err
		}
	}
	if l.Limit(projectID) != was {
		return false, nil
	}
	if keeper != nil {
		if swapped, err := settings.Swap(ctx, keeper, all, limitSetting, projectID, &limit); !swapped {
			return false, err
		}
	}
	return true, l.setPlans(limits)
}

// SetDefault sets the limit of projects that have none of their own, for this limiter
// alone: no store keeps it. What the projects have used stays. Calls that wait find the
// new limit when they ask again.
func (l *Limiter) SetDefault(limit Limit) error {
	usual, err := newPlan(limit, l.maxWaiting)
	if err == nil && limit.MinShare > 0 {
		err = fmt.Errorf("MinShare is %v: it must be 0 here, because every project without a limit of its own would have that much", limit.MinShare)
	}
	if err != nil {
		return fmt.Errorf("ratelimit: the default limit: %s", message.Plain(err))
	}
	l.usual.Store(usual)
	l.scopes.update()
	return nil
}

// UnsetLimit takes back the limit of a project or of a template, here and in a store that
// keeps limits. The project has the limit of a template again, or the default.
func (l *Limiter) UnsetLimit(projectID string) error {
	if l.closed.Load() {
		return store.ErrClosed
	}
	if err := checkPath(projectID); err != nil {
		return err
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	if keeper := hidden.Of[settings.Keeper](l.engine.Store()); keeper != nil {
		if err := settings.Unset(context.Background(), keeper, limitSetting, projectID); err != nil {
			return err
		}
	}
	l.unsetPlans([]string{projectID})
	return nil
}

// unsetPlans takes back limits. One caller at a time may.
func (l *Limiter) unsetPlans(ids []string) {
	gone := map[string]*plan{}
	for _, id := range ids {
		if l.plans.of(id) != nil {
			gone[id] = nil
		}
	}
	l.put(gone)
}

// put sets plans, and lets calls that wait ask again.
func (l *Limiter) put(some map[string]*plan) {
	others := false // other projects may have other limits now: those below one, or users
	for id, p := range some {
		others = others || strings.IndexByte(id, '/') >= 0 || (p == nil) != (l.plans.of(id) == nil)
	}
	l.plans.set(some)
	for id := range some {
		l.scopes.updateOne(id)
	}
	if others && l.nested.Load() {
		l.scopes.update()
		l.users.update()
	}
	l.dedicate(some)
}

// Limit returns the limit of a project: its own, a template's, or the default.
func (l *Limiter) Limit(projectID string) Limit {
	return l.planOf(projectID).limit
}

// Limits returns the limits of the projects that have one of their own, and of the templates.
func (l *Limiter) Limits() map[string]Limit {
	return l.plans.limits()
}

// setPlans sets all of the limits, or none if one is not valid. One caller at a
// time may.
func (l *Limiter) setPlans(limits map[string]Limit) error {
	if err := l.checkLimits(limits); err != nil {
		return err
	}
	set := map[string]*plan{}
	for id, limit := range limits {
		set[id], _ = newPlan(limit, l.maxWaiting)
	}
	l.put(set)
	return nil
}

// Load reads the limits that a store keeps, with those that other limiters have set a moment ago. They
// come by themselves too, a little later. On a store that keeps none, Load does nothing.
func (l *Limiter) Load(ctx context.Context) error {
	keeper := hidden.Of[settings.Keeper](l.engine.Store())
	if keeper == nil {
		return nil
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	_, err := l.load(ctx, keeper)
	if errors.Is(err, store.ErrClosed) {
		return nil
	}
	return err
}

// load is Load for a caller that has locked setting. It returns all settings of the store.
func (l *Limiter) load(ctx context.Context, keeper settings.Keeper) (all map[string]string, err error) {
	if all, err = keeper.Settings(ctx); err != nil {
		return nil, err
	}
	limits, unset := settings.Parse(all, limitSetting, checkLimit, l.engine.Miss)
	l.unsetPlans(unset)
	return all, l.setPlans(l.withinShares(l.changed(limits)))
}

// follow goes by the limits that a store keeps, now and whenever others set one.
func (l *Limiter) follow(keeper settings.Keeper) error {
	if err := l.Load(context.Background()); err != nil {
		return err
	}
	l.unfollow = settings.Follow(keeper, l.Load, l.engine.Miss)
	return nil
}

// changed returns those limits that are not the same as before: plans that stay
// are the same ones.
func (l *Limiter) changed(limits map[string]Limit) map[string]Limit {
	maps.DeleteFunc(limits, func(id string, limit Limit) bool {
		before := l.plans.of(id)
		return before != nil && before.limit == limit
	})
	return limits
}
