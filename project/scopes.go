package project

import (
	"hash/maphash"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/admission"
)

// scopes is the scopes of projects that are in use: made when a project is first asked
// for, and forgotten when there are too many. What a project has used is in the store,
// so to forget its scope costs no more than making it again.
type scopes struct {
	seed   maphash.Seed
	shards [scopeShards]scopeShard
}

type scopeShard struct {
	mu   sync.RWMutex
	byID map[string]*admission.Scope
	_    [32]byte // so that no two share a cache line
}

const (
	scopeShards = 64
	mostScopes  = 256 // in a shard
)

func newScopes() *scopes { return &scopes{seed: maphash.MakeSeed()} }

func (s *scopes) shard(id string) *scopeShard {
	return &s.shards[maphash.String(s.seed, id)%scopeShards]
}

// of returns the scope of a project, with the project's limit as it is now.
func (s *scopes) of(l *Limiter, id string) (*admission.Scope, error) {
	shard := s.shard(id)
	shard.mu.RLock()
	scope := shard.byID[id]
	shard.mu.RUnlock()
	if scope != nil {
		return scope, nil
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if scope = shard.byID[id]; scope != nil {
		return scope, nil
	}
	scope = l.engine.NewOwn(keyOf(id))
	if err := l.engine.SetRules(scope, l.planOf(id).rules()); err != nil {
		return nil, err
	}
	if shard.byID == nil {
		shard.byID = map[string]*admission.Scope{}
	}
	if len(shard.byID) >= mostScopes {
		shard.forget()
	}
	shard.byID[id] = scope
	return scope, nil
}

// forget drops some scopes for which no call waits, whichever they are.
func (s *scopeShard) forget() {
	n := 0
	for id, scope := range s.byID {
		if scope.Awaited() {
			continue
		}
		delete(s.byID, id)
		if n++; n == mostScopes/8 {
			return
		}
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
		shard.mu.Unlock()
	}
}

// updateOne is update for one project.
func (s *scopes) updateOne(l *Limiter, id string) {
	shard := s.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if scope := shard.byID[id]; scope != nil {
		l.refresh(id, scope)
	}
}

// refresh gives a scope the limit that its project has now, and lets calls that wait ask
// again.
func (l *Limiter) refresh(id string, scope *admission.Scope) {
	p := l.planOf(id)
	if scope.Rules().Setup == p {
		return
	}
	l.engine.Miss(l.engine.SetRules(scope, p.rules()))
	l.engine.Wake(scope)
}
