package store

import (
	"context"
	"slices"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
)

var _ accounts.Depository = memoryInternals{}

// deposits are those of a store in memory.
type deposits struct {
	mu     sync.Mutex
	byID   map[string]*deposit
	byName map[string]*deposit
}

type deposit struct {
	id, name string // name may be empty
	receipt  Receipt
	note     []byte
	at       int64
}

// Deposit is [accounts.Depository]'s.
func (m memoryInternals) Deposit(ctx context.Context, id string, r Receipt, note []byte) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	if own, ok := r.(*memoryReceipt); r != nil && (!ok || own.store != m.Memory) {
		return ErrReceipt
	}
	d := &m.deposits
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[id] != nil {
		return accounts.ErrDeposited
	}
	if d.byID == nil {
		d.byID, d.byName = map[string]*deposit{}, map[string]*deposit{}
	}
	d.byID[id] = &deposit{id: id, receipt: r, note: slices.Clone(note), at: m.clock()}
	return nil
}

// NameDeposit is [accounts.Depository]'s.
func (m memoryInternals) NameDeposit(ctx context.Context, id, name string) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	d := &m.deposits
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept := d.byID[id]; kept != nil {
		delete(d.byName, kept.name)
		kept.name = name
		d.byName[name] = kept
	}
	return nil
}

// FindDeposit is [accounts.Depository]'s.
func (m memoryInternals) FindDeposit(ctx context.Context, name string) (string, []byte, error) {
	if err := m.checkOpen(ctx); err != nil {
		return "", nil, err
	}
	d := &m.deposits
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.byID[name]
	if kept == nil {
		kept = d.byName[name]
	}
	if kept == nil {
		return "", nil, nil
	}
	return kept.id, slices.Clone(kept.note), nil
}

// take removes a deposit with so many charges, and returns it, or nil if there is none.
func (d *deposits) take(id string, charges int) (*deposit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.byID[id]
	if kept == nil {
		return nil, nil
	}
	if kept.charges() != charges {
		return nil, ErrReceipt
	}
	d.remove(kept)
	return kept, nil
}

func (d *deposits) remove(kept *deposit) {
	delete(d.byID, kept.id)
	delete(d.byName, kept.name)
}

// charges returns how many charges the take has.
func (d *deposit) charges() int {
	if r, ok := d.receipt.(*memoryReceipt); ok {
		return len(r.taken)
	}
	return 0
}

// SettleDeposit is [accounts.Depository]'s.
func (m memoryInternals) SettleDeposit(ctx context.Context, id string, actual []int64, e *books.Entry) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	kept, err := m.deposits.take(id, len(actual))
	switch {
	case kept == nil || kept.receipt == nil && e == nil:
		return err
	case e == nil:
		return m.Settle(ctx, kept.receipt, actual)
	}
	return m.SettleBooked(ctx, kept.receipt, actual, e)
}

// DropDeposit is [accounts.Depository]'s.
func (m memoryInternals) DropDeposit(ctx context.Context, id string) error {
	m.deposits.mu.Lock()
	defer m.deposits.mu.Unlock()
	if kept := m.deposits.byID[id]; kept != nil {
		m.deposits.remove(kept)
	}
	return m.checkOpen(ctx)
}

// DueDeposits is [accounts.Depository]'s.
func (m memoryInternals) DueDeposits(ctx context.Context, before int64, most int) (ids []string, err error) {
	if err := m.checkOpen(ctx); err != nil {
		return nil, err
	}
	d := &m.deposits
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := make([]*deposit, 0, len(d.byID))
	for _, kept := range d.byID {
		oldest = append(oldest, kept)
	}
	slices.SortFunc(oldest, func(a, b *deposit) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i, kept := range oldest {
		if kept.at < before || i < len(oldest)-most {
			ids = append(ids, kept.id)
		}
	}
	return ids, nil
}
