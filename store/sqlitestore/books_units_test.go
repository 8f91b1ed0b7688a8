package sqlitestore

import (
	"database/sql"
	"path/filepath"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// A file whose books an earlier version has made, without units beside tokens, gets the columns when it is opened. What
// it has booked stays, and so does what its journal has.
func TestBooksOfAnEarlierVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := books.Owner{Project: "p", Model: "m"}
	if err := inside(s).Book(t.Context(), []books.Entry{{Owner: owner, Amounts: books.Amounts{books.Requests: 1, books.Input: 7}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for u := books.Short; u < books.Units; u++ {
		if _, err := db.Exec("ALTER TABLE books DROP COLUMN " + u.String()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := inside(s).Book(t.Context(), []books.Entry{{Owner: owner, Amounts: books.Amounts{books.Requests: 1, books.Images: 3, books.PagesRead: 2}}}); err != nil {
		t.Fatal(err)
	}
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if want := (books.Amounts{books.Requests: 2, books.Input: 7, books.Images: 3, books.PagesRead: 2}); err != nil || sum.Total != want {
		t.Errorf("%v, %v; want %v", sum.Total, err, want)
	}
}
