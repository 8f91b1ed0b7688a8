package sqlitestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// patiently calls try until others do not have the file locked, for as long as
// a call that came at since may wait. SQLite would wait too, but longer each
// time: of processes that are busy, the last to come would wait for seconds.
func (s *Store) patiently(ctx context.Context, since time.Time, try func() error) error {
	for tries := 0; ; tries++ {
		err := try()
		switch {
		case err == nil:
			return nil
		case !busy(err):
			return s.fault(err)
		case ctx.Err() != nil:
			return s.left(ctx)
		case time.Since(since) >= s.patience:
			return fmt.Errorf("ratelimit: %s: others have had it locked for more than %v: %w", s.path, s.patience, err)
		case tries < 1000: // for a tenth of a second or so
			nap(time.Duration(20+rand.IntN(80)) * time.Microsecond)
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// begin begins a transaction that has the file to itself, or one that reads
// what is in it by now. If others have changed it since the last, what is
// known of it is forgotten.
func (s *Store) begin(ctx context.Context, since time.Time, writes bool) error {
	begin := s.do.begin
	if writes {
		begin = s.do.beginImmediate
	}
	return s.patiently(ctx, since, func() error {
		if _, err := begin.Exec(); err != nil {
			return err
		}
		var version int64
		err := s.do.version.QueryRow().Scan(&version)
		if err != nil {
			s.do.rollback.Exec()
			return err
		}
		s.batch.heed(version)
		return nil
	})
}

// transact calls fn in a transaction that has the file to itself. Unless it
// returns nil, nothing of it has happened.
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
		return s.fault(err)
	}
	s.trim()
	return nil
}

func (s *Store) left(ctx context.Context) error {
	return fmt.Errorf("ratelimit: %s: gave up waiting for a turn: %w", s.path, ctx.Err())
}
