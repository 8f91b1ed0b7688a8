package store

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// Bookkeeper is a store that also keeps the books: what calls have used, by hour and day. All
// stores of this module are bookkeepers.
type Bookkeeper interface {
	// SettleBooked is Settle, and books an entry in the hour of the store's clock. The entry is in
	// the books once the take is settled, whatever happens to this process: it is written before the
	// settlement or together with it. Only the first call with a receipt does anything; after an
	// error, another call may follow with the same amounts and the same entry. Without a receipt,
	// SettleBooked only books.
	SettleBooked(ctx context.Context, r Receipt, actual []int64, e *books.Entry) error

	// Book books entries that belong to no take, such as calls that were denied.
	Book(ctx context.Context, entries []books.Entry) error

	// ReadBooks adds up what a query asks for.
	ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error)

	// TrimBooks merges hours that are older than the retention into days, and drops days that are
	// older than it.
	TrimBooks(ctx context.Context, r books.Retention) error
}

var _ Bookkeeper = (*Memory)(nil)

// memoryBooks are the books of a store in memory.
type memoryBooks struct {
	pages    books.Pages
	maxLines int // 0: books.MaxLines; tests set a smaller number
}

func (b *memoryBooks) most() int {
	if b.maxLines > 0 {
		return b.maxLines
	}
	return books.MaxLines
}

// SettleBooked is [Bookkeeper]'s.
func (m *Memory) SettleBooked(ctx context.Context, r Receipt, actual []int64, e *books.Entry) error {
	if r == nil {
		return m.Book(ctx, []books.Entry{*e})
	}
	settled, err := m.settle(r, actual)
	if settled {
		m.enter(*e)
	}
	return err
}

// Book is [Bookkeeper]'s.
func (m *Memory) Book(ctx context.Context, entries []books.Entry) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	for _, e := range entries {
		m.enter(e)
	}
	return nil
}

// enter is Book of one entry. It allocates nothing, unless the entry begins a line.
func (m *Memory) enter(e books.Entry) {
	e = e.Clean()
	m.books.pages.Add(m.clock(), &e, m.books.most())
}

// ReadBooks is [Bookkeeper]'s. Calls go on while it reads, and those that are settled meanwhile count or
// not.
func (m *Memory) ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error) {
	if err := m.checkOpen(ctx); err != nil {
		return nil, err
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	sum := books.NewSum(q)
	for line := range m.books.pages.Each(&q) {
		sum.Add(line)
	}
	return sum.Summary()
}

// TrimBooks is [Bookkeeper]'s.
func (m *Memory) TrimBooks(ctx context.Context, r books.Retention) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	m.books.pages.Trim(m.clock(), r, m.books.most())
	return nil
}
