package project

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/decision"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
)

var _ [engine.MostOwn - (MaxNames + 2)]struct{} // a call has at most its project with all above it, its key and its run

// internals has the methods of a Limiter that are for the packages of this module alone: see [engine.Projects].
type internals struct{ *Limiter }

var _ engine.Projects = internals{}

// Internal returns what the limiter has for the packages of this module alone.
func (l *Limiter) Internal() any { return internals{l} }

// Scopes implements [engine.Projects].
func (l internals) Scopes(of engine.Owners) (own [engine.MostOwn]*engine.Scope, n int, err error) {
	scopes, err := l.appendOwned(own[:0], of)
	return own, len(scopes), err
}

// FindDeposit implements [engine.Projects].
func (l internals) FindDeposit(ctx context.Context, name string) (*engine.Deposit, error) {
	return l.engine.FindDeposit(ctx, name)
}

// Limited implements [engine.Projects].
func (l internals) Limited() iter.Seq[string] { return l.plans.ids }

// HasLimit implements [engine.Projects].
func (l internals) HasLimit(projectID string) bool { return l.plans.of(projectID) != nil }

// appendOwned appends the scopes that a call is charged to beside its model.
func (l *Limiter) appendOwned(scopes []*engine.Scope, of engine.Owners) ([]*engine.Scope, error) {
	if of.Shadow == "" {
		return l.appendScopes(scopes, of)
	}
	if of.Project != of.Shadow && !strings.HasPrefix(of.Project, of.Shadow+"/") {
		return nil, fmt.Errorf("%w: ShadowOf is %.60q: it must be the project %.60q, or one above it", ErrInvalid, of.Shadow, of.Project)
	}
	first := len(scopes)
	scopes, err := l.appendScopes(scopes, of)
	if err == nil {
		shadow(of.Shadow, scopes[first:])
	}
	return scopes, err
}

// shadow replaces the scopes of the project that is in shadow, of those below it, of the key and of
// the run by their shadows.
func shadow(project string, scopes []*engine.Scope) {
	for i, s := range scopes {
		if above := strings.HasPrefix(project, s.Name+"/"); !above {
			scopes[i] = s.Shadow()
		}
	}
}

func (l *Limiter) appendScopes(scopes []*engine.Scope, of engine.Owners) ([]*engine.Scope, error) {
	scope, err := l.scopeOf(of)
	if err != nil {
		return nil, err
	}
	scopes = scope.Append(scopes)
	if of.Key != "" && l.keyPlans.count.Load() > 0 && l.keyPlans.of(of.Key) != nil {
		scope, err := l.keys.of(of.Key)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, scope)
	}
	if of.Run != "" && l.runPlan.Load() != nil {
		return l.appendRun(scopes, cmp.Or(of.RunProject, of.Project), of.Run)
	}
	return scopes, nil
}

// SetKeyLimits sets the limits of keys by their ids, or takes back those that are nil. A call that
// names its key is charged to the key's limit as well as to its project's. No store keeps these
// limits: whoever keeps the keys does. Priorities, weights and shares in them have no effect.
func (l *Limiter) SetKeyLimits(limits map[string]*Limit) error {
	plans := map[string]*plan{}
	for id, limit := range limits {
		if err := checkName("key", id); err != nil {
			return err
		}
		plans[id] = nil
		if limit == nil {
			continue
		}
		p, err := newPlan(*limit, l.maxWaiting)
		if err != nil {
			return fmt.Errorf("ratelimit: the limit of key %q: %w", id, err)
		}
		plans[id] = p
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.keyPlans.set(plans)
	for id := range plans {
		l.keys.updateOne(id)
	}
	return nil
}

// planOfKey returns the plan of a key. A key whose limit was taken back has none.
func (l *Limiter) planOfKey(id string) *plan {
	if p := l.keyPlans.of(id); p != nil {
		return p
	}
	return l.inner
}

func (l *Limiter) newKeyScope(id string) (*engine.Scope, error) {
	return l.engine.NewOwn("key/"+url.PathEscape(id)+"/", "key "+id), nil
}

// checkName returns what is wrong with the id of a key or of a run, or nil.
func checkName(of, id string) error {
	if id == "" || len(id) > maxName || not(visible, id) < len(id) {
		return fmt.Errorf("%w: the id %.40q of a %s: it must have 1 to %d visible ASCII characters", ErrInvalid, id, of, maxName)
	}
	return nil
}

const maxName = 128 // bytes

// LimitsTokens implements [engine.Projects].
func (l internals) LimitsTokens(projectID string) bool {
	if strings.IndexByte(projectID, '/') < 0 {
		return l.planOf(projectID).caps.tokens > 0
	}
	return l.Caps(engine.Owners{Project: projectID}).Tokens > 0
}

// LimitedBy implements [engine.Projects].
func (l internals) LimitedBy(of engine.Owners, units ...string) (owner, unit string, err error) {
	own, n, err := l.Scopes(of)
	for _, s := range own[:n] {
		for _, k := range kind.Of(kind.Project) {
			if name := k.Unit().Name(); slices.Contains(units, name) && s.Limits(k.Unit()) && s.Kind != engine.Shadow {
				return decision.OwnerText(s.Name), name, nil
			}
		}
	}
	return "", "", err
}

// Caps implements [engine.Projects].
func (l internals) Caps(of engine.Owners) engine.Caps {
	var c caps
	l.setCaps(&c, of)
	return c.Caps
}

// caps are the caps of a call while they are found.
type caps struct{ engine.Caps }

// setCaps lowers the caps to the limits of a call's owners. A call that is not valid has none.
func (l *Limiter) setCaps(c *caps, of engine.Owners) {
	scope, err := l.scopeOf(of)
	if err != nil {
		return
	}
	for ; scope != nil; scope = scope.Parent() {
		p := planIn(scope.Rules())
		c.limit(p)
		if c.MaxShare > 0 { // those inside may have a part of it
			c.lower(p, amounts{int64(c.Of(int(p.divided.tokens))), int64(c.Of(int(p.divided.dollars)))})
		}
		if share := p.limit.MaxShare; share > 0 && (c.MaxShare == 0 || share < c.MaxShare) {
			c.MaxShare = share
		}
	}
	if of.Key != "" {
		c.limit(l.keyPlans.of(of.Key))
	}
	if of.Run != "" {
		c.limit(l.runPlan.Load())
	}
}

// limit lowers the caps to those of a plan, which may be nil.
func (c *caps) limit(p *plan) {
	if p != nil {
		c.lower(p, p.caps)
	}
}

// lower lowers the caps to limits of a plan. Those that reserve the most are none for what is expected.
func (c *caps) lower(p *plan, to amounts) {
	if p.mostTokens {
		c.MostTokens = c.MostTokens || to.tokens > 0
	} else {
		lower(&c.Tokens, to.tokens)
		c.CutTokens = c.CutTokens || p.cut && to.tokens > 0
	}
	if p.mostDollars {
		c.MostDollars = c.MostDollars || to.dollars > 0
	} else {
		lower(&c.Dollars, to.dollars)
		c.CutDollars = c.CutDollars || p.cut && to.dollars > 0
	}
}
