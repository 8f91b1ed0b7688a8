package sqlitestore

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const reasonUnwritable = "it, or its folder, cannot be written to"

// reasons explain SQLite's codes to the operator.
var reasons = map[int]string{
	sqlite3.SQLITE_READONLY: reasonUnwritable,
	sqlite3.SQLITE_CANTOPEN: reasonUnwritable,
	sqlite3.SQLITE_PERM:     reasonUnwritable,
	sqlite3.SQLITE_FULL:     "the disk is full",
	sqlite3.SQLITE_NOTADB:   "it is not a SQLite database",
	sqlite3.SQLITE_CORRUPT:  "the database is damaged",
}

// describe returns an error that names the file, and explains SQLite's code.
func (s *Store) describe(err error) error {
	if err == nil {
		return nil
	}
	if reason := reasons[code(err)]; reason != "" {
		return fmt.Errorf("ratelimit: %s: %s: %w", s.path, reason, err)
	}
	return fmt.Errorf("ratelimit: %s: %w", s.path, err)
}

// code returns SQLite's primary result code, or 0.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

func busy(err error) bool { return code(err) == sqlite3.SQLITE_BUSY }
