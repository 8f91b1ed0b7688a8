package sqlitestore

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// trimAtOnce is how many lines are moved in one transaction, so that decisions do not wait for long.
const trimAtOnce = 1000

// TrimBooks implements [books.Keeper].
func (s internals) TrimBooks(ctx context.Context, r books.Retention) error {
	if err := s.foldNow(ctx); err != nil {
		return err
	}
	newer, err := s.hasNewerUnits(ctx)
	if err != nil {
		return err
	}
	hours, days := r.Cut(s.clock())
	all, err := s.pages(ctx, &books.Query{Until: max(hours, days)})
	if err != nil {
		return err
	}
	for p := range all {
		switch {
		case p.at < days:
			err = s.dropPage(ctx, p)
		case !p.day && p.at < hours && !newer:
			err = s.mergeHour(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasNewerUnits reports whether the books have units that this version does not know: then a newer process merges hours
// into days, since to move a line would lose these.
func (s *Store) hasNewerUnits(ctx context.Context) (newer bool, err error) {
	err = s.submit(&operation{ctx: ctx, step: func(*batch) error {
		return s.describe(s.conn.QueryRowContext(ctx, "SELECT count(*) > ? FROM pragma_table_info('books')", firstUnit-1+int(books.Units)).Scan(&newer))
	}})
	return newer, err
}

func (s *Store) dropPage(ctx context.Context, p page) error {
	return s.update(ctx, func(tx transaction.Tx) error {
		if _, err := tx.Exec("DELETE FROM books WHERE day = ? AND at = ?", p.day, p.at); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM books_pages WHERE day = ? AND at = ?", p.day, p.at)
		return err
	})
}

// mergeHour moves all lines of an hour to its day. Another process may do the same: each line is moved
// in one transaction.
func (s *Store) mergeHour(ctx context.Context, hour page) error {
	for more := true; more; {
		err := s.update(ctx, func(tx transaction.Tx) (err error) {
			more, err = s.mergeLines(tx, hour)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mergeLines moves some lines of an hour to its day. It reports whether there are more.
func (s *Store) mergeLines(tx transaction.Tx, hour page) (more bool, err error) {
	var lines []books.Line
	err = s.scanLines(hour, "day = ? AND at = ? LIMIT ?", []any{hour.day, hour.at, trimAtOnce}, func(l books.Line) { lines = append(lines, l) })
	if err != nil {
		return false, err
	}
	day := page{true, books.DayOf(hour.at)}
	for _, l := range lines {
		if err := s.enter(day, &l.Entry); err != nil {
			return false, err
		}
		if _, err := tx.Exec("DELETE FROM books"+whereLine, hour.day, hour.at, l.Project, l.Model, l.Key); err != nil {
			return false, err
		}
	}
	if len(lines) < trimAtOnce {
		_, err = tx.Exec("DELETE FROM books_pages WHERE day = ? AND at = ?", hour.day, hour.at)
		return false, err
	}
	_, err = s.do.pageAdd.Exec(hour.day, hour.at, -trimAtOnce)
	return true, s.describe(err)
}
