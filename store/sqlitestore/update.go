package sqlitestore

import (
	"context"
	"database/sql"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Tx is a transaction that has the file to itself, for accounts and for the
// caller's own tables. It ends with the function that it was given to.
type Tx struct {
	s   *Store
	now int64
}

// Update runs fn in a transaction: all that it did happens if it returns nil,
// and otherwise nothing does. fn must not call the store, which waits for it to
// end.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	o := &op{ctx: ctx}
	o.alone = func() error {
		return s.transact(ctx, o.since, func() error { return fn(&Tx{s, s.clock()}) })
	}
	return s.enter(o)
}

// Now returns when the transaction began, in Unix nanoseconds.
func (tx *Tx) Now() int64 { return tx.now }

// Exec executes a statement.
func (tx *Tx) Exec(query string, args ...any) (sql.Result, error) {
	result, err := tx.s.conn.ExecContext(context.Background(), query, args...)
	return result, tx.s.fault(err)
}

// Query executes a query. Its rows must be closed before the transaction ends.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	rows, err := tx.s.conn.QueryContext(context.Background(), query, args...)
	return rows, tx.s.fault(err)
}

// Account returns what a key has used.
func (tx *Tx) Account(key string) (*limit.Account, error) {
	r := tx.s.load(key)
	if r.err != nil {
		return nil, r.err
	}
	return &r.account, nil
}

// Put sets what a key has used.
func (tx *Tx) Put(key string, a *limit.Account) error {
	_, err := tx.s.save(&row{key: key, account: *a})
	return err
}

// Delete forgets what was used of all keys that begin with prefix.
func (tx *Tx) Delete(prefix string) (err error) {
	if after, ok := next([]byte(prefix)); ok {
		_, err = tx.Exec("DELETE FROM accounts WHERE key >= ? AND key < ?", []byte(prefix), after)
	} else {
		_, err = tx.Exec("DELETE FROM accounts WHERE key >= ?", []byte(prefix))
	}
	return err
}

// Sweep forgets all keys of which nothing is in use any more.
func (tx *Tx) Sweep() error {
	_, err := tx.Exec("DELETE FROM accounts WHERE full_at <= ?", tx.now)
	return err
}

// next returns the first of the keys after those that begin with prefix, unless
// there is none.
func next(prefix []byte) ([]byte, bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			after := slices.Clone(prefix[:i+1])
			after[i]++
			return after, true
		}
	}
	return nil, false
}
