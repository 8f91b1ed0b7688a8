package store_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

func TestBooksInMemory(t *testing.T) {
	storetest.RunBooks(t, newBooksInMemory)
}

func TestDepositsInMemory(t *testing.T) {
	storetest.RunDeposits(t, newBooksInMemory)
}

func newBooksInMemory(t *testing.T, clock func() int64, maxLines int) func() storetest.BookStore {
	m := store.NewMemoryAt(clock)
	store.SetMaxLines(m, maxLines)
	return func() storetest.BookStore { return m }
}

func BenchmarkEnter(b *testing.B) {
	m := store.NewMemory()
	e := books.Entry{Owner: books.Owner{Project: "acme/search", Model: "openai/gpt-6-astra", Key: "ab3x5qk7zt"}, Amounts: books.Amounts{books.Requests: 1, books.Input: 900}}
	b.ReportAllocs()
	for b.Loop() {
		m.Enter(e)
	}
}

// An entry on a line that exists allocates nothing.
func TestEnterAllocatesNothing(t *testing.T) {
	m := store.NewMemory()
	e := books.Entry{Owner: books.Owner{Project: "acme", Model: "m"}, Amounts: books.Amounts{books.Requests: 1}}
	m.Enter(e)
	if n := testing.AllocsPerRun(100, func() { m.Enter(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
