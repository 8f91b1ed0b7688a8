package store

import "time"

// Keys that are full are forgotten a few at a time, by whoever calls: one call in
// sweepEvery, or in sweepSoon as long as there is something to forget, looks at
// sweepChains chains, of one shard after another. That takes a hundredth of the
// time of one core, or a tenth until all that is full is gone.
const (
	sweepEvery  = int64(100 * time.Microsecond)
	sweepSoon   = int64(10 * time.Microsecond)
	sweepChains = 16

	// forNew is how many chains are swept for a key that is new. Each holds about
	// one key, so more go than come if they are full.
	forNew = 2
)

// sweep sweeps one shard, if it is time, and nobody is in it.
func (m *Memory) sweep(now int64) {
	at := m.sweepAt.Load()
	if now < at && now >= at-sweepEvery || !m.sweepAt.CompareAndSwap(at, now+sweepEvery) {
		return
	}
	s := &m.shards[m.turn.Add(1)%shards]
	if !s.mu.TryLock() {
		return
	}
	if s.table.sweep(now, sweepChains) {
		m.sweepAt.Store(now + sweepSoon)
	}
	s.mu.Unlock()
}

// Sweep forgets all that does not count any more. Memory is bounded without it: each call
// forgets a little.
func (m *Memory) Sweep() {
	now := m.clock()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		s.table.sweep(now, int(s.table.chains))
		s.mu.Unlock()
	}
}
