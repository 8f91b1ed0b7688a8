package redisstore

import (
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// localReceipt is the receipt of a take that was decided here.
type localReceipt struct {
	all      *ledgers
	charges  []store.Charge
	ledgers  []*ledger
	shares   [][]limit.Limit // the node's shares of the charges' limits, at the time of the take
	receipts []limit.Receipt
	settled  atomic.Bool
}

// lockedLedgers are the ledgers of some charges, while their shards are locked.
type lockedLedgers struct {
	all     *ledgers
	now     int64
	shards  []*ledgerShard // one for each charge
	ledgers []*ledger
	locked  []*ledgerShard // in the order in which they are locked, each once
}

// lock locks the shards of the charges' keys, in one order whatever theirs. A key without a ledger
// gets one with the charge's limits, which is not stored yet.
func (b *ledgers) lock(charges []store.Charge, p share) lockedLedgers {
	b.count.Add(1) // a call that asks Redis from now on looks for a ledger
	d := lockedLedgers{
		all:     b,
		shards:  make([]*ledgerShard, len(charges)),
		ledgers: make([]*ledger, len(charges)),
		locked:  make([]*ledgerShard, 0, len(charges)),
	}
	indexes := make([]int, len(charges))
	for i := range charges {
		indexes[i] = b.index(charges[i].Key)
		d.shards[i] = &b.shards[indexes[i]]
	}
	slices.Sort(indexes)
	for _, i := range slices.Compact(indexes) {
		b.shards[i].mu.Lock()
		d.locked = append(d.locked, &b.shards[i])
	}
	d.now = b.clock()
	for i, c := range charges {
		g := d.shards[i].ledgers[c.Key]
		if g == nil {
			g = b.begin(c.Key, p, d.now)
			g.fit(c.Limits, p, d.now)
		}
		d.ledgers[i] = g
	}
	return d
}

// fit adapts the ledgers to the charges' limits.
func (d *lockedLedgers) fit(charges []store.Charge, p share) {
	for i, g := range d.ledgers {
		g.fit(charges[i].Limits, p, d.now)
	}
}

func (d *lockedLedgers) unlock() {
	for _, s := range d.locked {
		s.mu.Unlock()
	}
	d.all.count.Add(-1)
}

// store stores the ledgers that are new and in use, and removes a few that are full again: at least
// as many as come.
func (d *lockedLedgers) store() {
	for i, g := range d.ledgers {
		s := d.shards[i]
		if s.ledgers[g.key] != nil || d.now >= g.account.FullAt() {
			continue
		}
		s.ledgers[g.key] = g
		d.all.count.Add(1)
		d.all.sweepSome(s, d.now)
	}
}

// shareCharges returns the charges of the ledgers' accounts, with the node's shares as their limits.
func (d *lockedLedgers) shareCharges(charges []store.Charge) []accounts.Charge {
	shares := make([]accounts.Charge, len(charges))
	for i, g := range d.ledgers {
		shares[i] = accounts.Charge{Account: &g.account, Limits: g.shares, N: charges[i].N}
	}
	return shares
}

// receipt returns the receipt of a take.
func (d *lockedLedgers) receipt(charges []store.Charge, receipts []limit.Receipt) *localReceipt {
	n := &localReceipt{all: d.all, charges: slices.Clone(charges), ledgers: d.ledgers, receipts: receipts}
	n.shares = make([][]limit.Limit, len(charges))
	for i, g := range d.ledgers {
		n.shares[i] = g.shares
	}
	return n
}

// take charges all of the charges to the node's shares of their limits, or none. A denial has no
// receipt. With all, it charges them whatever the limits say.
func (b *ledgers) take(charges []store.Charge, p share, all bool) (*localReceipt, []limit.Decision) {
	d := b.lock(charges, p)
	defer d.unlock()
	defer d.store()
	d.fit(charges, p)
	if all {
		return d.admitAll(charges)
	}
	if d.emptyShare(charges) || !d.hasRoom(charges) {
		return nil, d.peek(charges)
	}
	receipts, decisions := accounts.Take(d.shareCharges(charges), d.now)
	d.translate(decisions, charges)
	if receipts == nil {
		return nil, decisions
	}
	return d.receipt(charges, receipts), decisions
}

// peek returns the decisions if Redis grants all pending takes.
func (d *lockedLedgers) peek(charges []store.Charge) []limit.Decision {
	return d.translate(accounts.Peek(d.withPending(charges), d.now), charges)
}

// hasRoom reports whether there is room for the charges beside the pending takes.
func (d *lockedLedgers) hasRoom(charges []store.Charge) bool {
	if !slices.ContainsFunc(d.ledgers, func(g *ledger) bool { return len(g.pending) > 0 }) {
		return true
	}
	return store.Allowed(accounts.Peek(d.withPending(charges), d.now))
}

// withPending returns the charges with the node's shares as their limits, and with the pending
// takes of the same keys added.
func (d *lockedLedgers) withPending(charges []store.Charge) []accounts.Charge {
	all := d.shareCharges(charges)
	for i, g := range d.ledgers {
		if n := &all[i].N; *n > 0 {
			*n += min(g.pendingUse(), max(maxAmount-*n, 0))
		}
	}
	return all
}

// emptyShare reports whether a charge has a limit of which the node's share is nothing.
func (d *lockedLedgers) emptyShare(charges []store.Charge) bool {
	for i, g := range d.ledgers {
		if g.empty && charges[i].N > 0 {
			return true
		}
	}
	return false
}

// translate turns decisions of the node's shares into decisions of the limits.
func (d *lockedLedgers) translate(decisions []limit.Decision, charges []store.Charge) []limit.Decision {
	at := 0
	for i, g := range d.ledgers {
		n := charges[i].N
		for _, l := range g.limits {
			translateDecision(&decisions[at], g, l, n)
			at++
		}
	}
	return decisions
}

// translateDecision turns the decision of a node's share on n into one of the limit: the shares of
// the other nodes count as used.
func translateDecision(d *limit.Decision, g *ledger, l limit.Limit, n int64) {
	d.Limit = l
	part := g.share.of(l.Burst())
	if g.empty {
		if _, some := g.share.limit(l); !some {
			part = 0
			d.Allowed, d.Remaining, d.RetryAfter = n == 0 && d.Used == 0, 0, 0
		}
	}
	d.Used += min(l.Burst()-part, maxAmount-d.Used)
	switch {
	case d.Allowed:
	case n > l.Burst():
		d.RetryAfter = limit.Never
	case d.RetryAfter == 0 || d.RetryAfter == limit.Never: // more than the share, but Redis may be back by then
		d.RetryAfter = l.Period()
	}
}

// admitAll charges all of the charges, whatever their limits say.
func (d *lockedLedgers) admitAll(charges []store.Charge) (*localReceipt, []limit.Decision) {
	receipts := make([]limit.Receipt, len(charges))
	decisions := make([]limit.Decision, 0, 2*len(charges))
	for i, c := range charges {
		receipts[i] = d.ledgers[i].admit(d.now, c.N)
		for _, l := range c.Limits {
			now := d.ledgers[i].account.Check(l, d.now, 0)
			decisions = append(decisions, limit.Decision{Allowed: true, Limit: l, Used: now.Used, Remaining: now.Remaining, ResetAfter: now.ResetAfter, Since: now.Since})
		}
	}
	return d.receipt(charges, receipts), decisions
}

// owe returns the receipt of zero.
func (b *ledgers) owe(charge store.Charge, p share) *localReceipt {
	charge.N = 0
	charges := []store.Charge{charge}
	d := b.lock(charges, p)
	defer d.unlock()
	return d.receipt(charges, []limit.Receipt{{At: d.now}})
}

// admit takes n if there is room for it. Otherwise n is a debt.
func (g *ledger) admit(now, n int64) limit.Receipt {
	for _, part := range g.shares {
		if !g.account.Check(part, now, n).Allowed {
			impose(&g.account, g.shares, now, n)
			return limit.Receipt{N: n, At: now}
		}
	}
	return g.account.Take(g.shares, now, n)
}

// peek returns what take would.
func (b *ledgers) peek(charges []store.Charge, p share) []limit.Decision {
	d := b.lock(charges, p)
	defer d.unlock()
	for i, g := range d.ledgers {
		fork := &ledger{account: *g.account.Fork(d.now), pending: g.pending} // a copy, so that a peek with other limits does not change the ledger
		fork.fit(charges[i].Limits, p, d.now)
		d.ledgers[i] = fork
	}
	return d.peek(charges)
}

// settle corrects a take that was decided here. If Redis was charged for it since, what was used
// beyond it is a debt in another ledger, and what was not used stays charged.
func (b *ledgers) settle(n *localReceipt, actual []int64, p share) {
	d := b.lock(n.charges, p)
	defer d.unlock()
	defer d.store()
	for i, g := range d.ledgers {
		more := actual[i] - n.charges[i].N
		switch {
		case actual[i] < 0:
		case !n.ledgers[i].paid:
			g.account.Settle(n.shares[i], n.receipts[i], d.now, actual[i])
		case more > 0:
			g.account.Settle(g.shares, limit.Receipt{At: n.receipts[i].At}, d.now, more)
		}
	}
}
