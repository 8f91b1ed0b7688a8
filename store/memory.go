package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/clock"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Memory is a [Store] in this process. Make one with [NewMemory]. It is fastest with charges that
// are prepared once and used often: see [Prepare].
type Memory struct {
	clock  func() int64
	closed atomic.Bool

	sweepAt atomic.Int64  // when the next shard is swept, by the clock
	turn    atomic.Uint64 // counts the shards that were swept; the one at turn modulo shards is being swept

	_      [96]byte // so that no shard shares a cache line with the fields above
	shards [shards]shard

	books    memoryBooks
	deposits deposits
}

// NewMemory returns an empty store. Its clock is monotonic: it follows the wall clock
// as of this call.
func NewMemory() *Memory { return NewMemoryAt(clock.New()) }

// Now returns the store's time, in Unix nanoseconds.
func (m memoryInternals) Now() int64 { return m.clock() }

// NewMemoryAt returns an empty store whose clock is the given function, which returns
// Unix nanoseconds: for tests and simulations.
func NewMemoryAt(clock func() int64) *Memory {
	return &Memory{clock: clock}
}

// Read is [Store]'s.
func (m *Memory) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	if err := check(ctx, nil); err != nil {
		return nil, 0, err
	}
	var locked uint64
	for _, key := range keys {
		locked |= 1 << shardOf(key)
	}
	now, err := m.lockNow(locked)
	if err != nil {
		return nil, 0, err
	}
	defer m.unlock(locked)
	accounts := make([]*limit.Account, len(keys))
	for i, key := range keys {
		var p purse
		if e := m.shards[shardOf(key)].table.find(hashOf(key), key); e != nil {
			p = e.purse
		}
		accounts[i] = clone(p.Account())
	}
	return accounts, now, nil
}

func clone(a *limit.Account) *limit.Account {
	bytes, _ := a.AppendBinary(nil)
	c := new(limit.Account)
	c.UnmarshalBinary(bytes)
	return c
}

// Keys is [Store]'s.
func (m *Memory) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if err := m.checkOpen(ctx); err != nil {
		return nil, err
	}
	m.walk(func(t *table, chain uint64) {
		for e := *t.chain(chain); e != nil; e = e.next {
			if strings.HasPrefix(e.key, prefix) {
				keys = append(keys, e.key)
			}
		}
	})
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// Reset is [Store]'s.
func (m *Memory) Reset(ctx context.Context, prefix string) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	m.walk(func(t *table, chain uint64) {
		t.forget(chain, func(e *entry) bool { return strings.HasPrefix(e.key, prefix) })
	})
	return nil
}

// Close is [Store]'s. It forgets everything.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.eachTable(func(t *table) { *t = table{} })
	return nil
}

// Len returns the number of keys in memory.
func (m *Memory) Len() (n int) {
	m.eachTable(func(t *table) { n += int(t.keys) })
	return n
}

func (m *Memory) checkOpen(ctx context.Context) error {
	if m.closed.Load() {
		return ErrClosed
	}
	return check(ctx, nil)
}

func check(ctx context.Context, charges []Charge) error {
	if err := ctx.Err(); err != nil {
		return notAsked(err)
	}
	return Validate(charges)
}

func notAsked(err error) error { return fmt.Errorf("ratelimit: not asked: %w", err) }

// Put replaces what a key has used by a copy of a, such as usage that was counted elsewhere.
func (m *Memory) Put(key string, a *limit.Account) error {
	p := &prepared{key: key, hash: hashOf(key), shard: shardOf(key)}
	if err := m.lock(1 << p.shard); err != nil {
		return err
	}
	e := m.entryOf(p)
	*e.purse.Account() = *clone(a)
	m.keep(p, e, m.clock())
	m.unlock(1 << p.shard)
	return nil
}

// Local reports that all users of the store are on this machine.
func (m *Memory) Local() bool { return true }
