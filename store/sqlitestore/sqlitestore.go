// Package sqlitestore is a [store.Store] in a SQLite file, which any number of
// processes on one machine share exactly.
//
// Every take is in a transaction that has the file to itself, so two processes
// never spend the same room. Calls that arrive while one transaction runs wait
// together, and the next transaction carries them all.
//
// What was admitted survives a process that is killed: a transaction is in the
// operating system's hands before anybody is told of it. It is not forced to
// the disk each time (synchronous=NORMAL), which would take longer than all
// else. So a power cut can lose the last moments, though never half of a
// transaction, and what was admitted in them may be admitted again.
//
// Beside the accounts it keeps settings, which whoever watches them hears of.
//
// The file must be on a local disk, and must not be deleted or replaced while
// a process has it open. Such a process should open it by a Store alone:
// closing a file drops all locks that its process has on it.
package sqlitestore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/store"
)

// Store is a [store.Store] in a SQLite file. Make one with [Open].
type Store struct {
	path     string
	clock    func() int64
	patience time.Duration // for which a call waits while others have the file locked
	most     int           // calls that a transaction carries
	close    func() error
	watchers watchers // of settings

	// mu guards what follows.
	mu      sync.Mutex
	queue   []*op
	working bool // somebody runs a transaction, or is about to
	closed  atomic.Bool

	// What follows belongs to whoever works.
	db        *sql.DB
	conn      *sql.Conn
	do        statements
	prepared  []*sql.Stmt // all of them
	batch     batch
	bytes     []byte        // of the account that is saved
	carried   int           // by the last transaction
	took      time.Duration // the last transaction
	untrimmed int           // transactions since it last looked at the log
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path. If there is none it makes one, for
// this user alone. A path is a file's name: no character makes an option of it,
// and none makes a store in memory (see [store.NewMemory]).
//
// A file that cannot be written to is an error here. While another process has
// it locked, Open waits as all calls do, for five seconds at most.
func Open(path string) (*Store, error) {
	s := newStore(path)
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(path string) *Store {
	s := &Store{
		path:     path,
		clock:    func() int64 { return time.Now().UnixNano() },
		patience: 5 * time.Second,
		most:     1024,
	}
	s.close = sync.OnceValue(func() error {
		return s.enter(&op{ctx: context.Background(), alone: s.disconnect, last: true})
	})
	return s
}

// Close closes the file once all calls that came before are done. Those that
// come later get [store.ErrClosed].
func (s *Store) Close() error { return s.close() }
