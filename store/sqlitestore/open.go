package sqlitestore

import (
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

// version is that of the schema, in PRAGMA user_version. A file that has none
// is new, or of an older program: what tables that has are not ours.
const version = 1

const schema = `
CREATE TABLE accounts (
	key     BLOB PRIMARY KEY,
	full_at INTEGER NOT NULL, -- from when on nothing of it is in use, rounded up
	account BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX accounts_full_at ON accounts (full_at);
PRAGMA user_version = %d`

// statements are those of every call.
type statements struct {
	begin, beginImmediate, version, commit, rollback *sql.Stmt
	format                                           *sql.Stmt
	load, update, upsert, sweep                      *sql.Stmt
	logLength, checkpoint                            *sql.Stmt
	lastChange                                       *sql.Stmt
}

func (s *Store) open() error {
	uri, err := s.file()
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", uri); err != nil {
		return s.fault(err)
	}
	s.db.SetMaxOpenConns(1)
	if err := s.connect(); err != nil {
		s.disconnect()
		return err
	}
	return nil
}

// making is held while a file is made: closing it must not drop the locks of
// another store on it.
var making sync.Mutex

// file returns the file's URI. If there is no file it makes one.
func (s *Store) file() (string, error) {
	if s.path == "" {
		return "", errors.New("ratelimit: the path of a store must not be empty")
	}
	path, err := filepath.Abs(s.path)
	if err != nil {
		return "", s.fault(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", s.fault(err)
	}
	making.Lock()
	defer making.Unlock()
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("ratelimit: %s: it must be a file, and is %v", s.path, info.Mode())
	}
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = made.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", s.fault(err)
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // it begins with a drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// connect makes the one connection, and the tables if there are none.
func (s *Store) connect() (err error) {
	if s.conn, err = s.db.Conn(context.Background()); err != nil {
		return s.fault(err)
	}
	err = s.prepare([]preparation{
		{&s.do.begin, "BEGIN"},
		{&s.do.beginImmediate, "BEGIN IMMEDIATE"},
		{&s.do.version, "PRAGMA data_version"},
		{&s.do.format, "PRAGMA user_version"},
		{&s.do.commit, "COMMIT"},
		{&s.do.rollback, "ROLLBACK"},
	})
	if err != nil {
		return s.fault(err)
	}
	if err := s.conn.Raw(s.writable); err != nil {
		return err
	}
	since := time.Now()
	if err := s.patiently(context.Background(), since, s.keepLog); err != nil {
		return err
	}
	if err := s.migrate(since); err != nil {
		return err
	}
	calls := []preparation{
		{&s.do.load, "SELECT full_at, account FROM accounts WHERE key = ?1"},
		{&s.do.update, "UPDATE accounts SET account = ?3 WHERE key = ?1"},
		{&s.do.upsert, "INSERT OR REPLACE INTO accounts (key, full_at, account) VALUES (?1, ?2, ?3)"},
		{&s.do.sweep, "DELETE FROM accounts WHERE key IN (SELECT key FROM accounts WHERE full_at <= ?1 LIMIT ?2)"},
		{&s.do.logLength, "PRAGMA wal_checkpoint(NOOP)"},
		{&s.do.checkpoint, "PRAGMA wal_checkpoint(RESTART)"},
		{&s.do.lastChange, "SELECT ifnull(max(change), 0) FROM settings"},
	}
	return s.patiently(context.Background(), since, func() error { return s.prepare(calls) })
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

// writable returns an error if the file cannot be written to: SQLite would say
// so only when something is.
func (s *Store) writable(conn any) error {
	readOnly, err := conn.(interface{ IsReadOnly(string) (bool, error) }).IsReadOnly("main")
	if err != nil {
		return s.fault(err)
	}
	if readOnly {
		return fmt.Errorf("ratelimit: %s: %s", s.path, unwritable)
	}
	return nil
}

// keepLog makes the file one with a write-ahead log.
func (s *Store) keepLog() error {
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

// migrate makes the tables that are missing. Files of version 1 did not always have
// settings, and a program that does not know them can use one that has.
func (s *Store) migrate(since time.Time) error {
	return s.transact(context.Background(), since, func() error {
		var found int
		if err := s.do.format.QueryRow().Scan(&found); err != nil {
			return s.fault(err)
		}
		if found < 0 || found > version {
			return fmt.Errorf("ratelimit: %s: its version is %d: this program knows %d", s.path, found, version)
		}
		missing := settingsSchema
		if found < version {
			missing = fmt.Sprintf(schema, version) + ";" + missing
		}
		_, err := s.conn.ExecContext(context.Background(), missing)
		return s.fault(err)
	})
}

func (s *Store) disconnect() error {
	for _, statement := range s.prepared {
		statement.Close() // or else the connection stays open
	}
	if s.conn != nil {
		s.conn.Close()
	}
	return s.fault(s.db.Close())
}
