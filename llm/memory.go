package llm

import (
	"hash/maphash"
	"sync"
)

// memory has the histories of the models and projects that were used last. Requests
// name them, so there may be any number: it keeps 4,096 at most, each of less than
// a kilobyte, and none of the names.
type memory struct {
	shards [16]shard
}

// shard has two generations of histories. What is used becomes young. Once there are
// too many young ones, those that are old are forgotten, and the young ones are old.
type shard struct {
	mu         sync.Mutex
	young, old map[uint64]*history // by the hash of the owner
}

const generation = 128 // histories at most

// owner is whose history it is: a project's, with one model, or that of all of them.
type owner struct {
	provider       Provider
	model, project string
	all            bool
}

func modelOf(r *Request) owner { return owner{provider: r.Provider, model: r.Model, all: true} }

func projectOf(r *Request, project string) owner {
	return owner{provider: r.Provider, model: r.Model, project: project}
}

// revise returns figures of a call as the owner's history knows them better, if it
// has one.
func (m *memory) revise(o owner, c call, f figures) figures {
	s, hash := m.shard(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.find(hash); h != nil {
		return h.revise(c, f)
	}
	return f
}

// learn takes note of what a call has used in the owner's history.
func (m *memory) learn(o owner, c call, f figures) {
	s, hash := m.shard(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.find(hash)
	if h == nil {
		h = new(history)
		s.keep(hash, h)
	}
	h.learn(c, f)
}

var ownerSeed = maphash.MakeSeed()

func (m *memory) shard(o owner) (s *shard, hash uint64) {
	hash = maphash.Comparable(ownerSeed, o)
	return &m.shards[hash%uint64(len(m.shards))], hash
}

// find returns a history, which is young then, or nil.
func (s *shard) find(hash uint64) *history {
	if h := s.young[hash]; h != nil {
		return h
	}
	h := s.old[hash]
	if h != nil {
		s.keep(hash, h)
	}
	return h
}

func (s *shard) keep(hash uint64, h *history) {
	if len(s.young) == generation {
		s.young, s.old = s.old, s.young
		clear(s.young)
	}
	if s.young == nil {
		s.young = make(map[uint64]*history)
	}
	s.young[hash] = h
}
