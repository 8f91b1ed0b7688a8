package sqlitestore

import (
	"database/sql"
	"errors"

	"dappco.re/go/core/go-ratelimit/limit"
)

// clockSchema makes the table with the anchor of the file's time: one row.
const clockSchema = `
CREATE TABLE IF NOT EXISTS clock (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	boot     BLOB NOT NULL,    -- the boot of the machine
	began_at INTEGER NOT NULL  -- when it began by the file's time, in Unix nanoseconds
) STRICT`

// anchor ties the file's time to a boot of the machine: the file's time is beganAt and what has elapsed
// since the boot. So all processes of the machine read the same time, and setting the wall clock does
// not change how old a use is.
//
// Other processes change it only after the wall clock was set. So if they have changed the file, a process reads it
// again when it sees such a step itself, and otherwise once a second.
type anchor struct {
	boot    string
	beganAt int64

	known   bool    // it was read from the file, and no transaction has failed since
	changed bool    // other processes have changed the file since
	read    reading // when it was read
}

// maxDrift is by how much the file's time may differ from the wall clock, which days and months follow.
const maxDrift = int64(1e9)

// reading is one reading of all clocks, in nanoseconds.
type reading struct {
	wall, elapsed int64
	boot          string
}

// now returns the file's time, in a transaction. If the wall clock was set by more than maxDrift, and the
// transaction writes, the file's time follows it, and all accounts are moved with it. Without a
// clock of elapsed time, the wall clock is the file's time.
func (s *Store) now(writes bool) (int64, error) {
	r, ok := s.read()
	if !ok {
		return r.wall, nil
	}
	a := &s.batch.anchor
	if a.mayDiffer(r) {
		if err := s.readAnchor(r); err != nil {
			return 0, err
		}
	}
	if a.boot != r.boot { // nothing but the wall clock knows how long the machine was off
		if !writes {
			return r.wall, nil
		}
		return r.wall, s.writeAnchor(r, r.wall-r.elapsed)
	}
	now := a.beganAt + r.elapsed
	drift := r.wall - now
	for again := 0; again < 2 && writes && abs(drift) >= maxDrift; again++ { // it may have been interrupted between two clocks
		if r, ok = s.read(); ok && abs(r.wall-a.beganAt-r.elapsed) < abs(drift) {
			now = a.beganAt + r.elapsed
			drift = r.wall - now
		}
	}
	if !writes || abs(drift) < maxDrift {
		return now, nil
	}
	if err := s.shift(now, drift); err != nil {
		return 0, err
	}
	return now + drift, s.writeAnchor(r, a.beganAt+drift)
}

// read reads all clocks. ok is false if there is only the wall clock.
func (s *Store) read() (r reading, ok bool) {
	if s.uptime != nil {
		r.boot, r.elapsed, ok = s.uptime()
	}
	r.wall = s.clock()
	return r, ok
}

func abs(n int64) int64 { return max(n, -n) }

// mayDiffer reports whether the file may have another anchor by now.
func (a *anchor) mayDiffer(r reading) bool {
	const often, little = int64(1e9), int64(1e6)
	step := (r.wall - r.elapsed) - (a.read.wall - a.read.elapsed)
	return !a.known || a.boot != r.boot || a.changed && (r.elapsed-a.read.elapsed >= often || abs(step) >= little)
}

// readAnchor reads the anchor from the file. A new file has none.
func (s *Store) readAnchor(r reading) error {
	var boot []byte
	var beganAt int64
	if err := s.do.anchor.QueryRow().Scan(&boot, &beganAt); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s.describe(err)
	}
	s.batch.anchor = anchor{boot: string(boot), beganAt: beganAt, known: true, read: r}
	return nil
}

func (s *Store) writeAnchor(r reading, beganAt int64) error {
	if _, err := s.do.setAnchor.Exec([]byte(r.boot), beganAt); err != nil {
		return s.describe(err)
	}
	s.batch.anchor = anchor{boot: r.boot, beganAt: beganAt, known: true, read: r}
	return nil
}

// shift moves all accounts to a time that is set by d, so that what they count keeps its age. An account that
// cannot be read stays as it is.
func (s *Store) shift(now, d int64) error {
	s.batch.now = now
	if err := s.batch.fold(); err != nil {
		return err
	}
	clear(s.batch.rows)
	t := &tx{s: s, now: now}
	if err := t.Sweep(); err != nil {
		return err
	}
	keys, err := t.Keys("")
	if err != nil {
		return err
	}
	for _, key := range keys {
		r := s.load(key)
		if errors.Is(r.err, limit.ErrCorrupt) {
			continue
		}
		if r.err != nil {
			return r.err
		}
		r.account.Shift(now, d)
		if _, err := s.save(r); err != nil {
			return err
		}
	}
	return nil
}
