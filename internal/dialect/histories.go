package dialect

import (
	"hash/maphash"
	"sync"

	"dappco.re/go/core/go-ratelimit/llm"
)

// historyCache keeps the histories of the models and projects that were used last. Their names come
// from requests, so their number has to be bounded: it keeps at most 4,096 histories, each of less
// than a kilobyte, and none of the names.
type historyCache struct {
	shards [16]shard
}

// shard has two generations of histories. A history that is used becomes young. When there are too
// many young ones, the old ones are forgotten, and the young ones become old.
type shard struct {
	mu         sync.Mutex
	young, old map[uint64]*history
}

const generation = 128 // the most histories of one generation of a shard

// owner is the model and the project that a history belongs to. The shared history of a model is that
// of the calls of all projects.
type owner struct {
	provider       llm.Provider
	model, project string
	shared         bool
}

// revise returns figures that the owner's history has revised, if there is one.
func (m *historyCache) revise(o owner, c call, f figures) figures {
	s, hash := m.shard(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.find(hash); h != nil {
		return h.revise(c, f)
	}
	return f
}

// learn records what a call has used in the owner's history, unless nothing was reported.
func (m *historyCache) learn(o owner, c call, f figures) {
	if f.input == unreported && f.output == unreported {
		return
	}
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

func (m *historyCache) shard(o owner) (s *shard, hash uint64) {
	hash = maphash.Comparable(ownerSeed, o)
	return &m.shards[hash%uint64(len(m.shards))], hash
}

// find returns a history, which it makes young, or nil if there is none.
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

// keep puts a history among the young ones.
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
