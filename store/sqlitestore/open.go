package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// version is the version of the schema, which a file has in PRAGMA user_version. A file without one
// is new, or has only the tables of an older program.
const version = 3

const schema = `
CREATE TABLE ledger (
	key     BLOB PRIMARY KEY,
	full_at INTEGER NOT NULL, -- the time from which on nothing of the account is in use, rounded up
	account BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_full_at ON ledger (full_at);
PRAGMA user_version = %d`

// fromVersion1 and fromVersion2 turn the tables of older versions into those of this one. An older program that has the
// file open at the same time, and does not know the journal, does not find its tables any more.
const (
	fromVersion1 = `
ALTER TABLE accounts RENAME TO ledger;` + fromVersion2
	fromVersion2 = `
CREATE TABLE IF NOT EXISTS ledger_changes (id INTEGER PRIMARY KEY, changes BLOB);
CREATE TABLE IF NOT EXISTS books_journal (id INTEGER PRIMARY KEY, at INTEGER, entries BLOB);` + journalSchema + `;
INSERT OR REPLACE INTO journal SELECT id, changes, 0, NULL FROM ledger_changes;
INSERT INTO journal (hour, entries) SELECT at, entries FROM books_journal ORDER BY id;
DROP TABLE ledger_changes;
DROP TABLE books_journal;
PRAGMA user_version = %d`
)

// statements are prepared once for all calls.
type statements struct {
	begin, beginImmediate, commit, rollback *sql.Stmt
	format                                  *sql.Stmt
	load, update, upsert, sweep             *sql.Stmt
	addRow, dropRows                        *sql.Stmt
	logLength, checkpoint                   *sql.Stmt
	lastChange                              *sql.Stmt
	anchor, setAnchor                       *sql.Stmt
	bookAdd, bookFind, bookInsert           *sql.Stmt
	pageFind, pageAdd                       *sql.Stmt
}

func (s *Store) open() error {
	uri, err := s.file()
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", uri); err != nil {
		return s.describe(err)
	}
	s.db.SetMaxOpenConns(1)
	if err := s.connect(); err != nil {
		s.disconnect()
		return err
	}
	return nil
}

// creating is locked while a store creates its file and closes it again: that must not drop the locks
// that another store of this process has on the same file.
var creating sync.Mutex

// file returns the URI of the file. It creates the file if there is none.
func (s *Store) file() (string, error) {
	if s.path == "" {
		return "", errors.New("ratelimit: the path of a store must not be empty")
	}
	path, err := filepath.Abs(s.path)
	if err != nil {
		return "", s.describe(err)
	}
	s.messenger.path = path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", s.describe(err)
	}
	creating.Lock()
	defer creating.Unlock()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("ratelimit: %s: it must be a file, and is %v", s.path, info.Mode())
	}
	created, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = created.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", s.describe(err)
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // the path begins with a drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// connect opens the one connection, and creates the tables if there are none.
func (s *Store) connect() (err error) {
	if s.conn, err = s.db.Conn(context.Background()); err != nil {
		return s.describe(err)
	}
	err = s.prepare([]preparation{
		{&s.do.begin, "BEGIN"},
		{&s.do.beginImmediate, "BEGIN IMMEDIATE"},
		{&s.do.format, "PRAGMA user_version"},
		{&s.do.commit, "COMMIT"},
		{&s.do.rollback, "ROLLBACK"},
	})
	if err != nil {
		return s.describe(err)
	}
	if err := s.conn.Raw(s.writable); err != nil {
		return err
	}
	since := time.Now()
	if err := s.retryWhileBusy(context.Background(), since, s.useWAL); err != nil {
		return err
	}
	if err := s.migrate(since); err != nil {
		return err
	}
	calls := []preparation{
		{&s.do.load, "SELECT full_at, account FROM ledger WHERE key = ?1"},
		{&s.do.update, "UPDATE ledger SET account = ?3 WHERE key = ?1"},
		{&s.do.upsert, "INSERT OR REPLACE INTO ledger (key, full_at, account) VALUES (?1, ?2, ?3)"},
		{&s.do.sweep, "DELETE FROM ledger WHERE key IN (SELECT key FROM ledger WHERE full_at <= ?1 LIMIT ?2)"},
		{&s.do.addRow, "INSERT INTO journal VALUES (?1, ?2, ?3, ?4)"},
		{&s.do.dropRows, "DELETE FROM journal"},
		{&s.do.logLength, "PRAGMA wal_checkpoint(NOOP)"},
		{&s.do.checkpoint, "PRAGMA wal_checkpoint(RESTART)"},
		{&s.do.anchor, "SELECT boot, began_at FROM clock"},
		{&s.do.setAnchor, "INSERT OR REPLACE INTO clock (one, boot, began_at) VALUES (1, ?1, ?2)"},
		{&s.do.lastChange, "SELECT ifnull(max(change), 0) FROM settings"},
	}
	calls = append(calls, s.bookStatements()...)
	return s.retryWhileBusy(context.Background(), since, func() error { return s.prepare(calls) })
}

