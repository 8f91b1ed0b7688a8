package sqlitestore

import (
	"context"
	"database/sql"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Tx is a transaction that locks the file for writing, for accounts and for the caller's own
// tables. It ends with the function that it was given to.
type Tx struct {
	s   *Store
	now int64
}

// Update runs fn in a transaction: everything that it did happens if it returns nil, and otherwise
// nothing does. fn must not call the store, which waits for it to end.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	o := &operation{ctx: ctx}
	o.exclusive = func() error {
		return s.transact(ctx, o.since, func() error { return fn(&Tx{s, s.clock()}) })
	}
	return s.submit(o)
}

// Now returns the time at which the transaction began, in Unix nanoseconds.
func (tx *Tx) Now() int64 { return tx.now }

// Exec executes a statement.
func (tx *Tx) Exec(query string, args ...any) (sql.Result, error) {
	result, err := tx.s.conn.ExecContext(context.Background(), query, args...)
	return result, tx.s.describe(err)
}

// Query executes a query. Its rows must be closed before the transaction ends.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	rows, err := tx.s.conn.QueryContext(context.Background(), query, args...)
	return rows, tx.s.describe(err)
}

// Account returns the account of a key.
func (tx *Tx) Account(key string) (*limit.Account, error) {
	r := tx.s.load(key)
	if r.err != nil {
		return nil, r.err
	}
	return &r.account, nil
}

// Put replaces the account of a key.
func (tx *Tx) Put(key string, a *limit.Account) error {
	_, err := tx.s.save(&row{key: key, account: *a})
	return err
}

// Delete deletes the accounts of all keys that begin with prefix.
func (tx *Tx) Delete(prefix string) error {
	condition, args := beginsWith(prefix)
	_, err := tx.Exec("DELETE FROM accounts WHERE "+condition, args...)
	return err
}

// Sweep deletes all accounts that are full: nothing of them is in use any more.
func (tx *Tx) Sweep() error {
	_, err := tx.Exec("DELETE FROM accounts WHERE full_at <= ?", tx.now)
	return err
}

// beginsWith returns the SQL condition for keys that begin with prefix, and its arguments.
func beginsWith(prefix string) (condition string, args []any) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			after := []byte(prefix[:i+1])
			after[i]++ // the first key behind those
			return "key >= ? AND key < ?", []any{[]byte(prefix), after}
		}
	}
	return "key >= ?", []any{[]byte(prefix)}
}
