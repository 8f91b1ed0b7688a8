package store

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

var _ books.Keeper = memoryInternals{}

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

// SettleBooked is [books.Keeper]'s.
func (m memoryInternals) SettleBooked(ctx context.Context, r Receipt, actual []int64, e *books.Entry) error {
	if r == nil {
		return m.Book(ctx, []books.Entry{*e})
	}
	settled, err := m.settle(r, actual)
	if settled {
		m.enter(*e)
	}
	return err
}

// Book is [books.Keeper]'s.
func (m memoryInternals) Book(ctx context.Context, entries []books.Entry) error {
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

// ReadBooks is [books.Keeper]'s. Calls go on while it reads, and those that are settled meanwhile count or
// not.
func (m memoryInternals) ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error) {
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

// TrimBooks is [books.Keeper]'s.
func (m memoryInternals) TrimBooks(ctx context.Context, r books.Retention) error {
	if err := m.checkOpen(ctx); err != nil {
		return err
	}
	m.books.pages.Trim(m.clock(), r, m.books.most())
	return nil
}
