package project

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
)

// MostScopes is to how many scopes of this package a call is charged at most: its project and all
// above it, its key and its run. It is for package ratelimit alone.
const MostScopes = MaxNames + 2

// Owners says to whom a call is charged beside its model: see [Call]. It is for package ratelimit
// alone.
type Owners struct {
	Project, Key, Run, RunProject string

	Shadow string // see [Call].ShadowOf
}

// OwnersOf returns to whom a call is charged beside its model. It is for package ratelimit alone.
func OwnersOf(c *Call) Owners { return Owners{c.Project, c.Key, c.Run, c.RunProject, c.ShadowOf} }

// AppendScopes appends the scopes that a call is charged to beside its model: those of its project
// and of all above it, and those of its key and of its run if they have limits. It is for package
// ratelimit alone.
func (l *Limiter) AppendScopes(scopes []*engine.Scope, of Owners) ([]*engine.Scope, error) {
	if of.Shadow == "" {
		return l.appendScopes(scopes, of)
	}
	if of.Project != of.Shadow && !strings.HasPrefix(of.Project, of.Shadow+"/") {
		return nil, fmt.Errorf("%w: ShadowOf is %.60q: it must be the project %.60q, or one above it", ErrInvalid, of.Shadow, of.Project)
	}
	first := len(scopes)
	scopes, err := l.appendScopes(scopes, of)
	if err == nil {
		of.shadow(scopes[first:])
	}
	return scopes, err
}

// shadow replaces the scopes of the project that is in shadow, of those inside of it, of the key and of
// the run by their shadows.
func (of *Owners) shadow(scopes []*engine.Scope) {
	for i, s := range scopes {
		if above := strings.HasPrefix(of.Shadow, s.Name+"/"); !above {
			scopes[i] = s.Shadow()
		}
	}
}

func (l *Limiter) appendScopes(scopes []*engine.Scope, of Owners) ([]*engine.Scope, error) {
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
		if plans[id] = nil; limit == nil {
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

// LimitsTokens reports whether a limit on tokens governs a project. It is for package admit alone.
func (l *Limiter) LimitsTokens(projectID string) bool {
	if strings.IndexByte(projectID, '/') < 0 {
		return l.planOf(projectID).caps.tokens > 0
	}
	return l.Caps(Owners{Project: projectID}).Tokens > 0
}

// LimitedBy returns who has a limit in one of several units that holds for a call, such as project "acme", key "7" or
// run "x", and the unit: [Tokens] or [Dollars]. Both are empty if there is none, or if it only counts. It is for package
// gateway alone.
func (l *Limiter) LimitedBy(of Owners, units ...string) (owner, unit string, err error) {
	var room [MostScopes]*engine.Scope
	scopes, err := l.AppendScopes(room[:0], of)
	for _, s := range scopes {
		for _, k := range kind.Of(kind.Project) {
			if name := k.Unit().Name(); slices.Contains(units, name) && s.Limits(k.Unit()) && s.Kind != engine.Shadow {
				return OwnerText(s.Name), name, nil
			}
		}
	}
	return "", "", err
}

// Caps is what a call may be expected to use at most by the limits of its owners, and whether some of these reserve the
// most that it can use. It is for package call alone.
type Caps struct {
	MostTokens, MostDollars bool // some limit reserves the most of a call
	CutTokens, CutDollars   bool // some limit cuts streams

	Tokens   int64         // the smallest limit on tokens, or part of one: of the project, of those above it, of the key and of the run; 0: there is none
	Dollars  int64         // the same for dollars, in nanodollars
	MaxShare limit.Percent // the smallest MaxShare of the project and of those above it; 0: there is none
}

// Caps returns the caps of a call. A call that is not valid has none.
func (l *Limiter) Caps(of Owners) (c Caps) {
	scope, err := l.scopeOf(of)
	if err != nil {
		return c
	}
	for ; scope != nil; scope = scope.Parent() {
		p := scope.Rules().Setup.(*plan)
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
	return c
}

// limit lowers the caps to those of a plan, which may be nil.
func (c *Caps) limit(p *plan) {
	if p != nil {
		c.lower(p, p.caps)
	}
}

// lower lowers the caps to limits of a plan. Those that reserve the most are none for what is expected.
func (c *Caps) lower(p *plan, to amounts) {
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

// Of returns how much of a model's quota the call may ask for; 0 is no quota.
func (c *Caps) Of(quota int) int {
	if c.MaxShare == 0 || quota == 0 {
		return quota
	}
	return max(int(c.MaxShare.Part()*float64(quota)+1e-6), 1) // 29% of 100 are 29, and not 28.999
}
