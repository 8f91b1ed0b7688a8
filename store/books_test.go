package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/internal/bookstest"
)

func TestBooksInMemory(t *testing.T) {
	bookstest.Run(t, newBooksInMemory)
}

func TestDepositsInMemory(t *testing.T) {
	bookstest.RunDeposits(t, newBooksInMemory)
}

func newBooksInMemory(t *testing.T, clock func() int64, maxLines int) func() bookstest.Store {
	m := store.NewMemoryAt(clock)
	store.SetMaxLines(m, maxLines)
	return func() bookstest.Store { return hidden.Of[bookstest.Store](m) }
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

// While somebody reads the books, calls are settled, and others read.
func TestCallsGoOnWhileBooksAreRead(t *testing.T) {
	const lines = 5000
	m := store.NewMemory()
	e := books.Entry{Owner: books.Owner{Model: "m"}, Amounts: books.Amounts{books.Requests: 1}}
	for i := range lines {
		e.Project = fmt.Sprint("p", i)
		m.Enter(e)
	}
	seen := 0
	sum, err := hidden.Of[books.Keeper](m).ReadBooks(t.Context(), books.Query{OfModel: func(string) bool {
		seen++
		if seen%1000 == 0 {
			m.Enter(e)
			if _, err := hidden.Of[books.Keeper](m).ReadBooks(t.Context(), books.Query{Project: "p1"}); err != nil {
				t.Error(err)
			}
		}
		return true
	}})
	if err != nil || sum.Total[books.Requests] < lines || sum.Total[books.Requests] > lines+5 {
		t.Errorf("%+v, %v", sum.Total, err)
	}
}

// Lines that are moved to their day while somebody reads are counted once.
func TestBooksAreTrimmedWhileTheyAreRead(t *testing.T) {
	const lines = 3000
	now := atomic.Int64{}
	now.Store(time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC).UnixNano())
	m := store.NewMemoryAt(now.Load)
	for i := range lines {
		m.Enter(books.Entry{Owner: books.Owner{Project: fmt.Sprint("p", i)}, Amounts: books.Amounts{books.Requests: 1}})
	}
	now.Add(int64(48 * time.Hour))
	var all sync.WaitGroup
	all.Go(func() {
		if err := hidden.Of[books.Keeper](m).TrimBooks(t.Context(), books.Retention{Hours: time.Hour, Days: 1000 * time.Hour}); err != nil {
			t.Error(err)
		}
	})
	for range 20 {
		sum, err := hidden.Of[books.Keeper](m).ReadBooks(t.Context(), books.Query{})
		if err != nil || sum.Total[books.Requests] != lines {
			t.Errorf("%+v, %v", sum.Total, err)
		}
	}
	all.Wait()
}
