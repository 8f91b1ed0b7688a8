package sqlitestore

import (
	"bytes"
	"database/sql"
	"fmt"

	"dappco.re/go/core/go-ratelimit/limit"
)

// row is the account of one key, as one row of the file has it.
type row struct {
	key     string
	account limit.Account
	err     error // why the row cannot be read

	stored bool  // it is in the file
	fullAt int64 // the column full_at: see roundUp

	// The following fields are about the present transaction.
	touched bool // the transaction has used the row
	dirty   bool // the account may differ from the one in the file: see fileMatches
	changed bool // the account differs from the one in the file
}

// load returns the row of a key. If the file has none, its account is empty.
func (s *Store) load(key string) *row {
	r := &row{key: key}
	rows, err := s.do.load.Query([]byte(key))
	if err != nil {
		r.err = s.describe(err)
		return r
	}
	defer rows.Close()
	if !rows.Next() {
		r.err = s.describe(rows.Err())
		return r
	}
	r.stored = true
	if err := r.scan(rows); err != nil {
		r.err = fmt.Errorf("ratelimit: %s: key %q: %w", s.path, key, err)
	}
	return r
}

func (r *row) scan(rows *sql.Rows) error {
	var account sql.RawBytes
	if err := rows.Scan(&r.fullAt, &account); err != nil {
		return fmt.Errorf("%w: %w", limit.ErrCorrupt, err)
	}
	return r.account.UnmarshalBinary(account)
}

// fileMatches reports whether the account of r is the same as in the file. A denied take can still
// change an account, if the clock went back or the limits have changed. If that change were not
// written, each later take would make it again, and what is in use would never end.
func (s *Store) fileMatches(r *row, now int64) bool {
	file := s.load(r.key)
	file.account.Fit(nil, now) // moves it to the present time, and changes nothing else
	before, _ := file.account.AppendBinary(nil)
	after, _ := r.account.AppendBinary(nil)
	return bytes.Equal(before, after)
}

// save writes a row, and reports whether that moves it in the index.
func (s *Store) save(r *row) (moves bool, err error) {
	s.bytes, _ = r.account.AppendBinary(s.bytes[:0])
	fullAt := roundUp(r.account.FullAt())
	statement := s.do.update
	if moves = !r.stored || fullAt != r.fullAt; moves {
		statement = s.do.upsert
	}
	_, err = statement.Exec([]byte(r.key), fullAt, s.bytes)
	r.stored, r.fullAt = true, fullAt
	return moves, s.describe(err)
}

// roundUp rounds a time up to about a minute, so that a row does not move in the index more often
// than that. The largest times stay as they are.
func roundUp(t int64) int64 {
	const minute = 1 << 36
	return max(t, (t+minute-1)&^(minute-1))
}
