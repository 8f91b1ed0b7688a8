package redisstore

import (
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// observedKey is what Redis last said about a key.
type observedKey struct {
	key string
	*observation
}

// observedIn returns what Redis last said about the keys of a part of the keyspace, as far as it still
// counts.
func (b *ledgers) observedIn(in func(key string) bool) (all []observedKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	for key := range b.observed.keys {
		if !in(key) {
			continue
		}
		if h := b.observed.at(key, now); h != nil {
			all = append(all, observedKey{key, h})
		}
	}
	return all
}

// awaitCalls waits until the answers to all takes that are under way are recorded, for at most a time:
// a server may have granted them just before it forgot everything.
func (b *ledgers) awaitCalls(most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*pendingTake
	for _, some := range b.observed.pending {
		all = append(all, some...)
	}
	for late := time.Now().Add(most); len(all) > 0 && time.Now().Before(late); {
		b.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.mu.Lock()
		all = slices.DeleteFunc(all, func(q *pendingTake) bool { return q.ended })
	}
}

// restore puts back what a server has forgotten: afterwards it counts at least as much as it last
// said to this node. Every node does that, and what counts is the most that any of them knows.
func (r *remote) restore(all []observedKey) error {
	for some := range slices.Chunk(all, maxCharges) {
		for done := false; !done; { // until no other node has changed the accounts meanwhile
			var err error
			if done, err = r.raise(some); err != nil {
				return err
			}
		}
	}
	return nil
}

// raise raises accounts to what is known about them. It does nothing, and returns false, if another node
// changes one of them meanwhile.
func (r *remote) raise(all []observedKey) (done bool, err error) {
	charges := make([]store.Charge, len(all))
	for i := range all {
		charges[i] = store.Charge{Key: all[i].key, Limits: all[i].limits}
	}
	o := r.reading(charges)
	if err := r.link.direct(o); err != nil {
		return false, err
	}
	accounts, at, err := readAccounts(o, len(all))
	if err != nil {
		return false, err
	}
	for i := range all {
		all[i].raise(accounts[i].account, at)
	}
	if o, err = r.replacement(charges, accounts); err != nil {
		return false, err
	}
	err = r.link.direct(o)
	return err == nil && statusOf(o.answer) != denied, err
}

// raise charges an account for what it has used less than the observation says.
func (h *observation) raise(a *limit.Account, now int64) {
	var known limit.Account
	for _, u := range h.pastUses(whole) {
		impose(&known, u.limits, u.at, u.n)
	}
	if now >= a.FullAt() {
		*a = known
		return
	}
	g := ledger{limits: h.limits, shares: h.limits, account: known, reported: *a}
	for b := g.nextBill(now); b != nil; b = g.nextBill(now) {
		impose(&g.reported, b.limits, now, b.n)
	}
	*a = g.reported
}
