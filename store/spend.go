package store

import (
	"context"
	"fmt"
	"unsafe"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Spend is Take of one charge that is never settled. It appends what each limit
// says to decisions, in their order. Limits must be valid: it is for callers who
// have made sure of that once. It allocates nothing for a key that is known; key
// is not kept.
func (m *Memory) Spend(ctx context.Context, key []byte, limits []limit.Limit, n int64, decisions []limit.Decision) ([]limit.Decision, error) {
	if err := ctx.Err(); err != nil {
		return decisions, notAsked(err)
	}
	if n < 0 {
		return decisions, fmt.Errorf("%w: %d of %q: it must not be negative", ErrInvalid, n, string(key))
	}
	name := unsafe.String(unsafe.SliceData(key), len(key)) // which is not kept
	hash := hashOf(name)
	s := &m.shards[shardOf(name)]
	s.mu.Lock()
	if m.closed.Load() {
		s.mu.Unlock()
		return decisions, ErrClosed
	}
	now := m.clock()
	s.seen = now
	if e := s.table.find(hash, name); e != nil {
		decisions = e.purse.Spend(limits, now, n, decisions)
	} else {
		decisions = s.spendNew(hash, key, limits, now, n, decisions)
	}
	s.mu.Unlock()
	m.sweep(now)
	return decisions, nil
}

// spendNew is Spend of a key that is not known, and will be if it is charged.
func (s *shard) spendNew(hash uint64, key []byte, limits []limit.Limit, now, n int64, decisions []limit.Decision) []limit.Decision {
	var purse limit.Purse
	decisions = purse.Spend(limits, now, n, decisions)
	if now < purse.FullAt() {
		s.table.insert(hash, &entry{key: string(key), purse: purse})
		s.table.sweep(now, forNew)
	}
	return decisions
}
