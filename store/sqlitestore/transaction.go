package sqlitestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
)

// retryWhileBusy calls try until no other process has the file locked, for as long as a call that
// came at since may wait. SQLite would retry too, but after longer and longer waits: of several busy
// processes, the unluckiest one would wait for seconds.
func (s *Store) retryWhileBusy(ctx context.Context, since time.Time, try func() error) error {
	for tries := 0; ; tries++ {
		err := try()
		switch {
		case err == nil:
			return nil
		case !busy(err):
			return s.describe(err)
		case ctx.Err() != nil:
			return s.gaveUp(ctx)
		case time.Since(since) >= s.busyTimeout:
			return fmt.Errorf("ratelimit: %s: others have had it locked for more than %v: %w", s.path, s.busyTimeout, err)
		case tries < 1000: // for about a tenth of a second
			nap(time.Duration(20+rand.IntN(80)) * time.Microsecond)
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// begin begins a transaction: if writes is set, one that locks the file for writing. It drops the
// cached rows if other processes have changed the file since the last transaction.
func (s *Store) begin(ctx context.Context, since time.Time, writes bool) error {
	begin := s.do.begin
	if writes {
		begin = s.do.beginImmediate
	}
	return s.retryWhileBusy(ctx, since, func() error {
		if _, err := begin.Exec(); err != nil {
			return err
		}
		version, err := s.versionNow(writes)
		if err != nil {
			s.do.rollback.Exec()
			return err
		}
		s.batch.setVersion(version)
		return nil
	})
}

// versionNow returns the version of the data in a transaction that has begun. One that does not write begins only with
// its first query.
func (s *Store) versionNow(writes bool) (uint32, error) {
	if !writes {
		var format int
		if err := s.do.format.QueryRow().Scan(&format); err != nil {
			return 0, err
		}
	}
	return s.dataVersion()
}

// dataVersion returns a number that changes when the connection sees that another one has changed the file, which it
// does when it begins a transaction, and with each of its own commits. PRAGMA data_version would leave those out, but
// it is a query.
func (s *Store) dataVersion() (version uint32, err error) {
	err = s.conn.Raw(func(conn any) error {
		version, err = conn.(sqlite.FileControl).FileControlDataVersion("main")
		return err
	})
	return version, err
}

// transact calls fn in a transaction that locks the file for writing, and commits the transaction if
// fn returns nil.
func (s *Store) transact(ctx context.Context, since time.Time, fn func() error) error {
	if err := s.begin(ctx, since, true); err != nil {
		return err
	}
	committed := false
	defer func() {
		s.batch.forget()
		if !committed {
			s.do.rollback.Exec()
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	err := s.commit()
	committed = err == nil
	return err
}

func (s *Store) commit() error {
	if _, err := s.do.commit.Exec(); err != nil {
		return s.describe(err)
	}
	version, err := s.dataVersion()
	if err == nil { // otherwise the next transaction reads anew what others may have changed
		s.batch.version = version
	}
	s.trimLog()
	return nil
}

func (s *Store) gaveUp(ctx context.Context) error {
	return fmt.Errorf("ratelimit: %s: gave up waiting for a turn: %w", s.path, ctx.Err())
}

// maxLogPages is the length of the write-ahead log, in pages, from which on its content is moved to
// the file itself, so that the log begins again.
const maxLogPages = 1000

// trimEvery is the number of transactions after which the length of the log is checked, which is a query.
const trimEvery = 64

// trimLog keeps the write-ahead log short. SQLite's own checkpoint lets other processes write
// meanwhile: with several busy processes it never reaches the end of the log, which grows for ever.
// So trimLog locks the file: the process that has just committed is most often the first to get the
// lock. If it does not get it, or if another process reads, a later transaction tries again.
func (s *Store) trimLog() {
	if s.sinceTrim++; s.sinceTrim < trimEvery {
		return
	}
	s.sinceTrim = 0
	var busy, pages, moved int
	err := s.do.logLength.QueryRow().Scan(&busy, &pages, &moved)
	if err == nil && pages >= maxLogPages && moved < pages {
		s.do.checkpoint.Exec()
	}
}
