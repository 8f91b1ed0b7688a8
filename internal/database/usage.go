package database

import (
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/modelname"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// importUsage imports the usage in the tables of an older program into the accounts.
func importUsage(tx transaction.Tx, quotas map[string]state.Quota) error {
	all := map[string]state.Usage{}
	for _, table := range []struct {
		query string
		add   func(u *state.Usage, e state.Entry)
	}{
		{"SELECT model, day_start, day_count FROM daily", func(u *state.Usage, e state.Entry) { u.DayStart, u.DayCount = e.Time, e.Count }},
		{"SELECT model, ts, 1 FROM requests", func(u *state.Usage, e state.Entry) { u.Requests = append(u.Requests, e.Time) }},
		{"SELECT model, ts, count FROM tokens", func(u *state.Usage, e state.Entry) { u.Tokens = append(u.Tokens, e) }},
	} {
		err := each(tx, table.query, func(scan func(...any) error) error {
			var model string
			var at int64
			var e state.Entry
			if err := errors.Join(scan(&model, &at, &e.Count), modelname.Check(model)); err != nil {
				return err
			}
			e.Time = state.UTC(at)
			u := all[model]
			table.add(&u, e)
			all[model] = u
			return nil
		})
		if err != nil {
			return err
		}
	}
	return putAccounts(tx, quotas, all)
}

// putAccounts writes the accounts of models with such usage, if anything of it still counts.
func putAccounts(tx transaction.Tx, quotas map[string]state.Quota, used map[string]state.Usage) error {
	for model, u := range used {
		q := quotas[model]
		for unit, account := range u.Accounts(&q, tx.Now()) {
			if account.FullAt() <= tx.Now() {
				continue
			}
			if err := tx.Put(state.Key(model, unit), account); err != nil {
				return err
			}
		}
	}
	return nil
}

// readUsage returns what a model with a quota has used.
func readUsage(tx transaction.Tx, model string, q *state.Quota) (u state.Usage, err error) {
	accounts := state.Accounts{}
	for _, l := range q.Limits() {
		accounts[l.Unit], err = tx.Account(state.Key(model, l.Unit))
		if err != nil {
			return u, err
		}
	}
	return accounts.Usage(q, tx.Now()), nil
}

// readAllUsage returns what each model has used, with or without a quota.
func readAllUsage(tx transaction.Tx, quotas map[string]state.Quota) (map[string]state.Usage, error) {
	keys, err := tx.Keys(state.AllModels)
	if err != nil {
		return nil, err
	}
	all := map[string]state.Usage{}
	for _, model := range state.ModelsOf(keys) {
		q := quotas[model]
		all[model], err = readUsage(tx, model, &q)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// insertRequests inserts as many rows as its last argument says.
const insertRequests = `
INSERT INTO requests (model, ts)
WITH RECURSIVE each(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM each WHERE i < ?3)
SELECT ?1, ?2 FROM each`

// exportUsage writes what all models have used into the tables of older programs.
func exportUsage(tx transaction.Tx, quotas map[string]state.Quota) error {
	all, err := readAllUsage(tx, quotas)
	if err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM requests; DELETE FROM tokens; DELETE FROM daily"); err != nil {
		return err
	}
	for model, s := range all {
		for at := s.Requests; len(at) > 0; { // one statement for all requests at the same time
			n := 1
			for n < len(at) && at[n].Equal(at[0]) {
				n++
			}
			if _, err := tx.Exec(insertRequests, model, at[0].UnixNano(), n); err != nil {
				return err
			}
			at = at[n:]
		}
		for _, e := range s.Tokens {
			if _, err := tx.Exec("INSERT INTO tokens (model, ts, count) VALUES (?, ?, ?)", model, e.Time.UnixNano(), e.Count); err != nil {
				return err
			}
		}
		if s.DayCount == 0 {
			continue
		}
		if _, err := tx.Exec("INSERT INTO daily (model, day_start, day_count) VALUES (?, ?, ?)", model, s.DayStart.UnixNano(), s.DayCount); err != nil {
			return err
		}
	}
	return nil
}
