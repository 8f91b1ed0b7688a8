package sqlitestore

import (
	"context"
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

type receipt struct {
	store    *Store
	charges  []store.Charge
	receipts []limit.Receipt
	settled  atomic.Bool
}

// Take is [store.Store]'s.
func (s *Store) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, nil, err
	}
	var receipts []limit.Receipt
	var decisions []limit.Decision
	err := s.enter(&op{ctx: ctx, writes: true, step: func(b *batch) error {
		accounts, err := b.of(charges)
		if err != nil {
			return err
		}
		receipts, decisions = store.Take(accounts, charges, b.now)
		for i, c := range charges {
			b.asked[i].taken, b.asked[i].used = true, true
			b.asked[i].changed = b.asked[i].changed || receipts != nil && c.N > 0
		}
		return nil
	}})
	if err != nil {
		return nil, nil, err
	}
	if receipts == nil {
		return nil, decisions, nil
	}
	return &receipt{store: s, charges: slices.Clone(charges), receipts: receipts}, decisions, nil
}

// Settle is [store.Store]'s. After an error the receipt may be settled again.
func (s *Store) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	held, ok := r.(*receipt)
	if !ok || held.store != s || len(actual) != len(held.charges) {
		return store.ErrReceipt
	}
	if s.closed.Load() {
		return store.ErrClosed
	}
	if !held.settled.CompareAndSwap(false, true) {
		return nil
	}
	err := s.enter(&op{ctx: ctx, writes: true, step: func(b *batch) error {
		accounts, err := b.of(held.charges)
		if err != nil {
			return err
		}
		store.Settle(accounts, held.charges, held.receipts, actual, b.now)
		for i, c := range held.charges {
			refunds := actual[i] >= 0 && actual[i] < c.N && b.asked[i].stored
			b.asked[i].used = true
			b.asked[i].changed = b.asked[i].changed || refunds || actual[i] > c.N
		}
		return nil
	}})
	if err != nil {
		held.settled.Store(false)
	}
	return err
}

// Peek is [store.Store]'s. It does not lock the file unless a take shares its
// transaction, and never writes.
func (s *Store) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, err
	}
	var decisions []limit.Decision
	err := s.enter(&op{ctx: ctx, step: func(b *batch) error {
		accounts, err := b.of(charges)
		if err != nil {
			return err
		}
		for i, a := range accounts {
			accounts[i] = clone(a) // which other limits may change, and the file would not know
		}
		decisions = store.Peek(accounts, charges, b.now)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return decisions, nil
}

// Read is [store.Store]'s.
func (s *Store) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	accounts := make([]*limit.Account, len(keys))
	var at int64
	err := s.enter(&op{ctx: ctx, step: func(b *batch) error {
		at = b.now
		for i, key := range keys {
			r, err := b.row(key)
			if err != nil {
				return err
			}
			accounts[i] = clone(&r.account)
		}
		return nil
	}})
	if err != nil {
		return nil, 0, err
	}
	return accounts, at, nil
}

func clone(a *limit.Account) *limit.Account {
	bytes, _ := a.AppendBinary(nil)
	c := new(limit.Account)
	c.UnmarshalBinary(bytes)
	return c
}

// Reset is [store.Store]'s.
func (s *Store) Reset(ctx context.Context, prefix string) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.Delete(prefix) })
}
