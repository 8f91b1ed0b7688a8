package sqlitestore

import (
	"errors"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// batch is what a transaction knows of the keys that it was asked for. Nothing
// of it outlives the transaction.
type batch struct {
	s     *Store
	now   int64
	rows  map[string]*row
	fault error // of the file, and so of everybody

	asked    []*row // by the step that runs
	accounts []*limit.Account
}

var errPanicked = errors.New("ratelimit: a call that shared the transaction has panicked")

// carry lets ops take their steps in the transaction that has begun, and ends
// it. What they did happens, or each of them has an error and nothing does.
func (s *Store) carry(ops []*op) {
	err := errPanicked
	defer func() {
		clear(s.batch.rows)
		if err == nil {
			return
		}
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

// row returns the row of a key, which it loads once.
func (b *batch) row(key string) (*row, error) {
	if r := b.rows[key]; r != nil {
		return r, r.err
	}
	r := b.s.load(key)
	if r.err != nil && !errors.Is(r.err, limit.ErrCorrupt) {
		b.fault = r.err
	}
	if b.rows == nil {
		b.rows = map[string]*row{}
	}
	b.rows[key] = r
	return r, r.err
}

// flush writes what has changed, and forgets some keys of which nothing is in
// use: two for each that has come, so that those in use are most of all.
func (b *batch) flush() error {
	came := 0
	for key, r := range b.rows {
		if !r.changed && (!r.taken || b.s.kept(key, r, b.now)) {
			continue
		}
		moves, err := b.s.save(key, r)
		if err != nil {
			return err
		}
		if moves {
			came++
		}
	}
	if came == 0 {
		return nil
	}
	_, err := b.s.do.sweep.Exec(b.now, 2*came)
	return b.s.fault(err)
}
