// Package database keeps quotas and usage of models in tables of a SQLite file. The same file has the
// accounts of a store, by which usage is counted.
//
// Older programs know only the tables quotas, requests, tokens and daily. When a file of such a program
// is first opened, its usage is imported into the accounts. [File.Save] writes the tables again, so
// that older programs can read them.
package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// File is a SQLite file with the tables.
type File struct {
	*sqlitestore.Store
	path string
}

// Content is the content of a file when it is opened.
type Content struct {
	Quotas  map[string]state.Quota
	Unknown []string // the models without a quota that have usage
}

// Open opens a file, creates the tables that are missing, and imports what an older program has used.
// Quotas of the file take precedence over the given ones. If more than maxUnknown models have usage
// and no quota, the file forgets those of them that were used least.
func Open(path string, quotas map[string]state.Quota, maxUnknown int) (f *File, c Content, err error) {
	s, err := sqlitestore.Open(path)
	if err != nil {
		return nil, c, err
	}
	f = &File{s, path}
	err = f.update(context.Background(), func(tx transaction.Tx) error {
		imported, err := createTables(tx)
		if err != nil {
			return err
		}
		c.Quotas, err = readValidQuotas(tx)
		if err != nil {
			return err
		}
		all := maps.Clone(quotas)
		maps.Copy(all, c.Quotas)
		if !imported {
			if err := importUsage(tx, all); err != nil {
				return err
			}
		}
		c.Unknown, err = forgetUnknown(tx, all, maxUnknown)
		return err
	})
	if err != nil {
		return nil, c, errors.Join(err, s.Close())
	}
	return f, c, nil
}

// update runs fn in a transaction. Errors name the file.
func (f *File) update(ctx context.Context, fn func(transaction.Tx) error) error {
	var fault error
	store := hidden.Of[transaction.Store](f.Store)
	err := store.Update(ctx, func(tx transaction.Tx) error {
		fault = fn(tx)
		return fault
	})
	if err != nil && err == fault && !strings.Contains(err.Error(), f.path) {
		return fmt.Errorf("ratelimit: %s: %w", f.path, bare{err})
	}
	return err
}

// bare is an error whose text lacks the prefix "ratelimit: ".
type bare struct{ error }

func (e bare) Error() string { return message.Plain(e.error) }
func (e bare) Unwrap() error { return e.error }

// each calls fn for each row of a query. fn calls scan to read the row.
func each(tx transaction.Tx, query string, fn func(scan func(...any) error) error, args ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return fmt.Errorf("ratelimit: %s: %w", query, bare{err})
		}
	}
	return rows.Err()
}

// forgetUnknown deletes usage that does not count any more. If more than most models have usage and no
// quota, it keeps those that were used most today, and deletes the usage of the others. It returns the
// models without a quota that it has kept.
func forgetUnknown(tx transaction.Tx, quotas map[string]state.Quota, most int) ([]string, error) {
	if err := tx.Sweep(); err != nil {
		return nil, err
	}
	keys, err := tx.Keys(state.AllModels)
	if err != nil {
		return nil, err
	}
	models := slices.DeleteFunc(state.ModelsOf(keys), func(name string) bool { _, known := quotas[name]; return known })
	if len(models) <= most {
		return models, nil
	}
	today := map[string]int{} // the requests of each model; 0 if its account cannot be read
	for _, name := range models {
		if u, err := readUsage(tx, name, &state.Quota{}); err == nil {
			today[name] = u.DayCount
		}
	}
	slices.SortFunc(models, func(a, b string) int { return cmp.Compare(today[b], today[a]) })
	for _, name := range models[most:] {
		if err := tx.Delete(state.KeyPrefix(name)); err != nil {
			return nil, err
		}
	}
	return models[:most], nil
}

// Save adds quotas of models that have none in the file yet. It also writes what all models have used
// into the tables of older programs.
func (f *File) Save(quotas map[string]state.Quota) error {
	return f.update(context.Background(), func(tx transaction.Tx) error {
		if err := writeQuotas(tx, quotas, orKeep); err != nil {
			return err
		}
		if err := tx.Sweep(); err != nil {
			return err
		}
		return exportUsage(tx, quotas)
	})
}

// Replace replaces all quotas and all usage in the file at path. If it fails, the file is unchanged.
func Replace(path string, quotas map[string]state.Quota, used map[string]state.Usage) error {
	s, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	f := &File{s, path}
	err = f.update(context.Background(), func(tx transaction.Tx) error { return replace(tx, quotas, used) })
	return errors.Join(err, s.Close())
}

func replace(tx transaction.Tx, quotas map[string]state.Quota, used map[string]state.Usage) error {
	if _, err := createTables(tx); err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM quotas"); err != nil {
		return err
	}
	if err := errors.Join(check(quotas), writeQuotas(tx, quotas, orReplace)); err != nil {
		return err
	}
	if err := tx.Delete(state.AllModels); err != nil {
		return err
	}
	if err := putAccounts(tx, quotas, used); err != nil {
		return err
	}
	return exportUsage(tx, quotas)
}
