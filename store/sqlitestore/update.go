package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
)

// tx implements [transaction.Tx].
type tx struct {
	s         *Store
	now       int64
	announced bool
	wrote     bool // the ledger may have changed
}

// Update is update for package database, which keeps tables of its own in the file.
func (s internals) Update(ctx context.Context, fn func(transaction.Tx) error) error {
	return s.update(ctx, fn)
}

// update runs fn in a transaction, and commits the transaction if fn returns nil. fn must not call
// the store, which would wait for fn to end.
func (s *Store) update(ctx context.Context, fn func(transaction.Tx) error) error {
	o := &operation{ctx: ctx}
	t := &tx{s: s}
	o.exclusive = func() error {
		return s.transact(ctx, o.since, func() (err error) {
			if err := s.prepareBatch(true); err != nil {
				return err
			}
			if err := s.batch.foldIfAny(); err != nil { // fn knows the ledger alone
				return err
			}
			t.now = s.batch.now
			if err := fn(t); err != nil || !t.wrote {
				return err
			}
			if !s.inTransaction() { // so that fold does not delete changes for good that were not written to the ledger
				return errRolledBack
			}
			clear(s.batch.rows)
			return s.batch.fold() // so that other processes drop what they know of the ledger
		})
	}
	err := s.submit(o)
	if err == nil && t.announced {
		s.watchers.notify()
	}
	return err
}

var errRolledBack = errors.New("ratelimit: SQLite has rolled the transaction back")

// inTransaction reports whether the transaction that has begun is still under way. SQLite ends it by itself after some
// errors, such as a full disk.
func (s *Store) inTransaction() bool {
	_, err := s.conn.ExecContext(context.Background(), "BEGIN")
	if err == nil { // there was none
		s.do.rollback.Exec()
	}
	return err != nil
}

func (t *tx) Now() int64 { return t.now }

func (t *tx) Exec(query string, args ...any) (sql.Result, error) {
	t.wrote = true
	result, err := t.s.conn.ExecContext(context.Background(), query, args...)
	return result, t.s.describe(err)
}

func (t *tx) Query(query string, args ...any) (*sql.Rows, error) {
	rows, err := t.s.conn.QueryContext(context.Background(), query, args...)
	return rows, t.s.describe(err)
}

func (t *tx) Announce(what string) error {
	t.announced = true
	_, err := t.Exec(putSetting, []byte(what), []byte{})
	return err
}

func (t *tx) Account(key string) (*limit.Account, error) {
	r := t.s.load(key)
	if r.err != nil {
		return nil, r.err
	}
	return &r.account, nil
}

func (t *tx) Put(key string, a *limit.Account) error {
	t.wrote = true
	_, err := t.s.save(&row{key: key, account: *a})
	return err
}

func (t *tx) Keys(prefix string) (keys []string, err error) {
	condition, args := beginsWith(prefix)
	var key []byte
	err = t.scan("SELECT key FROM ledger WHERE "+condition+" ORDER BY key", args, func() {
		keys = append(keys, string(key))
	}, &key)
	return keys, err
}

// scan executes a query. It scans each row into dest, and then calls each.
func (t *tx) scan(query string, args []any, each func(), dest ...any) error {
	rows, err := t.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return t.s.describe(err)
		}
		each()
	}
	return t.s.describe(rows.Err())
}

func (t *tx) Delete(prefix string) error {
	condition, args := beginsWith(prefix)
	return t.delete(condition, args...)
}

func (t *tx) Sweep() error {
	return t.delete("full_at <= ?", t.now)
}

// delete deletes the accounts that fit a condition.
func (t *tx) delete(condition string, args ...any) error {
	wrote := t.wrote
	result, err := t.Exec("DELETE FROM ledger WHERE "+condition, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	t.wrote = wrote || n > 0
	return t.s.describe(err)
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
