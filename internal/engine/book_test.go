package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// Calls that are committed are booked with what they have used, or what was reserved where that is
// not known. Calls that are cancelled are not booked.
func TestBooked(t *testing.T) {
	onFile := func(t *testing.T) store.Store {
		s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "limits.db"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, open := range map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return store.NewMemory() },
		"SQLite": onFile,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			b := newBench(t, s)
			reserve := func(e books.Entry) *engine.Reservation {
				r := b.Unlimited(&engine.Call{Tokens: llm.Tokens{Input: 100, Output: 50, FreeInput: 10}, Dollars: 7000})
				r.Book(e)
				return r
			}
			entry := books.Entry{Owner: books.Owner{Project: "acme", Model: "m", Key: "k"}}
			entry.Amounts = books.Amounts{books.Requests: 1, books.Input: 5, books.Cached: 3, books.Output: 2}
			reserve(entry).CommitPriced(llm.Tokens{Input: 5, Output: 2}, 11)
			r := reserve(entry)
			r.Cancel()
			r.Commit(llm.Tokens{Input: 1})
			entry.Amounts[books.Input], entry.Amounts[books.Output] = -1, -1
			r = reserve(entry)
			r.Commit(llm.Tokens{Input: -1, Output: -1})
			r.Commit(llm.Tokens{Input: 1, Output: 1})
			b.Unlimited(new(engine.Call)).Commit(llm.Tokens{Input: 1000})

			sum, err := hidden.Of[books.Keeper](s).ReadBooks(t.Context(), books.Query{Project: "acme"})
			want := books.Amounts{books.Requests: 2, books.Input: 105, books.Cached: 6, books.Output: 52, books.Nanodollars: 7011}
			if err != nil || sum.Total != want {
				t.Errorf("%v, %v; want %v", sum, err, want)
			}
		})
	}
}

// A call whose settlement fails is booked when it is settled after all.
func TestBookedLater(t *testing.T) {
	s := &failingBooks{Memory: store.NewMemory(), fails: 1}
	b := newBench(t, s)
	r := b.Unlimited(new(engine.Call))
	r.Book(books.Entry{Amounts: books.Amounts{books.Requests: 1}})
	r.Commit(llm.Tokens{})
	if len(b.errs) != 1 {
		t.Errorf("errors: %v", b.errs)
	}
	b.Close()
	if s.booked != 1 {
		t.Errorf("booked %d times", s.booked)
	}
}

// failingBooks is a store, not known as one in memory, that does not settle at first.
type failingBooks struct {
	*store.Memory
	books.Keeper
	fails, booked int
}

func (s *failingBooks) SettleBooked(context.Context, store.Receipt, []int64, *books.Entry) error {
	if s.fails > 0 {
		s.fails--
		return errors.New("not yet")
	}
	s.booked++
	return nil
}
