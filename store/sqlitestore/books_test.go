package sqlitestore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store/internal/bookstest"
)

func TestBooks(t *testing.T) {
	bookstest.Run(t, newBookStores)
}

func TestDeposits(t *testing.T) {
	bookstest.RunDeposits(t, newBookStores)
}

func newBookStores(t *testing.T, clock func() int64, maxLines int) func() bookstest.Store {
	path := filepath.Join(t.TempDir(), "limits.db")
	return func() bookstest.Store {
		s := openAt(t, path)
		s.clock, s.uptime, s.maxLines = clock, nil, maxLines
		return inside(s)
	}
}

func bookedTotal(t testing.TB, s *Store) books.Amounts {
	t.Helper()
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return sum.Total
}

// settleMany takes and settles without end, and prints a line for each call that is settled.
func settleMany(s *Store, _ string) error {
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for {
				r, _, err := s.Take(context.Background(), charge("key", 1, perDay(1<<40)))
				if err != nil {
					panic(err)
				}
				e := books.Entry{Owner: books.Owner{Project: "acme", Model: "model"}, Amounts: books.Amounts{books.Requests: 1, books.Input: 3}}
				if err := inside(s).SettleBooked(context.Background(), r, []int64{3}, &e); err != nil {
					panic(err)
				}
				fmt.Println("settled")
			}
		})
	}
	wg.Wait()
	return nil
}

func init() { children["settle"] = settleMany }

// A process that is killed loses nothing that was settled: the books have it, and exactly what the
// account has.
func TestBooksOfAProcessThatIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	p := start(t, "settle", path)
	p.begin("")
	settled := p.count(500)
	p.Process.Kill()
	p.Wait()
	settled += p.count(1 << 30) // what it has printed before it died
	s := openAt(t, path)
	got := bookedTotal(t, s)
	accounts, now, err := s.Read(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	open := int64(goroutines) // calls that were not settled yet are charged 1, the others 3
	used := accounts[0].Check(perDay(1<<40), now, 0).Used
	if got[books.Requests] < settled || got[books.Input] != 3*got[books.Requests] || used < got[books.Input] || used > got[books.Input]+open {
		t.Errorf("%d calls were settled, %v are booked, and %d is used", settled, got, used)
	}
}

// If a transaction fails, its calls are not booked; they are when they are settled again.
func TestBooksOfATransactionThatFails(t *testing.T) {
	s := open(t)
	r := take(t, s, charge("key", 1, perDay(10)))
	e := books.Entry{Owner: books.Owner{Project: "acme"}, Amounts: books.Amounts{books.Requests: 1}}
	s.busyTimeout = 20 * time.Millisecond
	unlock := lock(t, s)
	if err := inside(s).SettleBooked(t.Context(), r, []int64{2}, &e); err == nil {
		t.Error("no error while the file is locked")
	}
	unlock()
	if got := bookedTotal(t, s); got != (books.Amounts{}) {
		t.Errorf("%v is booked", got)
	}
	if err := inside(s).SettleBooked(t.Context(), r, []int64{2}, &e); err != nil {
		t.Fatal(err)
	}
	update(t, s, "PRAGMA max_page_count = "+query(t, s, "PRAGMA page_count"))
	full := make([]books.Entry, 1000)
	for i := range full {
		full[i].Project = fmt.Sprint(i, strings.Repeat("x", 200))
	}
	if err := inside(s).Book(t.Context(), full); err == nil {
		t.Error("no error while the disk is full")
	}
	update(t, s, "PRAGMA max_page_count = 1000000")
	if err := inside(s).Book(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if got := bookedTotal(t, s); got != e.Amounts {
		t.Errorf("%v is booked; want %v", got, e.Amounts)
	}
	if lines := query(t, s, "SELECT sum(lines) FROM books_pages"); lines != "1" {
		t.Errorf("%s lines are counted", lines)
	}
}

// A reset of what was used leaves the books alone.
func TestBooksStay(t *testing.T) {
	s := open(t)
	if err := inside(s).Book(t.Context(), []books.Entry{{Amounts: books.Amounts{books.Denied: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if got := bookedTotal(t, s); got[books.Denied] != 1 {
		t.Errorf("%v is booked", got)
	}
}
