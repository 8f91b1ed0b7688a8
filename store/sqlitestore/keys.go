package sqlitestore

import "context"

// Keys is [store.Store]'s.
func (s *Store) Keys(ctx context.Context, prefix string) (keys []string, err error) {
	err = s.enter(&op{ctx: ctx, step: func(*batch) (err error) {
		keys, err = (&Tx{s: s}).Keys(prefix)
		return err
	}})
	return keys, err
}

// Keys is the store's Keys.
func (tx *Tx) Keys(prefix string) (keys []string, err error) {
	query, args := "SELECT key FROM accounts WHERE key >= ? ORDER BY key", []any{[]byte(prefix)}
	if after, ok := next([]byte(prefix)); ok {
		query, args = "SELECT key FROM accounts WHERE key >= ? AND key < ? ORDER BY key", []any{[]byte(prefix), after}
	}
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, tx.s.fault(err)
		}
		keys = append(keys, string(key))
	}
	return keys, tx.s.fault(rows.Err())
}
