package sqlitestore

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const unwritable = "it, or its folder, cannot be written to"

// reasons say what SQLite's codes mean to whoever runs the program.
var reasons = map[int]string{
	sqlite3.SQLITE_READONLY: unwritable,
	sqlite3.SQLITE_CANTOPEN: unwritable,
	sqlite3.SQLITE_PERM:     unwritable,
	sqlite3.SQLITE_FULL:     "the disk is full",
	sqlite3.SQLITE_NOTADB:   "it is not a SQLite database",
	sqlite3.SQLITE_CORRUPT:  "the database is damaged",
}

// fault returns an error that names the file.
func (s *Store) fault(err error) error {
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
