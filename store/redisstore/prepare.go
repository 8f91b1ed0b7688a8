package redisstore

import (
	"context"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// What is rare the script does not do: a clock that went back, a limit that has
// changed, a log that is full. Then the accounts are read, package limit does it,
// and they are written if nobody has changed them meanwhile.

// prepare makes accounts ready for a take, which the script then decides.
func (r *remote) prepare(ctx context.Context, charges []store.Charge) error {
	accounts, at, err := r.read(ctx, charges)
	if err != nil {
		return err
	}
	for i, c := range charges {
		accounts[i].prepare(c.Limits, at)
	}
	_, err = r.replace(ctx, charges, accounts)
	return err
}

// prepare makes an account ready for a take. A lease whose limits have changed is
// charged to those that they are now.
func (s *stored) prepare(limits []limit.Limit, at int64) {
	s.account.Prepare(limits, at)
	s.leases = slices.DeleteFunc(s.leases, func(l leased) bool {
		if l.covers(limits) {
			return false
		}
		s.account.Settle(limits, limit.ReceiptOf(0, at), at, l.amount())
		return true
	})
}

// peekHere answers a peek that the script could not.
func (r *remote) peekHere(ctx context.Context, charges []store.Charge) ([]limit.Decision, error) {
	accounts, at, err := r.read(ctx, charges)
	if err != nil {
		return nil, err
	}
	return store.Peek(accountsOf(accounts), charges, at), nil
}

// settleHere settles what the script could not.
func (r *remote) settleHere(ctx context.Context, takes []*taken, actual []int64) (status, error) {
	charges := make([]store.Charge, len(takes))
	for i, t := range takes {
		charges[i] = t.charge
	}
	accounts, at, err := r.read(ctx, charges)
	if err != nil {
		return 0, err
	}
	for i, t := range takes {
		accounts[i].account.Settle(t.charge.Limits, t.Receipt, at, actual[i])
	}
	return r.replace(ctx, charges, accounts)
}

// Read returns what each of the keys has used, and as of which time in Unix
// nanoseconds. That of a key which has used nothing is a zero account.
func (r *remote) Read(ctx context.Context, keys ...string) ([]*limit.Account, int64, error) {
	charges := make([]store.Charge, len(keys))
	for i, key := range keys {
		charges[i].Key = key
	}
	all := make([]*limit.Account, len(keys))
	latest := r.link.now()
	for k, part := range r.byPart(len(keys), func(i int) string { return keys[i] }) {
		accounts, at, err := r.read(ctx, pick(charges, part))
		if err != nil {
			return nil, 0, err
		}
		if k == 0 || at > latest {
			latest = at
		}
		for n, i := range part {
			all[i] = accounts[n].account
		}
	}
	return all, latest, r.link.alive()
}

func accountsOf(all []stored) []*limit.Account {
	accounts := make([]*limit.Account, len(all))
	for i := range all {
		accounts[i] = all[i].account
	}
	return accounts
}

// read returns the accounts of the charges' keys.
func (r *remote) read(ctx context.Context, charges []store.Charge) ([]stored, int64, error) {
	q := r.newRequest(toRead, charges)
	for _, c := range charges {
		q.key(c.Key, true)
	}
	q.o.reads = true
	o := q.op()
	if err := r.do(ctx, o); err != nil {
		return nil, 0, err
	}
	answer := reader{rest: o.answer}
	answer.byte()
	accounts := make([]stored, len(charges))
	for i := range accounts {
		bytes, ring := answer.bytes(), answer.bytes()
		if answer.err != nil {
			return nil, 0, answer.err
		}
		var err error
		if accounts[i], err = readAccount(bytes, ring); err != nil {
			return nil, 0, err
		}
	}
	return accounts, o.at, nil
}

// replace writes accounts as they have become. It is unready if others have
// changed one since it was read: then nothing is written.
func (r *remote) replace(ctx context.Context, charges []store.Charge, accounts []stored) (status, error) {
	q := r.newRequest(toReplace, charges)
	for i, c := range charges {
		account, ring := accounts[i].write()
		q.key(c.Key, true)
		q.w.bytes(accounts[i].bytes)
		q.w.bytes(account)
		q.w.bytes(ring)
	}
	o := q.op()
	if err := r.do(ctx, o); err != nil {
		return 0, err
	}
	answer := reader{rest: o.answer}
	if status(answer.byte()) == denied {
		return unready, answer.err
	}
	return allowed, answer.err
}
