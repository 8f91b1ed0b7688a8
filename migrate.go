package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"os"

	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// MigrateYAMLToSQLite writes the quotas and the usage of a YAML file into a
// SQLite file, in place of those that it holds. It can be repeated. If it fails,
// the SQLite file is as it was.
func MigrateYAMLToSQLite(yamlPath, sqlitePath string) error {
	if _, err := os.Stat(yamlPath); err != nil {
		return fmt.Errorf("ratelimit: nothing to migrate: %w", err)
	}
	file, err := readYAML(yamlPath)
	if err != nil {
		return err
	}
	opened, err := sqlitestore.Open(sqlitePath)
	if err != nil {
		return err
	}
	db := &database{opened, sqlitePath}
	err = db.update(context.Background(), func(tx transaction.Tx) error { return migrate(tx, file) })
	return errors.Join(err, opened.Close())
}

func migrate(tx transaction.Tx, file saved) error {
	if _, err := makeTables(tx); err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM quotas"); err != nil {
		return err
	}
	if err := writeQuotas(tx, file.Quotas, orReplace); err != nil {
		return err
	}
	set, err := newRulesOf(file.Quotas)
	if err != nil {
		return err
	}
	if err := tx.Delete(allModels); err != nil {
		return err
	}
	all := map[string]UsageStats{}
	for model, state := range file.State {
		r := set[model]
		if r == nil {
			r = unknown()
		}
		accounts := restore(r, state, tx.Now())
		if err := putUsage(tx, model, accounts); err != nil {
			return err
		}
		u := &usage{r, accounts, tx.Now()}
		all[model] = u.stats()
	}
	return exportUsage(tx, all)
}
