package engine

import (
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// Scope is whatever has limits, and calls that wait for it. What every call needs comes first, so that it is
// together in the processor's cache.
type Scope struct {
	rules  atomic.Pointer[Rules]
	Kind   Kind
	line   *fair.Line // of calls that wait for a shared scope
	gate   Gate
	real   *Scope      // of which a scope in shadow is the twin
	parent *Scope      // the scope above this one, to which its calls are charged too; nil: none
	below  atomic.Bool // there are scopes below it, or several keys

	Name string // of the model or the project, for observers
	Key  string // begins the keys of its counters, and no other scope's

	engine  *Engine
	twin    atomic.Pointer[Scope]              // its shadow; nil: it was not needed yet
	wakes   atomic.Uint64                      // how often Wake was called, if the store is not in memory
	member  member                             // of the shares of its calls without a key
	keyed   atomic.Pointer[map[string]*member] // of those with a key, by its id; replaced, never changed
	group   fair.Group                         // of the shares of calls of the scopes below it
	nothing plan                               // of calls while the scope limits nothing
	held    atomic.Pointer[held]               // nil: nothing is
	resets  atomic.Uint32                      // how often what was used of it was forgotten
}

// Kind says who names a scope, and what its limits do.
type Kind uint8

const (
	Own     Kind = iota // calls of one flow name the scope: a project, a key or a run has it
	Shared              // calls of several flows name the scope, and wait for it in line: a model has it
	Shadow              // the limits of another scope, which count calls and do not deny them
	Counter             // it counts what a member of a shared scope uses, in all processes, and denies nothing
)

// NewShared returns a scope that calls of several flows name, such as a model. Calls
// that wait for it have their turns by the ranks and weights of their own scopes.
// gate may be nil.
func (e *Engine) NewShared(key, name string, gate Gate) *Scope {
	s := e.newScope(Shared, key, name)
	s.gate, s.line = gate, e.hall.NewLine()
	return s
}

// NewOwn returns a scope whose calls are one flow, such as a project.
func (e *Engine) NewOwn(key, name string) *Scope { return e.newScope(Own, key, name) }

func (e *Engine) newScope(kind Kind, key, name string) *Scope {
	s := &Scope{Kind: kind, Key: key, Name: name, engine: e, group: fair.Group{Name: name}}
	s.nothing.scope, s.member.scope, s.member.Name = s, s, name
	return s
}

// NewBelow is NewOwn of a scope whose calls are charged to its parent as well, such as a part of a
// project. parent may be nil.
func (e *Engine) NewBelow(parent *Scope, key, name string) *Scope {
	s := e.NewOwn(key, name)
	if parent != nil {
		s.parent, s.member.Group, s.group.Above = parent, &parent.group, &parent.group
		parent.below.Store(true)
	}
	return s
}

// Parent returns the scope above the scope, or nil.
func (s *Scope) Parent() *Scope { return s.parent }

// Root returns the outermost scope above the scope, or the scope itself if it has none.
func (s *Scope) Root() *Scope {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// Append appends the scope and all scopes above it, the innermost first: what a call of the scope
// is charged to.
func (s *Scope) Append(list []*Scope) []*Scope {
	for ; s != nil; s = s.parent {
		list = append(list, s)
	}
	return list
}

// SetRules replaces the scope's rules. What was used stays. Calls that wait are decided
// on by the new rules, and fail at once if these let them never pass.
func (e *Engine) SetRules(s *Scope, r *Rules) error {
	if err := r.ready(s); err != nil {
		return err
	}
	if (s.Kind == Shared || s.below.Load()) && !e.undivided {
		r.divide(s.rules.Load())
	}
	s.rules.Store(r)
	s.group.Set(r.terms())
	if twin := s.twin.Load(); twin != nil {
		twin.follow()
	}
	e.endImpossible(s)
	e.Wake(s)
	return nil
}

// Gate returns the gate of a shared scope, or nil.
func (s *Scope) Gate() Gate { return s.gate }

// Rules returns the scope's rules, or nil before any were set.
func (s *Scope) Rules() *Rules { return s.rules.Load() }

// HasBelow reports whether there are scopes below the scope, or several keys that share what it has.
func (s *Scope) HasBelow() bool { return s.below.Load() }

// Limited reports whether a limit of the scope may deny a call.
func (s *Scope) Limited() bool { r := s.rules.Load(); return r != nil && r.limited }

// Limits reports whether a limit of the scope on a unit may deny a call.
func (s *Scope) Limits(u Unit) bool { r := s.rules.Load(); return r != nil && r.smallest[u] > 0 }

// Waiting returns how many calls wait for a shared scope.
func (s *Scope) Waiting() int { return s.line.Waiting() }

// planFor returns what a call is charged in the scope now. Without an engine, that is without what
// the gate lowers.
func (s *Scope) planFor(e *Engine, part Part) *plan {
	r := s.rules.Load()
	if r == nil || !r.limited && s.Kind == Shared {
		return &s.nothing
	}
	if e != nil && s.gate != nil && !s.gate.Idle() {
		r = s.gate.Lower(r, e.clock())
	}
	return &r.plans[part]
}

// Lowered returns the rules with limits that are lowered by what is used elsewhere. A limit is at least one, so that a
// call can find out when there is more again.
func (r *Rules) Lowered(elsewhere func(l *Limit) int64) *Rules {
	lower := &Rules{Setup: r.Setup, LeastTokens: r.LeastTokens, Count: r.Count, Most: r.Most, Cut: r.Cut, Rank: r.Rank, Weight: r.Weight, MaxWaiting: r.MaxWaiting}
	for i := range r.Limits {
		l := r.Limits[i]
		if !l.Free && !l.Pace {
			l.Elsewhere = elsewhere(&r.Limits[i])
			l.Limit = l.Limit.WithCount(max(l.Limit.Count()-l.Elsewhere, 1))
		}
		lower.Limits = append(lower.Limits, l)
	}
	if lower.ready(r.scope) != nil {
		return r // a count out of range
	}
	lower.sharing.Store(r.sharing.Load())
	return lower
}
