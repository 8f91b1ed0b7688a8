package sqlitestore

import (
	"cmp"
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// The journal has what transactions have booked, one row for each transaction, until it is folded into
// the lines of the books. To write one row costs a transaction much less than to change many lines; the
// lines are changed every few seconds, each once for all transactions since, and before they are read.
const journalSchema = `
CREATE TABLE IF NOT EXISTS books_journal (
	id      INTEGER PRIMARY KEY,
	at      INTEGER NOT NULL, -- the hour, in Unix seconds
	entries BLOB NOT NULL
) STRICT`

const (
	foldEvery  = int64(5e9) // nanoseconds
	maxJournal = 1024       // rows that this process writes before it folds them, so that calls do not wait long
)

// flushBooks writes what the calls of the transaction have booked to the journal, and folds it now and
// then.
func (b *batch) flushBooks() error {
	if len(b.booked.Lines()) == 0 {
		return nil
	}
	if err := b.writeBooks(); err != nil {
		return err
	}
	b.booking++
	if since := b.now - b.foldedAt; since >= 0 && since < foldEvery && b.booking < maxJournal {
		return nil
	}
	b.booking, b.foldedAt = 0, b.now
	return b.s.fold()
}

// writeBooks writes what the calls of the transaction have booked so far to the journal.
func (b *batch) writeBooks() error {
	bytes := b.bookBytes[:0]
	for owner, amounts := range b.booked.Lines() {
		bytes = books.AppendEntry(bytes, &books.Entry{Owner: owner, Amounts: *amounts})
	}
	b.bookBytes = bytes
	b.booked.Clear()
	_, err := b.s.do.journalAdd.Exec(books.HourOf(b.now), bytes)
	return b.s.describe(err)
}

// fold moves the journal, of this process and others, to the lines of the books, in a transaction that
// writes.
func (s *Store) fold() error {
	var id, at int64
	var bytes []byte
	var failed error
	hours := map[int64]*books.Journal{}
	err := (&tx{s: s}).scan("SELECT id, at, entries FROM books_journal ORDER BY id", nil, func() {
		if hours[at] == nil {
			hours[at] = new(books.Journal)
		}
		failed = cmp.Or(failed, hours[at].Add(bytes))
	}, &id, &at, &bytes)
	if err != nil || failed != nil || len(hours) == 0 {
		return s.describe(cmp.Or(err, failed))
	}
	for at, journal := range hours {
		if err := journal.Each(func(e *books.Entry) error { return s.enter(page{at: at}, e) }); err != nil {
			return err
		}
	}
	_, err = s.do.journalClear.Exec(id)
	return s.describe(err)
}

// foldNow folds the journal, and what calls have booked that share its transaction.
func (s *Store) foldNow(ctx context.Context) error {
	return s.submit(&operation{ctx: ctx, writes: true, step: func(b *batch) error {
		if len(b.booked.Lines()) > 0 {
			b.fileError = b.writeBooks()
		}
		if b.fileError == nil {
			b.fileError = s.fold()
		}
		return b.fileError
	}})
}
