package sqlitestore

import (
	"errors"
	"maps"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// batch is a transaction, and what is known of the file. That outlives the
// transaction, for as long as nobody else changes the file.
type batch struct {
	s       *Store
	now     int64
	version int64           // of the file, as SQLite tells it: it differs if others have changed it
	rows    map[string]*row // by their keys
	touched []*row          // by this transaction
	fault   error           // of the file, and so of everybody

	asked    []*row // by the step that runs
	accounts []*limit.Account
}

// mostKnown is how many rows are known at most when a transaction begins.
const mostKnown = 256

// heed begins with what is known, unless the file is not of that version any
// more.
func (b *batch) heed(version int64) {
	if version != b.version || len(b.rows) > mostKnown {
		b.forget()
	}
	b.version = version
}

// forget forgets what is known of the file.
func (b *batch) forget() { clear(b.rows) }

var errPanicked = errors.New("ratelimit: a call that shared the transaction has panicked")

// carry lets ops take their steps in the transaction that has begun, and ends
// it. What they did happens, or each of them has an error and nothing does.
func (s *Store) carry(ops []*op) {
	err := errPanicked
	defer func() {
		s.batch.touched = s.batch.touched[:0]
		if err == nil {
			return
		}
		s.batch.forget()
		s.do.rollback.Exec()
		for _, o := range ops {
			if o.err == nil {
				o.err = err
			}
		}
	}()
	err = s.run(ops)
}

func (s *Store) run(ops []*op) error {
	b := &s.batch
	b.s, b.now, b.fault = s, s.clock(), nil
	for _, o := range ops {
		if o.err = o.step(b); b.fault != nil {
			return b.fault
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	return s.commit()
}

// of returns the accounts of the charges' keys, in their order, until it is
// called again.
func (b *batch) of(charges []store.Charge) ([]*limit.Account, error) {
	b.asked, b.accounts = b.asked[:0], b.accounts[:0]
	for _, c := range charges {
		r, err := b.row(c.Key)
		if err != nil {
			return nil, err
		}
		b.asked, b.accounts = append(b.asked, r), append(b.accounts, &r.account)
	}
	return b.accounts, nil
}

// row returns the row of a key, which it loads if it is not known.
func (b *batch) row(key string) (*row, error) {
	r := b.rows[key]
	if r == nil {
		r = b.s.load(key)
		if r.err != nil && !errors.Is(r.err, limit.ErrCorrupt) {
			b.fault = r.err
		}
		if b.rows == nil {
			b.rows = map[string]*row{}
		}
		b.rows[key] = r
	}
	if !r.touched {
		r.touched = true
		b.touched = append(b.touched, r)
	}
	return r, r.err
}

// flush writes what has changed, and forgets some keys of which nothing is in
// use: two for each that has come, so that those in use are most of all.
func (b *batch) flush() error {
	came := 0
	for _, r := range b.touched {
		switch {
		case r.changed || r.taken && !b.s.kept(r, b.now):
			moves, err := b.s.save(r)
			if err != nil {
				return err
			}
			if moves {
				came++
			}
		case r.used:
			delete(b.rows, r.key)
		}
		r.touched, r.used, r.taken, r.changed = false, false, false, false
	}
	if came == 0 {
		return nil
	}
	_, err := b.s.do.sweep.Exec(b.now, 2*came)
	b.forgetFull()
	return b.s.fault(err)
}

// forgetFull forgets the rows that may have been swept.
func (b *batch) forgetFull() {
	maps.DeleteFunc(b.rows, func(_ string, r *row) bool { return r.fullAt <= b.now })
}
