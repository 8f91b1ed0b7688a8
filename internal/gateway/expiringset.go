package gateway

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// expiringSet is a set of hashes, each of which expires. Clients choose many of the things
// that are hashed, so it has maxHashes at most.
type expiringSet struct {
	used  atomic.Bool // a hash was added once
	mu    sync.Mutex
	until map[uint64]time.Time
}

const maxHashes = 256

// add adds a hash for a time, unless the set is full.
func (s *expiringSet) add(hash uint64, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.until, func(_ uint64, until time.Time) bool { return !now.Before(until) })
	if s.until == nil {
		s.until = map[uint64]time.Time{}
	}
	if len(s.until) < maxHashes {
		s.until[hash] = now.Add(ttl)
	}
	s.used.Store(true)
}

func (s *expiringSet) has(hash uint64) bool {
	if !s.used.Load() { // the usual case, without the lock
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[hash])
}
