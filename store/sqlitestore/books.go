package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

var _ books.Keeper = internals{}

// booksSchema makes the tables of the books. A page is an hour, or a day whose hours were merged.
// The number of its lines is kept because to count them would take long.
var booksSchema = `
CREATE TABLE IF NOT EXISTS books (
	day     INTEGER NOT NULL, -- 0: the line is of an hour; 1: of a day
	at      INTEGER NOT NULL, -- when that began, in Unix seconds
	project TEXT NOT NULL,
	model   TEXT NOT NULL,
	key     TEXT NOT NULL,
` + unitColumns(func(name string, _ int) string { return "\t" + name + " INTEGER NOT NULL DEFAULT 0,\n" }) + `
	PRIMARY KEY (day, at, project, model, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS books_pages (
	day   INTEGER NOT NULL,
	at    INTEGER NOT NULL,
	lines INTEGER NOT NULL,
	PRIMARY KEY (day, at)
) STRICT, WITHOUT ROWID`

// addUnits adds the columns of units that a file lacks, because an earlier version has made its books.
func (s *Store) addUnits() error {
	for u := books.Beside; u < books.Units; u++ {
		var has bool
		err := s.conn.QueryRowContext(context.Background(), "SELECT count(*) > 0 FROM pragma_table_info('books') WHERE name = ?", u.String()).Scan(&has)
		if err == nil && !has {
			_, err = s.conn.ExecContext(context.Background(), "ALTER TABLE books ADD COLUMN "+u.String()+" INTEGER NOT NULL DEFAULT 0")
		}
		if err != nil {
			return s.describe(err)
		}
	}
	return nil
}

// firstUnit is the number of the first unit's parameter in a statement, after those of the line.
const firstUnit = 6

// unitColumns joins what format returns for the column of each unit, which gets the name of the column
// and the number of its parameter.
func unitColumns(format func(name string, parameter int) string) string {
	var all strings.Builder
	for u := range books.Units {
		all.WriteString(format(u.String(), firstUnit+int(u)))
	}
	return all.String()
}

const whereLine = " WHERE day = ?1 AND at = ?2 AND project = ?3 AND model = ?4 AND key = ?5"

// bookStatements are those that transactions of many calls use.
func (s *Store) bookStatements() []preparation {
	sums := unitColumns(func(name string, parameter int) string {
		return fmt.Sprintf(", %[1]s = min(%[1]s + ?%[2]d, %[3]d)", name, parameter, int64(books.MaxAmount))
	})
	values := unitColumns(func(_ string, parameter int) string { return fmt.Sprintf(", ?%d", parameter) })
	names := unitColumns(func(name string, _ int) string { return ", " + name })
	return []preparation{
		{&s.do.bookAdd, "UPDATE books SET " + strings.TrimPrefix(sums, ", ") + whereLine},
		{&s.do.bookFind, "SELECT 1 FROM books" + whereLine},
		{&s.do.bookInsert, "INSERT INTO books (day, at, project, model, key" + names + ") VALUES (?1, ?2, ?3, ?4, ?5" + values + ")"},
		{&s.do.pageFind, "SELECT lines FROM books_pages WHERE day = ?1 AND at = ?2"},
		{&s.do.pageAdd, "INSERT INTO books_pages VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET lines = lines + excluded.lines"},
	}
}

// SettleBooked implements [books.Keeper]. The entry is booked in the transaction of the settlement.
func (s internals) SettleBooked(ctx context.Context, r store.Receipt, actual []int64, e *books.Entry) error {
	if r == nil {
		return s.Book(ctx, []books.Entry{*e})
	}
	return s.settle(ctx, r, actual, e)
}

// Book implements [books.Keeper].
func (s internals) Book(ctx context.Context, entries []books.Entry) error {
	return s.submit(&operation{ctx: ctx, writes: true, step: func(b *batch) error {
		for i := range entries {
			b.book(&entries[i])
		}
		return nil
	}})
}

// book books an entry at the end of the transaction: see write.
func (b *batch) book(e *books.Entry) {
	clean := e.Clean()
	b.booked.Add(&clean, b.s.maxLines)
}

// page is an hour or a day of the books.
type page struct {
	day bool
	at  int64
}

// enter adds an entry to a page.
func (s *Store) enter(p page, e *books.Entry) error {
	if found, err := s.addTo(p, e); found || err != nil {
		return err
	}
	var lines int
	if err := s.do.pageFind.QueryRow(p.day, p.at).Scan(&lines); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s.describe(err)
	}
	var failed error
	placed := *e
	placed.Owner = books.Place(e.Owner, lines, s.maxLines, func(o books.Owner) bool {
		found, err := s.hasLine(p, o)
		failed = errors.Join(failed, err)
		return found
	})
	if failed != nil {
		return failed
	}
	if placed.Owner != e.Owner {
		if found, err := s.addTo(p, &placed); found || err != nil {
			return err
		}
	}
	if _, err := s.do.bookInsert.Exec(parameters(p, &placed)...); err != nil {
		return s.describe(err)
	}
	_, err := s.do.pageAdd.Exec(p.day, p.at, 1)
	return s.describe(err)
}

// addTo adds an entry to its line, if the page has that line.
func (s *Store) addTo(p page, e *books.Entry) (found bool, err error) {
	result, err := s.do.bookAdd.Exec(parameters(p, e)...)
	if err != nil {
		return false, s.describe(err)
	}
	n, err := result.RowsAffected()
	return n > 0, s.describe(err)
}

func (s *Store) hasLine(p page, o books.Owner) (bool, error) {
	var one int
	err := s.do.bookFind.QueryRow(p.day, p.at, o.Project, o.Model, o.Key).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, s.describe(err)
}

// parameters are those of an entry in statements.
func parameters(p page, e *books.Entry) []any {
	all := []any{p.day, p.at, e.Project, e.Model, e.Key}
	for _, n := range e.Amounts {
		all = append(all, n)
	}
	return all
}
