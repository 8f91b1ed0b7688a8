// Package sqlitestore is a [store.Store] in a SQLite file, which any number of
// processes on one machine share exactly.
//
// Every take is in a transaction that locks the file, so two processes never take
// the same tokens. Calls that arrive while one transaction runs wait together, and
// share the next transaction.
//
// Takes that were admitted survive a process that is killed: a transaction is with
// the operating system before its callers return. It is not forced to the disk each
// time (synchronous=NORMAL), which would take longer than everything else. So a power
// cut can lose the last moments, though never half of a transaction, and what was
// admitted in them may be admitted again.
//
// Uses are as old as the machine's clock of elapsed time says, which all processes share and nobody
// sets. The wall clock says how much time has passed between two boots of the machine, and when a day or a month
// ends. If it is set, the file's time follows with the next transaction that writes, and
// everything in use keeps its age: see [limit.Account.Shift]. On systems other than Linux and macOS, the wall clock
// alone counts.
//
// Beside the accounts it keeps the books, and settings, and notifies their watchers of changes. Processes that
// share the file can also send each other messages, through sockets in a directory beside it, whose
// name ends in ".peers" and which is there only while somebody subscribes.
//
// The file must be on a local disk, and must not be deleted or replaced while
// a process has it open. Such a process should not open the file in any other way:
// closing a file drops all locks that its process has on it.
package sqlitestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/uptime"
	"dappco.re/go/core/go-ratelimit/store"
)

// Store is a [store.Store] in a SQLite file. Make one with [Open].
type Store struct {
	path        string
	clock       func() int64                                    // the wall clock, in Unix nanoseconds
	uptime      func() (boot string, elapsed int64, known bool) // the clock of elapsed time: see anchor; nil if there is none
	busyTimeout time.Duration                                   // how long a call waits while another process has the file locked
	maxBatch    int                                             // the most calls in one transaction
	maxLines    int                                             // the most separate lines of an hour in the books
	close       func() error
	watchers    watchers // are notified when settings change
	messenger   messenger

	// mu guards the following fields.
	mu      sync.Mutex
	queue   []*operation
	came    uint64 // how many calls have come, for ever
	working bool   // a caller runs a transaction, or is about to
	armed   bool   // a timer runs the calls that nobody waits for: see submitLater
	closed  atomic.Bool

	unsettled atomic.Int64 // takes that were admitted and are not settled

	// The following fields belong to the caller that runs a transaction.
	db        *sql.DB
	conn      *sql.Conn
	do        statements
	prepared  []*sql.Stmt // all statements
	batch     batch
	bytes     []byte // memory for the account that is being saved
	sinceTrim int    // the number of transactions since the length of the log was last checked
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path. If there is no file, Open creates one that only this user
// can read. The path is the name of a file, whatever characters it has: it cannot contain options of
// SQLite, nor stand for a database in memory (see [store.NewMemory]).
//
// Open returns an error for a file that cannot be written to. While another process has the file
// locked, it waits as all calls do, for at most five seconds.
func Open(path string) (*Store, error) {
	s := newStore(path)
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(path string) *Store {
	s := &Store{
		path:        path,
		clock:       func() int64 { return time.Now().UnixNano() },
		uptime:      uptime.Read,
		busyTimeout: 5 * time.Second,
		maxBatch:    1024,
		maxLines:    books.MaxLines,
		messenger:   messenger{id: rand.Text()[:idLength]},
	}
	s.close = sync.OnceValue(func() error {
		s.messenger.subscriptions.Close()
		defer s.messenger.peers.close()
		return s.submit(&operation{ctx: context.Background(), exclusive: s.disconnect, closes: true})
	})
	return s
}

// Close ends subscriptions, and closes the file once all calls that came before are done. Later calls get
// [store.ErrClosed].
func (s *Store) Close() error { return s.close() }

// Local reports that all users of the store are on this machine.
func (s *Store) Local() bool { return true }
