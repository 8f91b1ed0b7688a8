package sqlitestore

import (
	"errors"
	"maps"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/store"
)

// batch is the state of the transaction that runs, and a cache of rows. The cache outlives the
// transaction, unless another process changes the file.
type batch struct {
	s         *Store
	now       int64
	anchor    anchor          // of the file's time
	version   uint32          // SQLite's version of the data after the last commit: see dataVersion
	rows      map[string]*row // the cached rows, by their keys
	touched   []*row          // the rows that this transaction has used
	booked    books.Tally     // what this transaction has to book
	journal   journal
	fileError error // an error of the file, which fails all calls of the transaction

	stepRows []*row            // the rows of the step that runs
	charges  []accounts.Charge // the charges of the step that runs
}

// maxCachedRows is how many rows may be cached when a transaction begins, beside those that have changes.
const maxCachedRows = 256

// setVersion notes whether others have changed the file since the last transaction.
func (b *batch) setVersion(version uint32) {
	if len(b.rows) > maxCachedRows+b.journal.unfolded {
		maps.DeleteFunc(b.rows, func(_ string, r *row) bool { return !r.unfolded })
	}
	if version != b.version {
		b.journal.synced, b.anchor.changed, b.version = false, true, version
	}
}

// forget drops the cached rows, and the anchor of the file's time.
func (b *batch) forget() {
	clear(b.rows)
	b.journal = journal{}
	b.anchor.known = false
}

var errPanic = errors.New("ratelimit: a call that shared the transaction has panicked")

// execute runs the steps of ops in the transaction that has begun, and ends it. Either everything
// they did happens, or each of them has an error and nothing happens.
func (s *Store) execute(ops []*operation, writes bool) {
	err := errPanic
	defer func() {
		s.batch.touched = s.batch.touched[:0]
		s.batch.booked.Clear()
		if err == nil {
			return
		}
		s.batch.forget()
		s.do.rollback.Exec()
		for _, o := range ops {
			if o.err == nil {
				o.err = err
			}
		}
	}()
	err = s.run(ops, writes)
}

// prepareBatch brings what the process knows of the file up to date, in a transaction that has begun.
func (s *Store) prepareBatch(writes bool) (err error) {
	b := &s.batch
	b.s, b.fileError = s, nil
	if err := b.sync(); err != nil {
		return err
	}
	b.now, err = s.now(writes)
	return err
}

func (s *Store) run(ops []*operation, writes bool) error {
	b := &s.batch
	if err := s.prepareBatch(writes); err != nil {
		return err
	}
	for _, o := range ops {
		if o.err = o.step(b); b.fileError != nil {
			return b.fileError
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	return s.commit()
}

// accountsOf returns the accounts of the charges' keys, in their order. They are valid until the
// next call.
func (b *batch) accountsOf(charges []store.Charge) ([]accounts.Charge, error) {
	b.stepRows, b.charges = b.stepRows[:0], b.charges[:0]
	for _, c := range charges {
		r, err := b.row(c.Key)
		if err != nil {
			return nil, err
		}
		b.stepRows = append(b.stepRows, r)
		b.charges = append(b.charges, accounts.Charge{Account: &r.account, Limits: c.Limits, N: c.N})
	}
	return b.charges, nil
}

// row returns the row of a key.
func (b *batch) row(key string) (*row, error) {
	r := b.cached(key)
	if r.err != nil && !isCorrupt(r.err) {
		b.fileError = r.err
	}
	if !r.touched {
		r.touched = true
		b.touched = append(b.touched, r)
	}
	return r, r.err
}

// cached returns the row of a key. It loads the row if it is not cached: then there are no changes of it.
func (b *batch) cached(key string) *row {
	r := b.rows[key]
	if r == nil {
		r = b.s.load(key)
		if b.rows == nil {
			b.rows = map[string]*row{}
		}
		b.rows[key] = r
	}
	return r
}

// flush writes what has changed of the rows, and what was booked.
func (b *batch) flush() error {
	for _, r := range b.touched {
		if r.changed || r.dirty && b.s.differs(r) {
			b.append(r)
		}
		r.touched, r.dirty, r.changed = false, false, false
	}
	b.touched = b.touched[:0]
	return b.write()
}
