// Package transaction declares what package ratelimit may do in the file of a SQLite
// store, where it keeps tables of its own beside the store's accounts.
package transaction

import (
	"context"
	"database/sql"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Store is a store that runs transactions.
type Store interface {
	// Update runs fn in a transaction, and commits the transaction if fn returns nil. fn must not call the store.
	Update(ctx context.Context, fn func(Tx) error) error
}

// Tx is a transaction that locks the file for writing. It ends when the function returns
// that it was passed to.
type Tx interface {
	// Now returns the time at which the transaction began, in Unix nanoseconds.
	Now() int64

	// Exec executes a statement.
	Exec(query string, args ...any) (sql.Result, error)

	// Query executes a query. Its rows must be closed before the transaction ends.
	Query(query string, args ...any) (*sql.Rows, error)

	// Announce lets all who watch the settings of the store look again, when the transaction is
	// committed. what says what has changed, and is the name of an empty setting.
	Announce(what string) error

	// Account returns the account of a key.
	Account(key string) (*limit.Account, error)

	// Put replaces the account of a key.
	Put(key string, a *limit.Account) error

	// Keys returns the stored keys that begin with prefix, in order.
	Keys(prefix string) ([]string, error)

	// Delete deletes the accounts of all keys that begin with prefix.
	Delete(prefix string) error

	// Sweep deletes all accounts that are full: nothing of them is in use any more.
	Sweep() error
}
