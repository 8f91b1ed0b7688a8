package sqlitestore

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

type receipt struct {
	store    *Store
	charges  []store.Charge
	receipts []limit.Receipt
	settled  atomic.Bool
}

// Take implements [store.Store].
func (s *Store) Take(ctx context.Context, charges []store.Charge) (store.Receipt, []limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, nil, err
	}
	var receipts []limit.Receipt
	var decisions []limit.Decision
	err := s.submit(&operation{ctx: ctx, writes: true, step: func(b *batch) error {
		asked, err := b.accountsOf(charges)
		if err != nil {
			return err
		}
		receipts, decisions = accounts.Take(asked, b.now)
		for i, c := range charges {
			b.stepRows[i].dirty = true
			b.stepRows[i].changed = b.stepRows[i].changed || receipts != nil && c.N > 0
		}
		return nil
	}})
	if err != nil {
		return nil, nil, err
	}
	if receipts == nil {
		return nil, decisions, nil
	}
	s.unsettled.Add(1)
	return &receipt{store: s, charges: slices.Clone(charges), receipts: receipts}, decisions, nil
}

// Settle implements [store.Store]. After an error the receipt may be settled again.
func (s *Store) Settle(ctx context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	return s.settle(ctx, r, actual, nil)
}

// settle settles a take, and books an entry in the same transaction, unless it is nil.
func (s *Store) settle(ctx context.Context, r store.Receipt, actual []int64, e *books.Entry) error {
	own, err := s.own(r, actual)
	if own == nil {
		return err
	}
	err = s.submit(&operation{ctx: ctx, writes: true, step: own.settlement(actual, e)})
	if err != nil {
		own.reopen()
	}
	return err
}

// SettleLater implements [accounts.Later].
func (s internals) SettleLater(r store.Receipt, actual []int64, e *books.Entry, done func(error)) {
	if r == nil {
		s.submitLater(&operation{writes: true, done: done, step: func(b *batch) error {
			b.book(e)
			return nil
		}})
		return
	}
	own, err := s.own(r, actual)
	if own == nil {
		done(err)
		return
	}
	o := &operation{writes: true, step: own.settlement(actual, e)}
	o.done = func(err error) {
		if err != nil {
			own.reopen()
		}
		done(err)
	}
	s.submitLater(o)
}

// AwaitSettled implements [accounts.Later].
func (s internals) AwaitSettled() {
	s.submit(&operation{ctx: context.Background(), step: func(*batch) error { return nil }})
}

// own returns the receipt of a take of this store that is settled for the first time, and marks it as settled. It is nil
// if there is nothing to settle, or with an error.
func (s *Store) own(r store.Receipt, actual []int64) (*receipt, error) {
	own, ok := r.(*receipt)
	switch {
	case !ok || own.store != s || len(actual) != len(own.charges):
		return nil, store.ErrReceipt
	case s.closed.Load():
		return nil, store.ErrClosed
	case !own.settled.CompareAndSwap(false, true):
		return nil, nil
	}
	s.unsettled.Add(-1)
	return own, nil
}

// reopen marks a receipt as not settled, because its settlement has failed.
func (own *receipt) reopen() {
	own.store.unsettled.Add(1)
	own.settled.Store(false)
}

// Renew implements [accounts.Renewer].
func (s internals) Renew(ctx context.Context, r store.Receipt, places []int) (store.Receipt, error) {
	own, ok := r.(*receipt)
	if !ok || own.store != s.Store {
		return nil, nil
	}
	next := &receipt{store: s.Store}
	for _, i := range places {
		next.charges = append(next.charges, own.charges[i])
	}
	err := s.submit(&operation{ctx: ctx, writes: true, step: func(b *batch) error {
		asked, err := b.accountsOf(next.charges)
		if err != nil {
			return err
		}
		next.receipts = nil
		for k, c := range asked {
			c.Settle(c.Limits, own.receipts[places[k]], b.now, 0)
			next.receipts = append(next.receipts, c.Take(c.Limits, b.now, c.N))
			b.stepRows[k].dirty, b.stepRows[k].changed = true, true
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	s.unsettled.Add(1)
	return next, nil
}

// settlement returns the step that settles a take, and books an entry unless it is nil.
func (own *receipt) settlement(actual []int64, e *books.Entry) func(*batch) error {
	return func(b *batch) error {
		taken, err := b.accountsOf(own.charges)
		if err != nil {
			return err
		}
		b.settle(taken, own.charges, own.receipts, actual)
		if e != nil {
			b.book(e)
		}
		return nil
	}
}

// settle corrects charges, whose accounts the step has just got, to the actual amounts.
func (b *batch) settle(taken []accounts.Charge, charges []store.Charge, receipts []limit.Receipt, actual []int64) {
	accounts.Settle(taken, receipts, actual, b.now)
	for i, c := range charges {
		settles := actual[i] >= 0 && actual[i] != c.N
		b.stepRows[i].dirty = b.stepRows[i].dirty || settles
		b.stepRows[i].changed = b.stepRows[i].changed || settles && (b.stepRows[i].stored || actual[i] > c.N)
	}
}

// Peek implements [store.Store]. It does not lock the file unless it shares its transaction with a
// take, and never writes.
func (s *Store) Peek(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	if err := store.Validate(charges); err != nil {
		return nil, err
	}
	var decisions []limit.Decision
	err := s.submit(&operation{ctx: ctx, step: func(b *batch) error {
		asked, err := b.accountsOf(charges)
		if err != nil {
			return err
		}
		for i := range asked {
			asked[i].Account = clone(asked[i].Account) // a peek may change an account, which must not reach the cache
		}
		decisions = accounts.Peek(asked, b.now)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return decisions, nil
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	all := make([]*limit.Account, len(keys))
	var at int64
	err := s.submit(&operation{ctx: ctx, step: func(b *batch) error {
		at = b.now
		for i, key := range keys {
			r, err := b.row(key)
			if err != nil {
				return err
			}
			all[i] = clone(&r.account)
		}
		return nil
	}})
	if err != nil {
		return nil, 0, err
	}
	return all, at, nil
}

func clone(a *limit.Account) *limit.Account {
	bytes, _ := a.AppendBinary(nil)
	c := new(limit.Account)
	c.UnmarshalBinary(bytes)
	return c
}

// Keys implements [store.Store].
func (s *Store) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = s.submit(&operation{ctx: ctx, step: func(b *batch) (err error) {
		keys, err = (&tx{s: s}).Keys(prefix)
		for key, r := range b.rows {
			if r.unfolded && strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		return err
	}})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, prefix string) error {
	return s.update(ctx, func(tx transaction.Tx) error { return tx.Delete(prefix) })
}
