package redisstore

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// ledgers are the ledgers of all keys that were used while Redis was lost and for which it has not
// been charged. A ledger whose account is full again need not be charged and is forgotten, as in
// [store.Memory]: so there are only as many ledgers as keys in use.
type ledgers struct {
	clock func() int64 // read once a call, under the lock
	count atomic.Int64 // the number of ledgers

	mu       sync.Mutex
	byKey    map[string]*ledger
	kept     map[string]*ledger // ledgers that Redis was charged for, until all nodes have recovered: see recovery
	observed *observations
	share    bool // the loss mode is Share: a ledger starts from what Redis last said
}

func newLedgers(clock func() int64, share bool) *ledgers {
	return &ledgers{
		clock: clock, byKey: map[string]*ledger{}, kept: map[string]*ledger{}, observed: newObservations(), share: share,
	}
}

// beginCall records that Redis is about to be asked for charges, to take them or to peek. It must be
// called before the check whether the keys have ledgers, so that a ledger that is begun later counts
// the charges. endCall must follow.
func (b *ledgers) beginCall(charges []store.Charge, take bool) []pendingTake {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.observed.beginTake(charges, take)
}

// endCall records Redis's decisions, if it has answered, and whether it has granted the charges. If
// Redis has not answered, it may have granted them, but no caller has passed because of that.
func (b *ledgers) endCall(charges []store.Charge, pending []pendingTake, decisions []limit.Decision, granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	b.observed.record(charges, pending, decisions, now)
	for i := range pending {
		if q := &pending[i]; q.ledger != nil {
			q.ledger.resolve(q, granted, now)
		}
	}
}

// recordDebts records what takes from Redis have used beyond what was taken, after Redis was charged for it.
func (b *ledgers) recordDebts(r store.Receipt, actual []int64) {
	own, ok := r.(*receipt)
	if !ok {
		return
	}
	for i, t := range own.takes {
		if actual[i] > t.N {
			b.mu.Lock()
			b.observed.recordDebt(&t.charge, actual[i]-t.N, b.clock())
			b.mu.Unlock()
		}
	}
}

// ledger returns the ledger of a key, or a new one. A new one is not stored yet.
func (b *ledgers) ledger(key string, p share, now int64) (g *ledger, isNew bool) {
	if g = b.byKey[key]; g == nil {
		g = b.kept[key]
	}
	if g == nil {
		return b.newLedger(key, p, now), true
	}
	return g, false
}

// dropKept forgets the ledgers that were kept for a recovery.
func (b *ledgers) dropKept() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.kept)
}

// newLedger returns a ledger that starts from what Redis last said about the key. The ledger is not
// stored yet.
func (b *ledgers) newLedger(key string, p share, now int64) *ledger {
	g := &ledger{key: strings.Clone(key), paying: make(chan struct{}, 1)} // the ledger may outlive the call
	if b.share {
		b.observed.seed(g, p, now)
	}
	return g
}

// add stores a ledger. It also examines three others, and removes those that are full again, so that
// these do not accumulate.
func (b *ledgers) add(g *ledger, now int64) {
	b.byKey[g.key] = g
	g.removed, g.paid = false, false
	delete(b.kept, g.key)
	b.count.Add(1)
	examined := 0
	for _, other := range b.byKey { // in random order
		if now >= other.account.FullAt() && other.bill == nil && len(other.paying) == 0 {
			b.remove(other)
		}
		examined++
		if examined == 3 {
			return
		}
	}
}

func (b *ledgers) remove(g *ledger) {
	g.removed = true
	delete(b.byKey, g.key)
	b.count.Add(-1)
}

// find returns the ledger of a key, or nil.
func (b *ledgers) find(key string) *ledger {
	if b.count.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byKey[key]
}

// all returns all ledgers.
func (b *ledgers) all() []*ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.byKey))
}

// update changes g under the lock.
func (b *ledgers) update(g *ledger, change func(g *ledger)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(g)
}

// read returns a copy of the account of a key at this node.
func (b *ledgers) read(key string, p share) *limit.Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	g, _ := b.ledger(key, p, now)
	bytes, _ := g.account.AppendBinary(nil)
	account := new(limit.Account)
	account.UnmarshalBinary(bytes)
	account.Fit(g.limits, now)
	return account
}

// keys returns all keys that begin with prefix and of which anything is in use, in order.
func (b *ledgers) keys(prefix string) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key := range b.byKey {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	if b.share {
		keys = b.observed.appendKeys(keys, prefix, b.clock())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// reset forgets all keys that begin with prefix, and what Redis said about them.
func (b *ledgers) reset(prefix string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, g := range b.byKey {
		if strings.HasPrefix(key, prefix) {
			b.remove(g)
		}
	}
	maps.DeleteFunc(b.kept, func(key string, _ *ledger) bool { return strings.HasPrefix(key, prefix) })
	b.observed.reset(prefix)
}
