package store

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
)

// shards is how many shards a Memory has. A set of them is a word with a bit for each.
const shards = 64

// shard holds a part of the keys.
type shard struct {
	mu    sync.Mutex
	seen  int64 // the latest time of a decision
	table table
	_     [48]byte // so that no two shards share a cache line
}

// seed makes the hashes of keys differ from process to process.
var seed = maphash.MakeSeed()

// hashOf returns the hash by which a table finds a key.
func hashOf(key string) uint64 { return maphash.String(seed, key) / shards }

// ofProjects begins the keys of projects. The id of a project follows, escaped: see shardOf.
const ofProjects = "project/"

// shardOf returns the shard of a key. Keys that differ only after their last slash are
// in one shard, so that a take locks one shard for each scope. The keys of all projects in a
// tree, whose ids differ only after their first slash, are in one shard too: a take of one of
// them is also one of all above it.
func shardOf(key string) uint64 {
	if end := strings.LastIndexByte(key, '/'); end > 0 {
		key = key[:end]
	}
	if strings.HasPrefix(key, ofProjects) {
		key, _, _ = strings.Cut(key, "%2F") // a slash, escaped
	}
	return maphash.String(seed, key) % shards
}

// eachTable calls do with the table of each shard in turn, while the shard is locked.
func (m *Memory) eachTable(do func(*table)) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		do(&s.table)
		s.mu.Unlock()
	}
}

// walkChains is how many chains a walk visits at a time.
const walkChains = 256

// walk calls do with each chain of each table, while its shard is locked, but not for long: the chains of a
// large table are visited a few at a time. An entry that is there all the time is met, and may be met twice.
func (m *Memory) walk(do func(t *table, chain uint64)) {
	for i := range m.shards {
		s := &m.shards[i]
		for from, more := uint64(0), true; more; from += walkChains {
			s.mu.Lock()
			if from == 0 {
				s.table.walks++
			}
			to := min(from+walkChains, s.table.chains)
			for chain := from; chain < to; chain++ {
				do(&s.table, chain)
			}
			if more = to < s.table.chains; !more {
				s.table.walks--
			}
			s.mu.Unlock()
		}
	}
}

// lock locks a set of shards, in one order whatever the caller's, unless the store is
// closed.
func (m *Memory) lock(set uint64) error {
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].mu.Lock()
	}
	if m.closed.Load() {
		m.unlock(set)
		return ErrClosed
	}
	return nil
}

// lockNow locks a set of shards for a decision, and returns the time of the decision.
func (m *Memory) lockNow(set uint64) (now int64, err error) { return m.lockAt(set, m.clock()) }

// lockAt is lockNow with the time as it was just read. The clock is read before the shards are locked,
// so that they are locked for a shorter time. It is read again if a decision with a later time was made
// meanwhile. So time goes back only if the clock does.
func (m *Memory) lockAt(set uint64, now int64) (int64, error) {
	if err := m.lock(set); err != nil {
		return 0, err
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		if now < m.shards[bits.TrailingZeros64(rest)%shards].seen {
			now = m.clock()
			break
		}
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].seen = now
	}
	return now, nil
}

func (m *Memory) unlock(set uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)%shards].mu.Unlock()
	}
}

// known reports whether the entry of a key, whose shard is locked, is that in the table.
func (m *Memory) known(p *prepared) bool {
	return p.owner.Load() == m && p.entry != nil && p.entry.next != gone
}

// lookUp returns the entry of a key in the table of its shard, which is locked, or
// nil.
func (m *Memory) lookUp(p *prepared) *entry {
	if m.known(p) {
		return p.entry
	}
	e := m.shards[p.shard].table.find(p.hash, p.key)
	if e != nil && (p.owner.Load() == m || p.owner.CompareAndSwap(nil, m)) {
		p.entry = e
	}
	return e
}

// entryOf returns the entry of a key whose shard is locked. An entry that is not in
// the table is empty; keep adds it.
func (m *Memory) entryOf(p *prepared) *entry {
	if m.known(p) {
		return p.entry
	}
	if e := m.lookUp(p); e != nil {
		return e
	}
	if p.owner.Load() != m && !p.owner.CompareAndSwap(nil, m) {
		return &entry{key: p.key, next: gone}
	}
	if p.entry == nil {
		p.entry = &entry{key: p.key, next: gone}
	}
	p.entry.purse = purse{}
	return p.entry
}

// keep adds an entry to the table if it is not there and anything of its key is in use.
func (m *Memory) keep(p *prepared, e *entry, now int64) {
	if e.next == gone {
		m.shards[p.shard].table.keep(p.hash, e, now)
	}
}
