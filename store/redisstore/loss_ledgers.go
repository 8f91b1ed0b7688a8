package redisstore

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// ledgers are the ledgers of all keys that were used while Redis was lost and for which it has not
// been charged. A ledger whose account is full again owes nothing and is forgotten, as in
// [store.Memory]: so there are as many as keys in use.
type ledgers struct {
	seed     maphash.Seed
	clock    func() int64  // read once a call, under its locks
	observed *observations // nil: nothing
	count    atomic.Int64  // of ledgers, and of calls that may be about to begin some
	shards   [64]ledgerShard
}

// ledgerShard has the ledgers of some of the keys.
type ledgerShard struct {
	mu      sync.Mutex
	ledgers map[string]*ledger
	_       [48]byte // so that no two share a cache line
}

func newLedgers(clock func() int64, k *observations) *ledgers {
	b := &ledgers{seed: maphash.MakeSeed(), clock: clock, observed: k}
	for i := range b.shards {
		b.shards[i].ledgers = map[string]*ledger{}
	}
	return b
}

func (b *ledgers) index(key string) int {
	return int(maphash.String(b.seed, key) % uint64(len(b.shards)))
}

func (b *ledgers) shard(key string) *ledgerShard { return &b.shards[b.index(key)] }

// begin returns a new ledger, which starts from what is known about Redis.
func (b *ledgers) begin(key string, p share, now int64) *ledger {
	g := &ledger{key: strings.Clone(key)} // the ledger may outlive the call
	if b.observed != nil {
		b.observed.seed(g, p, now)
	}
	return g
}

// sweepSome checks a few ledgers, in the random order of the map, and removes those that are full
// again.
func (b *ledgers) sweepSome(s *ledgerShard, now int64) {
	looked := 0
	for _, g := range s.ledgers {
		if now >= g.account.FullAt() && g.bill == nil && g.payment == nil {
			b.remove(s, g)
		}
		if looked++; looked == 3 {
			return
		}
	}
}

// remove removes a ledger. Its shard is locked.
func (b *ledgers) remove(s *ledgerShard, g *ledger) {
	g.gone = true
	delete(s.ledgers, g.key)
	b.count.Add(-1)
}

// resolve records, in ledgers that were begun in the meantime, whether Redis has granted pending
// takes.
func (b *ledgers) resolve(pending []pendingTake, granted bool) {
	for i := range pending {
		if q := &pending[i]; q.ledger != nil {
			b.update(q.ledger, func(g *ledger) { g.resolve(q, granted, b.clock()) })
		}
	}
}

// find returns the ledger of a key, or nil.
func (b *ledgers) find(key string) *ledger {
	if b.count.Load() == 0 {
		return nil
	}
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledgers[key]
}

// all returns all ledgers.
func (b *ledgers) all() (all []*ledger) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for _, g := range s.ledgers {
			all = append(all, g)
		}
		s.mu.Unlock()
	}
	return all
}

// read returns a copy of the account of a key at this node.
func (b *ledgers) read(key string, p share) *limit.Account {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.clock()
	g := s.ledgers[key]
	if g == nil {
		g = b.begin(key, p, now)
	}
	bytes, _ := g.account.AppendBinary(nil)
	account := new(limit.Account)
	account.UnmarshalBinary(bytes)
	account.Fit(g.limits, now)
	return account
}

// keys returns all keys that begin with prefix and of which anything is in use, in order.
func (b *ledgers) keys(prefix string) (keys []string) {
	for _, g := range b.all() {
		if strings.HasPrefix(g.key, prefix) {
			keys = append(keys, g.key)
		}
	}
	if b.observed != nil {
		b.observed.keys(prefix, b.clock(), func(key string) { keys = append(keys, key) })
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// reset forgets all keys that begin with prefix, and what Redis said about them.
func (b *ledgers) reset(prefix string) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for _, g := range s.ledgers {
			if strings.HasPrefix(g.key, prefix) {
				b.remove(s, g)
			}
		}
		s.mu.Unlock()
	}
	if b.observed != nil {
		b.observed.reset(prefix)
	}
}
