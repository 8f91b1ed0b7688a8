package store

import "time"

// A key is full if none of its usage counts any more. Calls forget full keys, a few at
// a time: every sweepEvery, or every sweepSoon while there are full keys, one call looks
// at sweepChains chains of one shard, and the next such call at the next chains, or at the
// next shard after the last of them. That takes a hundredth of the time of one core, or a tenth while there are full keys.
const (
	sweepEvery  = int64(100 * time.Microsecond)
	sweepSoon   = int64(10 * time.Microsecond)
	sweepChains = 16

	// forNew is how many chains are swept when a key is added. A chain holds about one
	// key, so more keys are forgotten than added if most are full.
	forNew = 2
)

// sweep sweeps the next part of a shard if it is time for that, unless the shard is
// locked.
func (m *Memory) sweep(now int64) {
	at := m.sweepAt.Load()
	if now < at && now >= at-sweepEvery || !m.sweepAt.CompareAndSwap(at, now+sweepEvery) {
		return
	}
	turn := m.turn.Load()
	s := &m.shards[turn%shards]
	if !s.mu.TryLock() {
		m.turn.Store(turn + 1)
		return
	}
	some, last := s.table.sweep(now, sweepChains)
	if some {
		m.sweepAt.Store(now + sweepSoon)
	}
	if last {
		m.turn.Store(turn + 1)
	}
	s.mu.Unlock()
}

// Sweep forgets all keys that are full. The memory of a store is bounded without it:
// calls forget a few full keys each.
func (m *Memory) Sweep() {
	now := m.clock()
	m.eachTable(func(t *table) { t.sweep(now, int(t.chains)) })
}
