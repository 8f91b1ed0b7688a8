package sqlitestore

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// ReadBooks implements [books.Keeper]. It reads one page after another, so that decisions do not
// wait for all of them. If pages are trimmed meanwhile, it begins anew.
func (s internals) ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	for {
		if err := s.foldNow(ctx); err != nil {
			return nil, err
		}
		before, err := s.pages(ctx, &q)
		if err != nil {
			return nil, err
		}
		sum := books.NewSum(q)
		for p := range before {
			if err := s.readPage(ctx, p, &q, sum); err != nil {
				return nil, err
			}
		}
		after, err := s.pages(ctx, &q)
		if err != nil {
			return nil, err
		}
		if !trimmed(before, after) {
			return sum.Summary()
		}
	}
}

// pages returns the numbers of lines of all pages that a query asks for.
func (s *Store) pages(ctx context.Context, q *books.Query) (lines map[page]int, err error) {
	from, to := q.Bounds()
	err = s.submit(&operation{ctx: ctx, step: func(*batch) error {
		lines = map[page]int{}
		var p page
		var n int
		return (&tx{s: s}).scan("SELECT day, at, lines FROM books_pages WHERE at >= ? AND at < ?", []any{from, to}, func() { lines[p] = n }, &p.day, &p.at, &n)
	}})
	return lines, err
}

// trimmed reports whether lines were moved or deleted: then a page has fewer lines than before. Lines
// are only added to hours that are not trimmed.
func trimmed(before, after map[page]int) bool {
	for p, n := range before {
		if after[p] < n {
			return true
		}
	}
	return false
}

// readPage adds the lines of a page to a sum.
func (s *Store) readPage(ctx context.Context, p page, q *books.Query, sum *books.Sum) error {
	where, args := "day = ? AND at = ?", []any{p.day, p.at}
	if q.Project != "" { // "0" is the byte after "/": the sum leaves out those that are not below the project
		where, args = where+" AND project >= ? AND project < ?", append(args, q.Project, q.Project+"0")
	}
	return s.submit(&operation{ctx: ctx, step: func(*batch) error { return s.scanLines(p, where, args, sum.Add) }})
}

// scanLines calls each with the lines of a page for which a condition holds.
func (s *Store) scanLines(p page, where string, args []any, each func(books.Line)) error {
	l := books.Line{At: p.at, Day: p.day}
	dest := []any{&l.Project, &l.Model, &l.Key}
	for u := range l.Amounts {
		dest = append(dest, &l.Amounts[u])
	}
	units := unitColumns(func(name string, _ int) string { return ", " + name })
	return (&tx{s: s}).scan("SELECT project, model, key"+units+" FROM books WHERE "+where, args, func() { each(l) }, dest...)
}
