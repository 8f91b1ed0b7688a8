package sqlitestore

import "context"

// Keys implements [store.Store].
func (s *Store) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = s.submit(&operation{ctx: ctx, step: func(*batch) (err error) {
		keys, err = (&tx{s: s}).Keys(prefix)
		return err
	}})
	return keys, err
}

func (t *tx) Keys(prefix string) (keys []string, err error) {
	condition, args := beginsWith(prefix)
	rows, err := t.Query("SELECT key FROM accounts WHERE "+condition+" ORDER BY key", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, t.s.describe(err)
		}
		keys = append(keys, string(key))
	}
	return keys, t.s.describe(rows.Err())
}
