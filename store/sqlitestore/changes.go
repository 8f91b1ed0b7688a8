package sqlitestore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
)

// A transaction writes one row to the journal: what it has changed of accounts, however large they are, and what it has
// booked. The ledger and the books are as they were before the first of these rows. Now and then the journal is folded:
// the accounts are written to the ledger, the entries are added to the lines of the books, and the rows are deleted but
// for a new empty one. So the numbers of rows only grow, and a process whose last row is gone knows that others have
// folded.
//
// Every process keeps the accounts of all changes in its memory, and the sums of all entries. If others have written, it
// reads their rows.
const journalSchema = `
CREATE TABLE IF NOT EXISTS journal (
	id      INTEGER PRIMARY KEY,
	changes BLOB,    -- for each account its key and its changes, each after its length
	hour    INTEGER, -- of the entries, in Unix seconds
	entries BLOB     -- of the books
) STRICT;
INSERT INTO journal (id, hour) SELECT 1, 0 WHERE NOT EXISTS (SELECT 1 FROM journal)`

const (
	maxChanges     = 1024    // rows after which they are folded
	maxUnfolded    = 256     // accounts with changes
	maxChangeBytes = 1 << 20 // of these
)

// journal is what this process knows of the table of the same name, and of what its rows have changed.
type journal struct {
	synced   bool                     // it is as the file has it
	last     int64                    // the number of the last row; 0: not known
	first    int64                    // that of the first row
	bytes    int                      // of all rows
	unfolded int                      // how many cached rows have changes
	booked   map[int64]*books.Journal // the entries of all rows, by their hours
	pending  []byte                   // the changes that the transaction writes
	entries  []byte                   // memory for its entries
}

// sync makes the changes that others have written in the cached rows. If they have folded, it drops all of them first.
func (b *batch) sync() error {
	if b.journal.synced {
		return nil
	}
	if b.journal.last > 0 {
		switch done, err := b.apply(); {
		case err != nil:
			return err
		case done:
			return nil
		}
	}
	clear(b.rows)
	b.journal = journal{}
	_, err := b.apply()
	return err
}

// apply makes the changes from the last known row on, or all of them if none is known. It reports whether that row is
// still there and the changes fit.
func (b *batch) apply() (fits bool, err error) {
	type row struct {
		id, hour         int64
		changes, entries []byte
	}
	var all []row
	var r row
	j := &b.journal
	err = (&tx{s: b.s}).scan("SELECT id, changes, hour, entries FROM journal WHERE id >= ? ORDER BY id", []any{j.last}, func() {
		all = append(all, r)
		r.changes, r.entries = nil, nil
	}, &r.id, &r.changes, &r.hour, &r.entries)
	if err != nil {
		return false, err
	}
	known := j.last > 0
	if known && (len(all) == 0 || all[0].id != j.last) {
		return false, nil
	}
	for i, r := range all {
		if known && i == 0 {
			continue
		}
		if fits, err := b.applyRow(r.changes); err != nil || !fits && known {
			return false, err
		}
		if err := j.book(r.hour, r.entries); err != nil {
			return false, b.s.describe(err)
		}
		j.first, j.last, j.bytes = cmp.Or(j.first, r.id), r.id, j.bytes+len(r.changes)+len(r.entries)
	}
	j.synced = true
	return true, nil
}

var errChanges = errors.New("ratelimit: corrupt changes of accounts")

// applyRow makes the changes of one row. It reports whether all of them fit. An account that they do not fit is corrupt.
func (b *batch) applyRow(changes []byte) (fits bool, err error) {
	fits = true
	for len(changes) > 0 {
		key, rest, ok := cut(changes)
		var form []byte
		if ok {
			form, rest, ok = cut(rest)
		}
		if !ok {
			return false, fmt.Errorf("%w in %s", errChanges, b.s.path)
		}
		r := b.cached(string(key))
		if r.err == nil {
			if err := r.account.ApplyChanges(form); err != nil {
				r.err, fits = b.s.corrupt(r.key, err), false
			}
		}
		b.hasChanged(r)
		changes = rest
	}
	return fits, nil
}

