package sqlitestore

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// book adds entries of an hour that the journal has.
func (j *journal) book(hour int64, entries []byte) error {
	if len(entries) == 0 {
		return nil
	}
	if j.booked == nil {
		j.booked = map[int64]*books.Journal{}
	}
	if j.booked[hour] == nil {
		j.booked[hour] = new(books.Journal)
	}
	return j.booked[hour].Add(entries)
}

// enterAll adds entries to the lines of the books: each line is changed once for many transactions.
func (s *Store) enterAll(booked map[int64]*books.Journal) error {
	for at, entries := range booked {
		if err := entries.Each(func(e *books.Entry) error { return s.enter(page{at: at}, e) }); err != nil {
			return err
		}
	}
	return nil
}

// foldNow folds the journal, with what the calls have changed and booked that share its transaction.
func (s *Store) foldNow(ctx context.Context) error {
	return s.submit(&operation{ctx: ctx, writes: true, step: func(b *batch) error {
		if b.fileError = b.flush(); b.fileError == nil {
			b.fileError = b.foldIfAny()
		}
		return b.fileError
	}})
}
