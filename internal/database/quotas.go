package database

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/llm"
)

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

// newColumn is the name of a column, and the statements that add it, and maybe more.
type newColumn struct{ first, add string }

// newerColumns are the columns that were added to the table quotas since, oldest first, but for maxima
// that came later: createTables adds these. If max_input_tpm is missing, an older program has
// created the file, and its usage must be imported.
var newerColumns = []newColumn{
	{"max_input_tpm", `
ALTER TABLE quotas ADD COLUMN max_input_tpm INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_output_tpm INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_tpd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN max_concurrent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quotas ADD COLUMN day_resets_at TEXT NOT NULL DEFAULT '';`},
	{"auto", `ALTER TABLE quotas ADD COLUMN auto INTEGER NOT NULL DEFAULT 0`},
	{"margin", `ALTER TABLE quotas ADD COLUMN margin INTEGER NOT NULL DEFAULT 0`}, // nanoseconds
	{"reserve", `ALTER TABLE quotas ADD COLUMN reserve REAL NOT NULL DEFAULT 0`},  // percent
	{"pace", `
ALTER TABLE quotas ADD COLUMN pace TEXT NOT NULL DEFAULT '';
ALTER TABLE quotas ADD COLUMN burst REAL NOT NULL DEFAULT 0;`}, // percent
	{"count", `ALTER TABLE quotas ADD COLUMN count TEXT NOT NULL DEFAULT ''`}, // weights, as JSON
	{"reserve_tokens", `ALTER TABLE quotas ADD COLUMN reserve_tokens TEXT NOT NULL DEFAULT ''`},
	{"on_overrun", `ALTER TABLE quotas ADD COLUMN on_overrun TEXT NOT NULL DEFAULT ''`},
}

// createTables creates the tables and columns that are missing. It reports whether the file's usage was
// imported into its accounts before.
func createTables(tx transaction.Tx) (imported bool, err error) {
	if _, err := tx.Exec(tables); err != nil {
		return false, err
	}
	add := slices.Clone(newerColumns)
	for k := range kind.Models {
		add = append(add, newColumn{k.Setting(), "ALTER TABLE quotas ADD COLUMN " + k.Setting() + " INTEGER NOT NULL DEFAULT 0"})
	}
	for i, newer := range add {
		var exists bool
		err := each(tx, "SELECT COUNT(*) FROM pragma_table_info('quotas') WHERE name = ?", func(scan func(...any) error) error {
			return scan(&exists)
		}, newer.first)
		if err != nil {
			return false, err
		}
		imported = imported || i == 0 && exists
		if exists {
			continue
		}
		if _, err := tx.Exec(newer.add); err != nil {
			return false, err
		}
	}
	return imported, nil
}

// columns are those of the table quotas, behind that of the model: the maxima, and the rest.
var columns = func() (names []string) {
	for k := range kind.Models {
		names = append(names, k.Setting())
	}
	return append(names, "day_resets_at", "auto", "margin", "reserve", "pace", "burst", "count", "reserve_tokens", "on_overrun")
}()

func readQuotas(tx transaction.Tx) (map[string]state.Quota, error) {
	quotas := map[string]state.Quota{}
	err := each(tx, "SELECT model, "+strings.Join(columns, ", ")+" FROM quotas", func(scan func(...any) error) error {
		var model, count string
		var q state.Quota
		to := []any{&model}
		for k := range kind.Models {
			to = append(to, q.Max(k))
		}
		err := scan(append(to, &q.DayResetsAt, &q.Auto, &q.Margin, &q.Reserve, &q.Pace, &q.PaceBurst, &count, &q.ReserveTokens, &q.OnOverrun)...)
		if err == nil && count != "" {
			err = json.Unmarshal([]byte(count), &q.Count)
		}
		quotas[model] = q
		return err
	})
	return quotas, err
}

func readValidQuotas(tx transaction.Tx) (map[string]state.Quota, error) {
	quotas, err := readQuotas(tx)
	if err != nil {
		return nil, err
	}
	return quotas, check(quotas)
}

// check returns an error if one of the quotas is not valid.
func check(quotas map[string]state.Quota) error {
	for model, q := range quotas {
		if err := state.Check(model, q); err != nil {
			return err
		}
	}
	return nil
}

var (
	insertQuota = "INSERT INTO quotas (model, " + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)) + ") "
	orReplace   = "ON CONFLICT (model) DO UPDATE SET " + excluded()
)

const orKeep = "ON CONFLICT (model) DO NOTHING"

// excluded returns the assignments that replace all columns of a row.
func excluded() string {
	var list []string
	for _, c := range columns {
		list = append(list, c+" = excluded."+c)
	}
	return strings.Join(list, ", ")
}

// writeQuotas writes quotas, and lets other processes know if any was written.
func writeQuotas(tx transaction.Tx, quotas map[string]state.Quota, conflict string) error {
	written := int64(0)
	for model, q := range quotas {
		count, err := countText(q.Count)
		if err != nil {
			return err
		}
		row := []any{model}
		for k := range kind.Models {
			row = append(row, *q.Max(k))
		}
		row = append(row, q.DayResetsAt, q.Auto, q.Margin, float64(q.Reserve), q.Pace, float64(q.PaceBurst), count, string(q.ReserveTokens), string(q.OnOverrun))
		result, err := tx.Exec(insertQuota+conflict, row...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		written += n
	}
	if written == 0 {
		return nil
	}
	return tx.Announce("quotas")
}

// countText returns weights as JSON, or nothing if there are none.
func countText(w llm.TokenWeights) (string, error) {
	if w.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(w)
	return string(text), err
}

// PutQuotas writes quotas, and replaces those that the models have in the file.
func (f *File) PutQuotas(quotas map[string]state.Quota) error {
	return f.update(context.Background(), func(tx transaction.Tx) error { return writeQuotas(tx, quotas, orReplace) })
}

// SwapQuota writes the quota of a model if the model has the quota was in the file, or none. It reports
// whether it did.
func (f *File) SwapQuota(ctx context.Context, model string, was, quota state.Quota) (swapped bool, err error) {
	err = f.update(ctx, func(tx transaction.Tx) error {
		quotas, err := readQuotas(tx)
		if err != nil {
			return err
		}
		current, there := quotas[model]
		swapped = !there || current == was
		if !swapped {
			return nil
		}
		return writeQuotas(tx, map[string]state.Quota{model: quota}, orReplace)
	})
	return swapped && err == nil, err
}

// AddQuotas writes the quotas of models that have none in the file yet. It returns the quotas that all
// of the given models have then.
func (f *File) AddQuotas(quotas map[string]state.Quota) (current map[string]state.Quota, err error) {
	err = f.update(context.Background(), func(tx transaction.Tx) error {
		if err := writeQuotas(tx, quotas, orKeep); err != nil {
			return err
		}
		current, err = readQuotas(tx)
		return err
	})
	maps.DeleteFunc(current, func(model string, _ state.Quota) bool { _, ok := quotas[model]; return !ok })
	return current, err
}

// Quotas returns the quotas of the file.
func (f *File) Quotas(ctx context.Context) (quotas map[string]state.Quota, err error) {
	err = f.update(ctx, func(tx transaction.Tx) (err error) {
		quotas, err = readValidQuotas(tx)
		return err
	})
	return quotas, err
}