type preparation struct {
	statement **sql.Stmt
	text      string
}

func (s *Store) prepare(all []preparation) (err error) {
	for _, p := range all {
		if *p.statement, err = s.conn.PrepareContext(context.Background(), p.text); err != nil {
			return err
		}
		s.prepared = append(s.prepared, *p.statement)
	}
	return nil
}

// writable returns an error if the file cannot be written to. SQLite would report it only at the
// first write.
func (s *Store) writable(conn any) error {
	readOnly, err := conn.(interface{ IsReadOnly(string) (bool, error) }).IsReadOnly("main")
	if err != nil {
		return s.describe(err)
	}
	if readOnly {
		return fmt.Errorf("ratelimit: %s: %s", s.path, reasonUnwritable)
	}
	return nil
}

// useWAL switches the file to a write-ahead log.
func (s *Store) useWAL() error {
	if _, err := s.conn.ExecContext(context.Background(), "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0"); err != nil {
		return err
	}
	var mode string
	if err := s.conn.QueryRowContext(context.Background(), "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("it cannot have a write-ahead log, and keeps its journal as %q", mode)
	}
	return nil
}

// migrate creates missing tables and columns. The first programs that wrote version 1 had no settings, no
// books, no deposits and no clock.
func (s *Store) migrate(since time.Time) error {
	return s.transact(context.Background(), since, func() error {
		var found int
		if err := s.do.format.QueryRow().Scan(&found); err != nil {
			return s.describe(err)
		}
		if found < 0 || found > version {
			return fmt.Errorf("ratelimit: %s: its version is %d: this program knows %d", s.path, found, version)
		}
		missing := journalSchema + ";" + settingsSchema + ";" + booksSchema + ";" + depositsSchema + ";" + clockSchema
		switch found {
		case 0:
			missing = fmt.Sprintf(schema, version) + ";" + missing
		case 1:
			missing = fmt.Sprintf(fromVersion1, version) + ";" + missing
		case 2:
			missing = fmt.Sprintf(fromVersion2, version) + ";" + missing
		}
		if _, err := s.conn.ExecContext(context.Background(), missing); err != nil {
			return s.describe(err)
		}
		return s.addUnits()
	})
}

// disconnect folds the journal, if no other process has the file locked, and closes the connection.
func (s *Store) disconnect() error {
	if s.batch.journal.last > s.batch.journal.first {
		s.transact(context.Background(), time.Now().Add(-s.busyTimeout), func() error {
			return cmp.Or(s.prepareBatch(true), s.batch.fold())
		})
	}
	for _, statement := range s.prepared {
		statement.Close() // otherwise the connection stays open
	}
	if s.conn != nil {
		s.conn.Close()
	}
	return s.describe(s.db.Close())
}
