package project

import (
	"hash/maphash"
	"runtime"
	"sync"
	"weak"

	"dappco.re/go/core/go-ratelimit/internal/admission"
)

// scopes is the scopes of projects that are in use: made when a project is first asked
// for, and forgotten when there are too many. What a project has used is in the store,
// so to forget its scope costs no more than making it again. A scope that a call still has
// is found again, so that the limits of the project reach the call.
type scopes struct {
	seed   maphash.Seed
	shards [scopeShards]scopeShard
}

type scopeShard struct {
	mu        sync.RWMutex
	byID      map[string]*admission.Scope
	forgotten map[string]weak.Pointer[admission.Scope] // that calls may still have
	_         [24]byte                                 // so that no two shards share a cache line
}

const (
	scopeShards = 64
	mostScopes  = 256 // in a shard
)

func newScopes() *scopes {
	s := &scopes{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].byID = map[string]*admission.Scope{}
		s.shards[i].forgotten = map[string]weak.Pointer[admission.Scope]{}
	}
	return s
}

func (s *scopes) shard(id string) *scopeShard {
	return &s.shards[maphash.String(s.seed, id)%scopeShards]
}

// known returns the scope of a project that is in use, or nil.
func (s *scopes) known(id string) *admission.Scope {
	shard := s.shard(id)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.byID[id]
}

// of returns the scope of a project, with the project's limit as it is now.
func (s *scopes) of(l *Limiter, id string) (*admission.Scope, error) {
	if scope := s.known(id); scope != nil {
		return scope, nil
	}
	shard := s.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	scope := shard.find(id)
	if scope == nil {
		scope = l.engine.NewOwn(keyOf(id), id)
		if err := l.engine.SetRules(scope, l.planOf(id).rules()); err != nil {
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

// find returns the scope of a project that is known, or that a call still has, or nil.
func (s *scopeShard) find(id string) *admission.Scope {
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
		if n++; n == mostScopes/8 {
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

// update gives every scope the limit that its project has now.
func (s *scopes) update(l *Limiter) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		for id, scope := range shard.byID {
			l.refresh(id, scope)
		}
		for id, forgotten := range shard.forgotten {
			if scope := forgotten.Value(); scope != nil {
				l.refresh(id, scope)
			}
		}
		shard.mu.Unlock()
	}
}

// updateOne is update for one project.
func (s *scopes) updateOne(l *Limiter, id string) {
	shard := s.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if scope := shard.find(id); scope != nil {
		l.refresh(id, scope)
	}
}

// refresh gives a scope the limit that its project has now.
func (l *Limiter) refresh(id string, scope *admission.Scope) {
	p := l.planOf(id)
	if scope.Rules().Setup == p {
		return
	}
	l.engine.Miss(l.engine.SetRules(scope, p.rules()))
}
