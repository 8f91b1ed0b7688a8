package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Memory is a [Store] in this process. Its clock is monotonic: it follows the
// wall clock as of when it was made. Make one with [NewMemory].
type Memory struct {
	seed   maphash.Seed
	clock  func() int64
	closed atomic.Bool
	shards [64]shard
}

// shard is the accounts of some of the keys.
type shard struct {
	mu       sync.Mutex
	accounts map[string]*limit.Account
	_        [48]byte // so that no two share a cache line
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	start := time.Now()
	wall := start.UnixNano()
	m := &Memory{seed: maphash.MakeSeed(), clock: func() int64 { return wall + int64(time.Since(start)) }}
	for i := range m.shards {
		m.shards[i].accounts = map[string]*limit.Account{}
	}
	return m
}

type memoryReceipt struct {
	store    *Memory
	charges  []Charge
	receipts []limit.Receipt
	settled  atomic.Bool
}

// Take is [Store]'s.
func (m *Memory) Take(ctx context.Context, charges []Charge) (Receipt, []limit.Decision, error) {
	if err := m.check(ctx, charges); err != nil {
		return nil, nil, err
	}
	held, err := m.lock(charges)
	if err != nil {
		return nil, nil, err
	}
	now := m.clock()
	receipts, decisions := Take(held.accounts, charges, now)
	if receipts != nil {
		held.keep(charges, now)
	}
	held.unlock()
	if receipts == nil {
		return nil, decisions, nil
	}
	return &memoryReceipt{store: m, charges: slices.Clone(charges), receipts: receipts}, decisions, nil
}

// Settle is [Store]'s.
func (m *Memory) Settle(ctx context.Context, r Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	receipt, ok := r.(*memoryReceipt)
	if !ok || receipt.store != m || len(actual) != len(receipt.charges) {
		return ErrReceipt
	}
	if !receipt.settled.CompareAndSwap(false, true) {
		return nil
	}
	held, err := m.lock(receipt.charges)
	if err != nil {
		return err
	}
	now := m.clock()
	Settle(held.accounts, receipt.charges, receipt.receipts, actual, now)
	held.keep(receipt.charges, now)
	held.unlock()
	return nil
}

// Peek is [Store]'s.
func (m *Memory) Peek(ctx context.Context, charges []Charge) ([]limit.Decision, error) {
	if err := m.check(ctx, charges); err != nil {
		return nil, err
	}
	held, err := m.lock(charges)
	if err != nil {
		return nil, err
	}
	decisions := Peek(held.accounts, charges, m.clock())
	held.unlock()
	return decisions, nil
}

// Read returns what each of the keys has used, and as of which time in Unix
// nanoseconds. That of a key which has used nothing is a zero account.
func (m *Memory) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	if err := m.check(ctx, nil); err != nil {
		return nil, 0, err
	}
	charges := make([]Charge, len(keys))
	for i, key := range keys {
		charges[i].Key = key
	}
	held, err := m.lock(charges)
	if err != nil {
		return nil, 0, err
	}
	defer held.unlock()
	accounts := make([]*limit.Account, len(keys))
	for i, account := range held.accounts {
		accounts[i] = clone(account)
	}
	return accounts, m.clock(), nil
}

func clone(a *limit.Account) *limit.Account {
	bytes, _ := a.AppendBinary(nil)
	c := new(limit.Account)
	c.UnmarshalBinary(bytes)
	return c
}

// Keys returns all keys that begin with prefix of which anything is stored, in
// order.
func (m *Memory) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	if m.closed.Load() {
		return nil, ErrClosed
	}
	if err := m.check(ctx, nil); err != nil {
		return nil, err
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for key := range s.accounts {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		s.mu.Unlock()
	}
	slices.Sort(keys)
	return keys, nil
}

// Reset is [Store]'s.
func (m *Memory) Reset(ctx context.Context, prefix string) error {
	if m.closed.Load() {
		return ErrClosed
	}
	if err := m.check(ctx, nil); err != nil {
		return err
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for key := range s.accounts {
			if strings.HasPrefix(key, prefix) {
				delete(s.accounts, key)
			}
		}
		s.mu.Unlock()
	}
	return nil
}

// Close forgets everything.
func (m *Memory) Close() error {
	m.closed.Store(true)
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		clear(s.accounts)
		s.mu.Unlock()
	}
	return nil
}

// Len returns how many keys are held in memory.
func (m *Memory) Len() (n int) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.accounts)
		s.mu.Unlock()
	}
	return n
}

func (m *Memory) check(ctx context.Context, charges []Charge) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not asked: %w", err)
	}
	return Validate(charges)
}

// held is the accounts of some charges, while their shards are locked.
type held struct {
	shards   []*shard // of each charge
	accounts []*limit.Account
	locked   []*shard // in the order in which they are locked, each once
}

// lock locks the shards of the charges' keys, in one order whatever theirs,
// unless the store is closed.
func (m *Memory) lock(charges []Charge) (h held, err error) {
	indexes := make([]int, 0, len(charges))
	for _, c := range charges {
		i := int(maphash.String(m.seed, c.Key) % uint64(len(m.shards)))
		indexes = append(indexes, i)
		h.shards = append(h.shards, &m.shards[i])
	}
	slices.Sort(indexes)
	for _, i := range slices.Compact(indexes) {
		m.shards[i].mu.Lock()
		h.locked = append(h.locked, &m.shards[i])
	}
	if m.closed.Load() {
		h.unlock()
		return held{}, ErrClosed
	}
	for i, c := range charges {
		account := h.shards[i].accounts[c.Key]
		if account == nil {
			account = new(limit.Account)
		}
		h.accounts = append(h.accounts, account)
	}
	return h, nil
}

// keep remembers the accounts, which may be new, and forgets a few that are
// full: at least as many as come, so that those in use are most of all.
func (h *held) keep(charges []Charge, now int64) {
	for i, c := range charges {
		s := h.shards[i]
		if s.accounts[c.Key] != nil {
			continue
		}
		s.accounts[c.Key] = h.accounts[i]
		s.forget(now)
	}
}

// forget looks at a few accounts, wherever the map begins this time.
func (s *shard) forget(now int64) {
	looked := 0
	for key, account := range s.accounts {
		if now >= account.FullAt() {
			delete(s.accounts, key)
		}
		if looked++; looked == 3 {
			return
		}
	}
}

func (h *held) unlock() {
	for _, s := range h.locked {
		s.mu.Unlock()
	}
}
