package project

import (
	"hash/maphash"
	"runtime"
	"sync"
	"weak"

	"dappco.re/go/core/go-ratelimit/internal/engine"
)

// scopes is the scopes of projects that are in use, or of keys, or of runs: made when one is first
// asked for, and forgotten when there are too many. What was used is in the store, so to
// forget a scope costs no more than making it again. A scope that a call still has is found
// again, so that new limits reach the call.
type scopes struct {
	engine *engine.Engine
	make   func(id string) (*engine.Scope, error) // returns a new scope without rules
	planOf func(id string) *plan

	// isCurrent reports whether the scopes above one are still those that it should have. A scope
	// that has others is made anew. It may be nil: they never change.
	isCurrent func(id string, scope *engine.Scope) bool

	seed   maphash.Seed
	shards [scopeShards]scopeShard
}

type scopeShard struct {
	mu        sync.RWMutex
	byID      map[string]*engine.Scope
	forgotten map[string]weak.Pointer[engine.Scope] // that calls may still have
	_         [24]byte                              // so that no two shards share a cache line
}

const (
	scopeShards = 64
	mostScopes  = 256 // in a shard
)

func newScopes(e *engine.Engine, make func(id string) (*engine.Scope, error), planOf func(id string) *plan) *scopes {
	s := &scopes{engine: e, make: make, planOf: planOf, seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].byID = map[string]*engine.Scope{}
		s.shards[i].forgotten = map[string]weak.Pointer[engine.Scope]{}
	}
	return s
}

func (s *scopes) shard(id string) *scopeShard {
	return &s.shards[maphash.String(s.seed, id)%scopeShards]
}

// known returns the scope of an id that is in use, or nil.
func (s *scopes) known(id string) *engine.Scope {
	shard := s.shard(id)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.byID[id]
}

// of returns the scope of an id, with its limit as it is now.
func (s *scopes) of(id string) (*engine.Scope, error) {
	if scope := s.known(id); scope != nil {
		return scope, nil
	}
	for {
		made, err := s.make(id)
		if err != nil {
			return nil, err
		}
		if scope, err := s.add(id, made); scope != nil || err != nil {
			return scope, err
		}
	}
}

// add adds a scope that was made for an id and returns it, or the one that the id has already. It
// returns nil if another is to be made, because limits have changed meanwhile.
func (s *scopes) add(id string, made *engine.Scope) (*engine.Scope, error) {
	shard := s.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	scope := shard.find(id)
	if scope == nil || !s.current(id, scope) {
		scope = made
		if !s.current(id, scope) {
			return nil, nil
		}
		if err := s.engine.SetRules(scope, s.planOf(id).rules()); err != nil {
			return nil, err
		}
	}
	if len(shard.byID) >= mostScopes {
		shard.forget()
	}
	delete(shard.forgotten, id)
	shard.byID[id] = scope
	return scope, nil
}

func (s *scopes) current(id string, scope *engine.Scope) bool {
	return s.isCurrent == nil || s.isCurrent(id, scope)
}

// find returns the scope of an id that is known, or that a call still has, or nil.
func (s *scopeShard) find(id string) *engine.Scope {
	if scope := s.byID[id]; scope != nil {
		return scope
	}
	return s.forgotten[id].Value()
}

// forget forgets some scopes, whichever they are.
func (s *scopeShard) forget() {
	n := 0
	for id, scope := range s.byID {
		delete(s.byID, id)
		s.forgotten[id] = weak.Make(scope)
		runtime.AddCleanup(scope, s.drop, id)
		n++
		if n == mostScopes/8 {
			return
		}
	}
}

// drop drops what is left of a forgotten scope that no call has any more.
func (s *scopeShard) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten[id].Value() == nil {
		delete(s.forgotten, id)
	}
}

// update gives every scope the limit that its id has now. Scopes that are to be made anew are
// dropped: calls that wait in them are decided on by the limits that they came under.
func (s *scopes) update() {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		for id, scope := range shard.byID {
			if !s.current(id, scope) {
				delete(shard.byID, id)
				continue
			}
			s.refresh(id, scope)
		}
		for id, forgotten := range shard.forgotten {
			if scope := forgotten.Value(); scope != nil && s.current(id, scope) {
				s.refresh(id, scope)
			}
		}
		shard.mu.Unlock()
	}
}

// updateOne is update for one id.
func (s *scopes) updateOne(id string) {
	shard := s.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if scope := shard.find(id); scope != nil {
		s.refresh(id, scope)
	}
}

// refresh gives a scope the limit that its id has now.
func (s *scopes) refresh(id string, scope *engine.Scope) {
	p := s.planOf(id)
	if planIn(scope.Rules()) == p {
		return
	}
	s.engine.Miss(s.engine.SetRules(scope, p.rules()))
}
