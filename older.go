package ratelimit

import (
	"errors"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
)

// importUsage reads what an older program has written into the accounts.
func importUsage(tx transaction.Tx, rl *RateLimiter) error {
	all := map[string]*restorer{}
	for _, table := range []struct {
		query string
		enter func(s *restorer, at time.Time, n int64)
	}{
		{"SELECT model, day_start, day_count FROM daily", func(s *restorer, at time.Time, n int64) { s.day(admission.Requests, at, n) }},
		{"SELECT model, ts, 1 FROM requests", func(s *restorer, at time.Time, n int64) { s.minute(admission.Requests, at, n) }},
		{"SELECT model, ts, count FROM tokens", func(s *restorer, at time.Time, n int64) { s.minute(admission.Tokens, at, n) }},
	} {
		err := each(tx, table.query, func(scan func(...any) error) error {
			var model string
			var at, n int64
			if err := errors.Join(scan(&model, &at, &n), checkName(model)); err != nil {
				return err
			}
			if all[model] == nil {
				all[model] = &restorer{rules: rl.find(model).scope.Rules(), now: tx.Now()}
			}
			table.enter(all[model], utc(at), n)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for model, s := range all {
		if err := putUsage(tx, model, s.accounts()); err != nil {
			return err
		}
	}
	return nil
}

// getUsage returns what was used of each model.
func getUsage(tx transaction.Tx, rl *RateLimiter) (map[string]UsageStats, error) {
	keys, err := tx.Keys(allModels)
	if err != nil {
		return nil, err
	}
	all := map[string]UsageStats{}
	for _, model := range modelsOf(keys) {
		u, err := readUsage(tx, model, rl.find(model).scope.Rules())
		if err != nil {
			return nil, err
		}
		all[model] = u.stats()
	}
	return all, nil
}

// insertRequests inserts as many rows as its last argument says.
const insertRequests = `
INSERT INTO requests (model, ts)
WITH RECURSIVE each(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM each WHERE i < ?3)
SELECT ?1, ?2 FROM each`

// exportUsage replaces what older programs read of what was used.
func exportUsage(tx transaction.Tx, all map[string]UsageStats) error {
	if _, err := tx.Exec("DELETE FROM requests; DELETE FROM tokens; DELETE FROM daily"); err != nil {
		return err
	}
	for model, s := range all {
		for at := s.Requests; len(at) > 0; { // many may be at the same time
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
