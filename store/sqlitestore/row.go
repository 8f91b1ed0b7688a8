package sqlitestore

import (
	"bytes"
	"database/sql"
	"fmt"

	"dappco.re/go/core/go-ratelimit/limit"
)

// row is one key's account.
type row struct {
	key     string
	account limit.Account
	err     error // why it cannot be read

	stored bool  // it is in the file
	fullAt int64 // as it is there: see roundUp

	// In a transaction:
	touched bool
	used    bool // it may not be quite what the file says any more
	changed bool // it must be written
	taken   bool // or denied: see kept
}

// load returns the row of a key. If there is none, it has used nothing.
func (s *Store) load(key string) *row {
	r := &row{key: key}
	rows, err := s.do.load.Query([]byte(key))
	if err != nil {
		r.err = s.fault(err)
		return r
	}
	defer rows.Close()
	if !rows.Next() {
		r.err = s.fault(rows.Err())
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

// kept reports whether the file says of a key what r says. A take of nothing
// changes an account all the same if the clock went back or the limits have
// changed. Unless that is kept, the next one changes it again, and what is in
// use then lasts for ever.
func (s *Store) kept(r *row, now int64) bool {
	file := s.load(r.key)
	file.account.Fit(nil, now) // tells it the time, and nothing else
	before, _ := file.account.AppendBinary(nil)
	after, _ := r.account.AppendBinary(nil)
	return bytes.Equal(before, after)
}

// save writes a row. It reports whether that moves it in the index.
func (s *Store) save(r *row) (moves bool, err error) {
	s.bytes, _ = r.account.AppendBinary(s.bytes[:0])
	fullAt := roundUp(r.account.FullAt())
	statement := s.do.update
	if moves = !r.stored || fullAt != r.fullAt; moves {
		statement = s.do.upsert
	}
	_, err = statement.Exec([]byte(r.key), fullAt, s.bytes)
	r.stored, r.fullAt = true, fullAt
	return moves, s.fault(err)
}

// roundUp rounds a time up to a minute or so: no row moves in the index more
// often than that. It leaves the end of time as it is.
func roundUp(t int64) int64 {
	const minute = 1 << 36
	return max(t, (t+minute-1)&^(minute-1))
}
