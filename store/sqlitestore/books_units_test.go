package sqlitestore

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

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
	for u := books.Beside; u < books.Units; u++ {
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
	if err := inside(s).Book(t.Context(), []books.Entry{{Owner: owner, Amounts: books.Amounts{books.Requests: 1, books.Beside: 3, books.Beside + 5: 2}}}); err != nil {
		t.Fatal(err)
	}
	sum, err := inside(s).ReadBooks(t.Context(), books.Query{})
	if want := (books.Amounts{books.Requests: 2, books.Input: 7, books.Beside: 3, books.Beside + 5: 2}); err != nil || sum.Total != want {
		t.Errorf("%v, %v; want %v", sum.Total, err, want)
	}
}

// The books of a newer version have a unit more. This one books beside it, leaves it to a newer one to merge hours
// into days, and forgets what is too old all the same.
func TestBooksOfANewerVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	owner := books.Owner{Project: "p", Model: "m"}
	book := func() {
		t.Helper()
		err := inside(s).Book(t.Context(), []books.Entry{{Owner: owner, Amounts: books.Amounts{books.Requests: 1, books.Beside: 3}}})
		if err == nil {
			err = inside(s).TrimBooks(t.Context(), books.Retention{Days: 1000 * time.Hour}) // which folds the journal
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("ALTER TABLE books ADD COLUMN newer INTEGER NOT NULL DEFAULT 7"); err != nil {
		t.Fatal(err)
	}
	book()
	book()
	s.clock = func() int64 { return time.Now().AddDate(0, 1, 0).UnixNano() }
	book()
	var requests, images, newer, lines int64
	if err := db.QueryRow("SELECT sum(requests), sum(images), sum(newer), count(*) FROM books WHERE day = 0").Scan(&requests, &images, &newer, &lines); err != nil || requests != 3 || images != 9 || newer != 7*lines {
		t.Errorf("%d requests, %d images and %d of the newer unit on %d lines, %v", requests, images, newer, lines, err)
	}
	s.clock = func() int64 { return time.Now().AddDate(0, 3, 0).UnixNano() }
	book()
	if err := db.QueryRow("SELECT sum(requests) FROM books").Scan(&requests); err != nil || requests != 1 {
		t.Errorf("the books have %d requests, %v: want the last one alone", requests, err)
	}
}
