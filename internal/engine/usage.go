package engine

import (
	"context"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Refit fits what was used of a scope to its present rules. Without Refit that happens when the scope is next charged,
// which is too late for a window whose end has changed.
func (e *Engine) Refit(ctx context.Context, s *Scope) error {
	list := (&s.rules.Load().plans[Whole]).append(nil, &Ask{})
	if len(list) == 0 {
		return nil
	}
	_, _, err := e.store.Take(ctx, list)
	return err
}

// Record charges a call that was made without a reservation, whatever the limits say.
func (e *Engine) Record(ctx context.Context, s *Scope, c *Call) error {
	r := s.rules.Load()
	if r == nil {
		return nil
	}
	var used Ask
	e.Miss(used.set(c)) // it counts as far as it can be counted
	used.weigh(r.Count, c)
	p := &r.plans[WithoutSlots]
	list := p.withoutLimits(&used)
	if len(list) == 0 {
		return nil
	}
	_, said, err := e.store.Take(ctx, list)
	if err != nil || store.Allowed(said) {
		return err
	}
	actual := make([]int64, len(list)) // it is too much to count: as far as it can be
	for i := range list {
		actual[i], list[i].N = list[i].N, 0
	}
	receipt, _, err := e.store.Take(ctx, list)
	if err != nil {
		return err
	}
	return e.store.Settle(ctx, receipt, actual)
}

// withoutLimits returns charges of what was used, under limits that deny nothing.
func (p *plan) withoutLimits(used *Ask) []store.Charge {
	list := p.append(nil, used)
	for i := range list {
		list[i] = store.Charge{Key: list[i].Key, N: list[i].N}
		for _, l := range p.charges[i].Limits {
			list[i].Limits = append(list[i].Limits, boundless(l))
		}
	}
	return list
}

// boundless returns a limit that denies nothing, and counts as l does.
func boundless(l limit.Limit) limit.Limit {
	if l.Algorithm() == limit.GCRA { // with another count, what was taken before could not be refunded
		return l.WithBurst(min(l.Count(), Boundless>>20) << 20)
	}
	return l.WithCount(Boundless)
}

// Read returns what the scope has used of each unit that it counts, and as of which
// time in Unix nanoseconds.
func (e *Engine) Read(ctx context.Context, s *Scope) (used map[Unit]*limit.Account, at int64, err error) {
	r := s.rules.Load()
	p := &r.plans[Whole]
	keys := make([]string, len(p.charges))
	for i := range keys {
		keys[i] = p.charges[i].Key
	}
	if e.closed.Load() {
		return nil, 0, store.ErrClosed
	}
	accounts, at, err := e.store.Read(ctx, keys...)
	if err != nil {
		return nil, 0, err
	}
	used = map[Unit]*limit.Account{}
	for i, a := range accounts {
		a.Fit(p.charges[i].Limits, at)
		used[p.charges[i].unit] = a
	}
	return used, at, nil
}

// LookAt returns what is used of a scope. It asks for nothing, and no gate.
func (e *Engine) LookAt(ctx context.Context, s *Scope) (*Standing, error) {
	if e.closed.Load() {
		return nil, store.ErrClosed
	}
	o := Outcome{many: []Standing{{Scope: s, charged: charged{&s.rules.Load().plans[Whole], true}}}}
	return &o.many[0], e.peekStandings(ctx, &Ask{}, &o)
}

// Reset forgets what the scope has used.
func (e *Engine) Reset(ctx context.Context, s *Scope) error {
	s.resets.Add(1) // calls under way do not renew their slots
	err := e.store.Reset(ctx, s.Key)
	r := s.rules.Load()
	if err == nil && r != nil && r.budgets != nil {
		r.budgets.forget()
	}
	if d := r.shared(); err == nil && d != nil {
		d.pool.Reset()
		if f := e.join(); f != nil {
			f.send(message{Key: s.Key, Reset: true})
		}
	}
	e.Wake(s)
	return err
}
