package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// NewWithSQLite returns a limiter with Gemini's default quotas whose counters
// are in a SQLite file. Every decision is a transaction there: any number of
// processes on one machine that use the same file share its quotas exactly, and
// one that is killed loses nothing that was admitted. Call Close when done.
func NewWithSQLite(dbPath string) (*RateLimiter, error) {
	return NewWithSQLiteConfig(dbPath, Config{})
}

// NewWithSQLiteConfig is NewWithSQLite with the quotas of cfg. Quotas that the
// file holds take precedence over them. The default path is cfg's, or else
// ~/.core/ratelimits.db.
func NewWithSQLiteConfig(dbPath string, cfg Config) (*RateLimiter, error) {
	if err := cfg.noStoreLoss(); err != nil {
		return nil, err
	}
	if _, err := cfg.quotas(); err != nil { // before a file is made
		return nil, err
	}
	dbPath, err := pathOr(cmp.Or(dbPath, cfg.FilePath), "ratelimits.db")
	if err != nil {
		return nil, err
	}
	opened, err := sqlitestore.Open(dbPath)
	if err != nil {
		return nil, err
	}
	rl, err := newLimiter(cfg, opened, true)
	if err == nil {
		db := &database{opened, dbPath}
		rl.keeper = db
		err = db.open(rl)
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return rl, nil
}

// database is a SQLite file with a limiter's tables: its quotas, and beside the
// accounts of its store, which are what counts, what was used as older programs
// read and write it.
type database struct {
	store *sqlitestore.Store
	path  string
}

const tables = `
CREATE TABLE IF NOT EXISTS quotas (
	model   TEXT PRIMARY KEY,
	max_rpm INTEGER NOT NULL DEFAULT 0,
	max_tpm INTEGER NOT NULL DEFAULT 0,
	max_rpd INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS requests (
	model TEXT NOT NULL,
	ts    INTEGER NOT NULL -- Unix nanoseconds
);
CREATE TABLE IF NOT EXISTS tokens (
	model TEXT NOT NULL,
	ts    INTEGER NOT NULL, -- Unix nanoseconds
	count INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS daily (
	model     TEXT PRIMARY KEY,
	day_start INTEGER NOT NULL, -- Unix nanoseconds
	day_count INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS idx_requests_model_ts ON requests(model, ts);
CREATE INDEX IF NOT EXISTS idx_tokens_model_ts ON tokens(model, ts);
`

// newerColumns are those that quotas did not always have, oldest first. Where the
// first are missing, an older program has made the file, and its usage is imported.
var newerColumns = []struct{ first, add string }{
	{"max_input_tpm", `
ALTER TABLE quotas ADD COLUMN max_input_tpm INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_output_tpm INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_tpd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_concurrent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN day_resets_at TEXT NOT NULL DEFAULT '';`},
	{"auto", `ALTER TABLE quotas ADD COLUMN auto INTEGER NOT NULL DEFAULT 0`},
	{"margin", `ALTER TABLE quotas ADD COLUMN margin INTEGER NOT NULL DEFAULT 0`}, // nanoseconds
}

// open makes the tables, imports what an older program has left, loads the quotas, and
// forgets what does not count.
func (db *database) open(rl *RateLimiter) error {
	return db.update(context.Background(), func(tx transaction.Tx) error {
		imported, err := makeTables(tx)
		if err != nil {
			return err
		}
		quotas, err := readQuotas(tx)
		if err != nil {
			return err
		}
		if err := rl.setQuotas(quotas); err != nil {
			return err
		}
		if !imported {
			if err := importUsage(tx, rl); err != nil {
				return err
			}
		}
		return rl.forgetUnknown(tx)
	})
}

// update runs fn in a transaction. Its errors name the file.
func (db *database) update(ctx context.Context, fn func(transaction.Tx) error) error {
	var fault error
	err := db.store.Update(ctx, func(tx transaction.Tx) error {
		fault = fn(tx)
		return fault
	})
	if err != nil && err == fault && !strings.Contains(err.Error(), db.path) {
		return fmt.Errorf("ratelimit: %s: %w", db.path, bare{err})
	}
	return err
}

// bare is an error without the prefix that all of ours have.
type bare struct{ error }

func (e bare) Error() string { return message.Plain(e.error) }
func (e bare) Unwrap() error { return e.error }

// makeTables makes the tables and columns that are missing. It reports whether the
// file's usage is in its accounts already.
func makeTables(tx transaction.Tx) (complete bool, err error) {
	if _, err := tx.Exec(tables); err != nil {
		return false, err
	}
	for _, newer := range newerColumns {
		there, err := hasColumn(tx, newer.first)
		if err != nil {
			return false, err
		}
		if newer.first == newerColumns[0].first {
			complete = there
		}
		if there {
			continue
		}
		if _, err := tx.Exec(newer.add); err != nil {
			return false, err
		}
	}
	return complete, nil
}

func hasColumn(tx transaction.Tx, name string) (there bool, err error) {
	err = each(tx, "SELECT COUNT(*) FROM pragma_table_info('quotas') WHERE name = ?", func(scan func(...any) error) error {
		return scan(&there)
	}, name)
	return there, err
}

// each calls fn for each row of a query.
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

func readQuotas(tx transaction.Tx) (map[string]ModelQuota, error) {
	quotas := map[string]ModelQuota{}
	err := each(tx, "SELECT model, max_rpm, max_tpm, max_rpd, max_input_tpm, max_output_tpm, max_tpd, max_concurrent, day_resets_at, auto, margin FROM quotas", func(scan func(...any) error) error {
		var model string
		var q ModelQuota
		err := scan(&model, &q.MaxRPM, &q.MaxTPM, &q.MaxRPD, &q.MaxInputTPM, &q.MaxOutputTPM, &q.MaxTPD, &q.MaxConcurrent, &q.DayResetsAt, &q.Auto, &q.Margin)
		quotas[model] = q
		return err
	})
	return quotas, err
}

const (
	insertQuota = "INSERT INTO quotas (model, max_rpm, max_tpm, max_rpd, max_input_tpm, max_output_tpm, max_tpd, max_concurrent, day_resets_at, auto, margin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
	orReplace   = `ON CONFLICT (model) DO UPDATE SET max_rpm = excluded.max_rpm, max_tpm = excluded.max_tpm, max_rpd = excluded.max_rpd,
		max_input_tpm = excluded.max_input_tpm, max_output_tpm = excluded.max_output_tpm, max_tpd = excluded.max_tpd,
		max_concurrent = excluded.max_concurrent, day_resets_at = excluded.day_resets_at, auto = excluded.auto, margin = excluded.margin`
	orKeep = "ON CONFLICT (model) DO NOTHING"
)

func writeQuotas(tx transaction.Tx, quotas map[string]ModelQuota, conflict string) error {
	for model, q := range quotas {
		_, err := tx.Exec(insertQuota+conflict, model, q.MaxRPM, q.MaxTPM, q.MaxRPD, q.MaxInputTPM, q.MaxOutputTPM, q.MaxTPD, q.MaxConcurrent, q.DayResetsAt, q.Auto, q.Margin)
		if err != nil {
			return err
		}
	}
	return nil
}

func (db *database) putQuotas(quotas map[string]ModelQuota) error {
	return db.update(context.Background(), func(tx transaction.Tx) error { return writeQuotas(tx, quotas, orReplace) })
}

// addQuotas writes the quotas that the file does not have yet, and returns those
// that it has of the same models.
func (db *database) addQuotas(quotas map[string]ModelQuota) (held map[string]ModelQuota, err error) {
	err = db.update(context.Background(), func(tx transaction.Tx) error {
		if err := writeQuotas(tx, quotas, orKeep); err != nil {
			return err
		}
		held, err = readQuotas(tx)
		return err
	})
	maps.DeleteFunc(held, func(model string, _ ModelQuota) bool { _, ok := quotas[model]; return !ok })
	return held, err
}

// readUsage returns what was used of a model.
func readUsage(tx transaction.Tx, model string, r *admission.Rules) (*usage, error) {
	u := &usage{r, map[admission.Unit]*limit.Account{}, tx.Now()}
	for _, l := range r.Limits {
		account, err := tx.Account(key(model, l.Unit))
		if err != nil {
			return nil, err
		}
		u.accounts[l.Unit] = account
	}
	return u, nil
}

// putUsage sets what was used of a model of which nothing is known.
func putUsage(tx transaction.Tx, model string, accounts map[admission.Unit]*limit.Account) error {
	for unit, account := range accounts {
		if account.FullAt() <= tx.Now() {
			continue
		}
		if err := tx.Put(key(model, unit), account); err != nil {
			return err
		}
	}
	return nil
}

func (db *database) load(ctx context.Context, rl *RateLimiter) error {
	var quotas map[string]ModelQuota
	err := db.update(ctx, func(tx transaction.Tx) (err error) {
		quotas, err = readQuotas(tx)
		return err
	})
	if err != nil {
		return err
	}
	if err := rl.setQuotas(quotas); err != nil {
		return fmt.Errorf("ratelimit: %s: %w", db.path, bare{err})
	}
	return nil
}

// save writes the quotas that the file does not have yet, and what was used, for
// older programs.
func (db *database) save(rl *RateLimiter) error {
	return db.update(context.Background(), func(tx transaction.Tx) error {
		if err := writeQuotas(tx, rl.Quotas(), orKeep); err != nil {
			return err
		}
		if err := tx.Sweep(); err != nil {
			return err
		}
		all, err := getUsage(tx, rl)
		if err != nil {
			return err
		}
		return exportUsage(tx, all)
	})
}
