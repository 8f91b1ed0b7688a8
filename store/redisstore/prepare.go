package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// The script does not handle rare cases: a clock that went back, a limit that has changed, a log with so
// many entries that neighbours merge. Then the accounts are read, package limit changes them, and they are
// written unless another call has changed them meanwhile.

// prepare makes accounts ready for a take, which the script then decides.
func (r *remote) prepare(ctx context.Context, charges []store.Charge) error {
	accounts, at, err := r.read(ctx, charges)
	if err != nil {
		return err
	}
	return r.fitEach(ctx, charges, accounts, at)
}

// fitEach adapts accounts to the limits of charges. An account that another call has changed since it was
// read stays as it is: the take is tried again anyway. Calls that share a busy account with others would
// never be done if all of their accounts had to be unchanged.
func (r *remote) fitEach(ctx context.Context, charges []store.Charge, accounts []stored, at int64) error {
	for i, c := range charges {
		if err := accounts[i].fit(c.Limits, at); err != nil {
			return fmt.Errorf("%w: %q: %w", store.ErrInvalid, c.Key, err)
		}
	}
	o, err := r.replacement(stepReplaceEach, charges, accounts)
	if err != nil {
		return err
	}
	return r.do(ctx, o)
}

// fit adapts an account to limits: it adds missing windows to the log, and removes counters that are
// full again.
func (s *stored) fit(limits []limit.Limit, at int64) error {
	s.account.Fit(limits, at)
	for _, l := range limits {
		s.account.Check(l, at, 0)
	}
	shot := snapshotOf(s.account)
	shot.counters = slices.DeleteFunc(shot.counters, func(c counterState) bool {
		return s.account.Check(c.limit, at, 0).ResetAfter == 0 && c.refunded == backlog{} && c.changes == 0 && c.beyond == 0
	})
	isNew := func(l limit.Limit) bool { return l.Algorithm() != limit.SlidingLog && shot.find(l) == nil }
	if len(shot.counters)+len(limits) > maxCounters && slices.ContainsFunc(limits, isNew) {
		return errTooManyCounters
	}
	return shot.restore(s.account)
}

// peekLocally answers a peek that the script could not answer.
func (r *remote) peekLocally(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	all, at, err := r.read(ctx, charges)
	if err != nil {
		return nil, err
	}
	peeked := make([]accounts.Charge, len(charges))
	for i, c := range charges {
		peeked[i] = accounts.Charge{Account: all[i].account, Limits: c.Limits, N: c.N}
	}
	return accounts.Peek(peeked, at), nil
}

// settleLocally settles takes that the script could not settle.
func (r *remote) settleLocally(ctx context.Context, s settlement) (status, error) {
	charges := make([]store.Charge, len(s.takes))
	for i, t := range s.takes {
		charges[i] = t.charge
	}
	accounts, at, err := r.read(ctx, charges)
	if err != nil {
		return 0, err
	}
	for i, t := range s.takes {
		accounts[i].account.Settle(t.charge.Limits, t.Receipt, at, s.actual[i])
	}
	return r.replace(ctx, charges, accounts, s)
}

// Read returns the accounts of the keys, and the time in Unix nanoseconds as of which they are
// read. A key that has used nothing has a zero account.
func (r *remote) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	charges := make([]store.Charge, len(keys))
	for i, key := range keys {
		charges[i].Key = key
	}
	all := make([]*limit.Account, len(keys))
	latest := int64(0)
	for _, part := range r.byPart(len(keys), func(i int) string { return keys[i] }) {
		for some := range slices.Chunk(part, maxCharges) {
			accounts, at, err := r.read(ctx, pick(charges, some))
			if err != nil {
				return nil, 0, err
			}
			latest = max(latest, at)
			for n, i := range some {
				all[i] = accounts[n].account
			}
		}
	}
	return all, cmp.Or(latest, r.link.now()), r.link.alive()
}

// read returns the accounts of the charges' keys.
func (r *remote) read(ctx context.Context, charges []store.Charge) ([]stored, int64, error) {
	o := r.reading(charges)
	if err := r.do(ctx, o); err != nil {
		return nil, 0, err
	}
	return readAccounts(o, len(charges))
}

// reading returns the op that reads the accounts of the charges' keys.
func (r *remote) reading(charges []store.Charge) *op {
	q := r.newRequest(stepRead, charges)
	for _, c := range charges {
		q.key(c.Key)
	}
	q.o.reads = true
	return q.op()
}

// readAccounts decodes the answer to an op that reads n accounts.
func readAccounts(o *op, n int) ([]stored, int64, error) {
	answer := reader{rest: o.answer}
	answer.byte()
	accounts := make([]stored, n)
	for i := range accounts {
		bytes := answer.bytes()
		if answer.err != nil {
			return nil, 0, answer.err
		}
		var err error
		accounts[i], err = readAccount(bytes)
		if err != nil {
			return nil, 0, err
		}
	}
	return accounts, o.at, nil
}

// replace writes accounts. If another call has changed one of them since it was read, replace writes
// nothing, and its status is unready.
func (r *remote) replace(ctx context.Context, charges []store.Charge, accounts []stored, s settlement) (status, error) {
	o, err := r.replacement(stepReplace, charges, accounts)
	if err != nil {
		return 0, err
	}
	s.change(o)
	if err := r.do(ctx, o); err != nil {
		return 0, err
	}
	if statusOf(o.answer) == denied {
		return unready, nil
	}
	return allowed, nil
}

// replacement returns the op that writes accounts. The step is stepReplace or stepReplaceEach.
func (r *remote) replacement(step byte, charges []store.Charge, accounts []stored) (*op, error) {
	q := r.newRequest(step, charges)
	for i, c := range charges {
		account, err := accounts[i].write()
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", store.ErrInvalid, c.Key, err)
		}
		q.key(c.Key)
		q.w.bytes(accounts[i].bytes)
		q.w.bytes(account)
	}
	return q.op(), nil
}