// cut returns the first part of text, which begins with the length of the part, and the rest.
func cut(text []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(text)
	if size <= 0 || n > uint64(len(text)-size) {
		return nil, nil, false
	}
	return text[size : size+int(n)], text[size+int(n):], true
}

// hasChanged notes that the file has changes of a row.
func (b *batch) hasChanged(r *row) {
	if !r.unfolded {
		r.unfolded = true
		b.journal.unfolded++
	}
	r.stored = true
	r.remember()
}

// append appends what has changed of a row to what the transaction writes.
func (b *batch) append(r *row) {
	b.s.bytes = r.account.AppendChanges(b.s.bytes[:0])
	p := binary.AppendUvarint(b.journal.pending, uint64(len(r.key)))
	p = append(p, r.key...)
	p = binary.AppendUvarint(p, uint64(len(b.s.bytes)))
	b.journal.pending = append(p, b.s.bytes...)
	b.hasChanged(r)
}

// write writes what append has appended and what calls have booked, and folds the journal when it is long.
func (b *batch) write() error {
	j := &b.journal
	j.entries = j.entries[:0]
	for owner, amounts := range b.booked.Lines() {
		j.entries = books.AppendEntry(j.entries, &books.Entry{Owner: owner, Amounts: *amounts})
	}
	b.booked.Clear()
	if len(j.pending) == 0 && len(j.entries) == 0 {
		return nil
	}
	hour := books.HourOf(b.now)
	if _, err := b.s.do.addRow.Exec(j.last+1, j.pending, hour, j.entries); err != nil {
		return b.s.describe(err)
	}
	if err := j.book(hour, j.entries); err != nil {
		return b.s.describe(err)
	}
	j.last++
	j.bytes += len(j.pending) + len(j.entries)
	j.pending = j.pending[:0]
	if j.last-j.first < maxChanges && j.unfolded < maxUnfolded && j.bytes < maxChangeBytes {
		return nil
	}
	return b.fold()
}

// foldIfAny folds the journal if it has more than an empty row.
func (b *batch) foldIfAny() error {
	if b.journal.last == b.journal.first {
		return nil
	}
	return b.fold()
}

// fold writes the accounts that have changed to the ledger, and the entries to the books, and empties the journal. For
// each account that is new or has moved in the index, it deletes two that are full, so that most of the accounts in the
// file are in use.
func (b *batch) fold() error {
	moved := 0
	for _, r := range b.rows {
		if !r.unfolded {
			continue
		}
		if r.err != nil && !isCorrupt(r.err) {
			return r.err
		}
		moves, err := b.s.save(r)
		if err != nil {
			return err
		}
		if moves {
			moved++
		}
		r.unfolded = false
	}
	if moved > 0 {
		if _, err := b.s.do.sweep.Exec(b.now, 2*moved); err != nil {
			return b.s.describe(err)
		}
		maps.DeleteFunc(b.rows, func(_ string, r *row) bool { return r.fullAt <= b.now }) // the sweep may have deleted them
	}
	j := &b.journal
	if err := b.s.enterAll(j.booked); err != nil {
		return err
	}
	*j = journal{synced: true, last: j.last + 1, first: j.last + 1, pending: j.pending[:0], entries: j.entries}
	if _, err := b.s.do.dropRows.Exec(); err != nil {
		return b.s.describe(err)
	}
	_, err := b.s.do.addRow.Exec(j.last, nil, 0, nil)
	return b.s.describe(err)
}

// corrupt returns the error for an account that cannot be read.
func (s *Store) corrupt(key string, err error) error {
	return fmt.Errorf("ratelimit: %s: key %q: %w", s.path, key, err)
}

// isCorrupt reports whether err is about one account, and not about the file.
func isCorrupt(err error) bool { return errors.Is(err, limit.ErrCorrupt) }
