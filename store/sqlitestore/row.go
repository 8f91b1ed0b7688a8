package sqlitestore

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"

	"dappco.re/go/core/go-ratelimit/limit"
)

// row is the account of one key, as the file has it: see changesSchema.
type row struct {
	key     string
	account limit.Account
	err     error // why the account cannot be read

	stored   bool   // the file has it
	inLedger bool   // the ledger has it
	fullAt   int64  // the column full_at of the ledger: see roundUp
	unfolded bool   // there are changes of it
	lasting  []byte // what lasts of the account, as the file has it: see differs

	// The following fields are about the present transaction.
	touched bool // the transaction has used the row
	dirty   bool // the account may differ from the one in the file: see differs
	changed bool // the account differs from the one in the file
}

// load returns the row of a key from the ledger. If that has none, its account is empty.
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
	r.stored, r.inLedger = true, true
	if err := r.scan(rows); err != nil {
		r.err = s.corrupt(key, err)
	}
	r.remember()
	return r
}

func (r *row) scan(rows *sql.Rows) error {
	var account sql.RawBytes
	if err := rows.Scan(&r.fullAt, &account); err != nil {
		return fmt.Errorf("%w: %w", limit.ErrCorrupt, err)
	}
	if len(account) == 0 {
		return fmt.Errorf("%w: no bytes", limit.ErrCorrupt)
	}
	return r.account.ApplyChanges(account)
}

// remember notes that the account is as the file has it.
func (r *row) remember() { r.lasting, _ = r.account.AppendLasting(r.lasting[:0]) }

// differs reports whether the account differs from the one in the file in anything but that time has passed. A denied
// take can still change an account, if the clock went back or the limits have changed. If that change were not written,
// each later take would make it again, and what is in use would never end.
func (s *Store) differs(r *row) bool {
	if r.account.FullAt() == 0 { // nothing is in use any more
		return false
	}
	var same bool
	s.bytes, same = r.account.AppendLasting(s.bytes[:0])
	return !same || !bytes.Equal(s.bytes, r.lasting)
}

// save writes a row to the ledger, and reports whether that moves it in the index. An account that cannot be read stays
// one: to forget a number must not lift a limit.
func (s *Store) save(r *row) (moves bool, err error) {
	s.bytes, _ = r.account.AppendBinary(s.bytes[:0])
	fullAt := roundUp(r.account.FullAt())
	if r.err != nil {
		s.bytes, fullAt = s.bytes[:0], math.MaxInt64
	}
	statement := s.do.update
	if moves = !r.inLedger || fullAt != r.fullAt; moves {
		statement = s.do.upsert
	}
	_, err = statement.Exec([]byte(r.key), fullAt, s.bytes)
	r.stored, r.inLedger, r.fullAt = true, true, fullAt
	return moves, s.describe(err)
}

// roundUp rounds a time up to about a minute, so that a row does not move in the index more often
// than that. The largest times stay as they are.
func roundUp(t int64) int64 {
	const minute = 1 << 36
	return max(t, (t+minute-1)&^(minute-1))
}
