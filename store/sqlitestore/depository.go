package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

var _ accounts.Depository = internals{}

// depositsSchema makes the table of takes that are settled later, maybe by another process.
const depositsSchema = `
CREATE TABLE IF NOT EXISTS deposits (
	id      BLOB PRIMARY KEY,
	name    BLOB,             -- by which it is found as well; NULL: none
	at      INTEGER NOT NULL, -- when it was deposited, in Unix nanoseconds
	deposit BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS deposits_name ON deposits (name) WHERE name IS NOT NULL;
CREATE INDEX IF NOT EXISTS deposits_at ON deposits (at)`

// Deposit implements [accounts.Depository].
func (s internals) Deposit(ctx context.Context, id string, r store.Receipt, note []byte) error {
	d := accounts.Deposit{Note: note}
	if r != nil {
		own, ok := r.(*receipt)
		if !ok || own.store != s.Store {
			return store.ErrReceipt
		}
		for i, c := range own.charges {
			d.Add(c.Key, c.Limits, own.receipts[i])
		}
	}
	return s.write(ctx, func(b *batch) error {
		n, err := b.change("INSERT OR IGNORE INTO deposits (id, at, deposit) VALUES (?, ?, ?)", []byte(id), b.now, d.Encode())
		if err == nil && n == 0 {
			return accounts.ErrDeposited
		}
		return err
	})
}

// write runs a step that writes.
func (s *Store) write(ctx context.Context, step func(b *batch) error) error {
	return s.submit(&operation{ctx: ctx, writes: true, step: step})
}

// change executes a statement of the transaction, and returns how many rows it has changed. An error
// fails the transaction.
func (b *batch) change(query string, args ...any) (rows int64, err error) {
	result, err := (&tx{s: b.s}).Exec(query, args...)
	if err != nil {
		b.fileError = err
		return 0, err
	}
	rows, err = result.RowsAffected()
	return rows, err
}

// NameDeposit implements [accounts.Depository].
func (s internals) NameDeposit(ctx context.Context, id, name string) error {
	return s.write(ctx, func(b *batch) error {
		_, err := b.change("UPDATE deposits SET name = ? WHERE id = ?", []byte(name), []byte(id))
		return err
	})
}

// FindDeposit implements [accounts.Depository].
func (s internals) FindDeposit(ctx context.Context, name string) (id string, note []byte, err error) {
	var form []byte
	err = s.submit(&operation{ctx: ctx, step: func(*batch) (err error) {
		id, form, err = s.deposit("id = ?1 OR name = ?1", name)
		return err
	}})
	if err != nil || id == "" {
		return "", nil, err
	}
	d, err := accounts.DecodeDeposit(form)
	if err != nil {
		return id, nil, err
	}
	return id, d.Note, nil
}

// deposit returns the deposit that fits a condition. The id is empty if there is none.
func (s *Store) deposit(condition, name string) (id string, form []byte, err error) {
	var key []byte
	err = s.conn.QueryRowContext(context.Background(), "SELECT id, deposit FROM deposits WHERE "+condition, []byte(name)).Scan(&key, &form)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, nil
	}
	return string(key), form, s.describe(err)
}

// SettleDeposit implements [accounts.Depository]. Everything is done in one transaction, in which the
// deposit ends.
func (s internals) SettleDeposit(ctx context.Context, id string, actual []int64, e *books.Entry) error {
	return s.write(ctx, func(b *batch) error {
		found, form, err := s.deposit("id = ?1", id)
		if err != nil || found == "" {
			return err
		}
		d, err := accounts.DecodeDeposit(form)
		if err != nil {
			return err
		}
		if len(actual) != len(d.Charges) {
			return store.ErrReceipt
		}
		charges, receipts := chargesOf(d)
		taken, err := b.accountsOf(charges)
		if err != nil {
			return err
		}
		if _, err := b.change("DELETE FROM deposits WHERE id = ?", []byte(id)); err != nil {
			return err
		}
		b.settle(taken, charges, receipts, actual)
		if e != nil {
			b.book(e)
		}
		return nil
	})
}

// chargesOf returns the charges of a deposit, and their receipts.
func chargesOf(d *accounts.Deposit) (charges []store.Charge, receipts []limit.Receipt) {
	for i := range d.Charges {
		limits, _ := d.Charges[i].Terms() // which were read before
		charges = append(charges, store.Charge{Key: d.Charges[i].Key, Limits: limits, N: d.Charges[i].N})
		receipts = append(receipts, d.Charges[i].Receipt())
	}
	return charges, receipts
}

// DropDeposit implements [accounts.Depository].
func (s internals) DropDeposit(ctx context.Context, id string) error {
	return s.write(ctx, func(b *batch) error {
		_, err := b.change("DELETE FROM deposits WHERE id = ?", []byte(id))
		return err
	})
}

// DueDeposits implements [accounts.Depository]. No settlement is ever left half done.
func (s internals) DueDeposits(ctx context.Context, before int64, most int) (ids []string, err error) {
	const due = "SELECT id FROM deposits WHERE at < ?1 OR at <= (SELECT at FROM deposits ORDER BY at DESC LIMIT 1 OFFSET ?2)"
	err = s.submit(&operation{ctx: ctx, step: func(*batch) error {
		var id []byte
		return (&tx{s: s.Store}).scan(due, []any{before, most}, func() { ids = append(ids, string(id)) }, &id)
	}})
	return ids, err
}
