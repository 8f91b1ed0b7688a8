package redisstore

import (
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// localReceipt is the receipt of a take that this node has decided without Redis.
type localReceipt struct {
	localCall
	shares   [][]limit.Limit // the node's shares of the charges' limits, at the time of the take
	receipts []limit.Receipt
	settled  atomic.Bool
	bookedOnce
}

// localCall is a call that this node decides without Redis. The lock of the ledgers guards it.
type localCall struct {
	all     *ledgers
	now     int64
	charges []store.Charge
	ledgers []*ledger // one for each charge
}

// newCall returns a call. A key without a ledger gets a new one with the charge's limits, which is not
// stored yet.
func (b *ledgers) newCall(charges []store.Charge, p share) localCall {
	c := localCall{all: b, now: b.clock(), charges: charges, ledgers: make([]*ledger, len(charges))}
	for i, charge := range charges {
		g, isNew := b.ledger(charge.Key, p, c.now)
		if isNew {
			g.fit(charge.Limits, p, c.now)
		}
		c.ledgers[i] = g
	}
	return c
}

// store stores the ledgers that are new and in use.
func (c *localCall) store() {
	for _, g := range c.ledgers {
		if c.all.byKey[g.key] == nil && c.now < g.account.FullAt() {
			c.all.add(g, c.now)
		}
	}
}

// take charges all of the charges to the node's shares of their limits, or none. A denial has no
// receipt. If all is set, take charges them whatever the limits say.
func (b *ledgers) take(charges []store.Charge, p share, all bool) (*localReceipt, []limit.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.newCall(charges, p)
	defer c.store()
	for i, g := range c.ledgers {
		g.fit(charges[i].Limits, p, c.now)
	}
	if all {
		return c.admitAll()
	}
	return c.takeShares()
}

// takeShares charges all of the charges to the node's shares of their limits, or none.
func (c *localCall) takeShares() (*localReceipt, []limit.Decision) {
	if slices.ContainsFunc(c.ledgers, func(g *ledger) bool { return g.empty || len(g.pending) > 0 }) {
		if decisions := c.peek(); !store.Allowed(decisions) {
			return nil, decisions
		}
	}
	receipts, decisions := accounts.Take(c.ofShares(false), c.now)
	c.translate(decisions)
	if receipts == nil {
		return nil, decisions
	}
	return c.receipt(receipts), decisions
}

// shareTake is a take of a node's shares that Redis is asked for as well.
type shareTake struct {
	*localReceipt
	reported []limit.Receipt // of the part of each account that Redis knows
}

// takeShare charges all of the charges to the node's shares of their limits, as if Redis knew of them, or
// none. A denial has no receipt.
func (b *ledgers) takeShare(charges []store.Charge, p share) (*shareTake, []limit.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.newCall(charges, p)
	for i, g := range c.ledgers {
		g.fit(charges[i].Limits, p, c.now)
	}
	taken, decisions := c.takeShares()
	if taken == nil {
		return nil, decisions
	}
	n := &shareTake{localReceipt: taken}
	for i, g := range c.ledgers {
		n.reported = append(n.reported, g.reported.Take(g.shares, c.now, charges[i].N))
		if b.byKey[g.key] == nil {
			b.kept[g.key] = g
		}
	}
	return n, nil
}

// giveBack gives a take of the node's shares back, because Redis has not granted it.
func (b *ledgers) giveBack(n *shareTake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	for i, g := range n.ledgers {
		g.account.Settle(n.shares[i], n.receipts[i], now, 0)
		g.reported.Settle(n.shares[i], n.reported[i], now, 0)
	}
}

// receipt returns the receipt of a take.
func (c *localCall) receipt(receipts []limit.Receipt) *localReceipt {
	n := &localReceipt{localCall: *c, shares: make([][]limit.Limit, len(c.charges)), receipts: receipts}
	n.charges = slices.Clone(c.charges)
	for i, g := range c.ledgers {
		n.shares[i] = g.shares
	}
	return n
}

// ofShares returns the charges of the ledgers' accounts, with the node's shares as their limits. If
// pending is set, the amounts include the pending takes of the same keys.
func (c *localCall) ofShares(pending bool) []accounts.Charge {
	all := make([]accounts.Charge, len(c.charges))
	for i, g := range c.ledgers {
		n := c.charges[i].N
		if pending && n > 0 {
			n += min(g.pendingUse(), max(maxAmount-n, 0))
		}
		all[i] = accounts.Charge{Account: &g.account, Limits: g.shares, N: n}
	}
	return all
}

// peek returns the decisions, as if Redis had granted all pending takes.
func (c *localCall) peek() []limit.Decision {
	return c.translate(accounts.Peek(c.ofShares(true), c.now))
}

// translate turns decisions of the node's shares into decisions of the limits.
func (c *localCall) translate(decisions []limit.Decision) []limit.Decision {
	at := 0
	for i, g := range c.ledgers {
		for _, l := range g.limits {
			translateDecision(&decisions[at], g, l, c.charges[i].N)
			at++
		}
	}
	return decisions
}

// translateDecision turns the decision of a node's share on n into one of the limit: the shares of
// the other nodes count as used.
func translateDecision(d *limit.Decision, g *ledger, l limit.Limit, n int64) {
	d.Limit, d.Local = l, true
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
	case d.RetryAfter == 0 || d.RetryAfter == limit.Never: // n is more than the share, but Redis may be back in a period
		d.RetryAfter = l.Period()
	}
}

// admitAll charges all of the charges, whatever their limits say.
func (c *localCall) admitAll() (*localReceipt, []limit.Decision) {
	receipts := make([]limit.Receipt, len(c.charges))
	decisions := make([]limit.Decision, 0, 2*len(c.charges))
	for i, charge := range c.charges {
		g := c.ledgers[i]
		receipts[i] = g.admit(c.now, charge.N)
		for _, l := range charge.Limits {
			d := g.account.Check(l, c.now, 0)
			d.Allowed, d.Local, d.RetryAfter = true, true, 0
			decisions = append(decisions, d)
		}
	}
	return c.receipt(receipts), decisions
}

// owe does for the ledgers what layer.owe does.
func (b *ledgers) owe(charge store.Charge, p share) *localReceipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	charge.N = 0
	c := b.newCall([]store.Charge{charge}, p)
	return c.receipt([]limit.Receipt{{At: c.now}})
}

// peek returns the decisions that take would return, and charges nothing.
func (b *ledgers) peek(charges []store.Charge, p share) []limit.Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.newCall(charges, p)
	for i, g := range c.ledgers {
		fork := &ledger{account: *g.account.Fork(), pending: g.pending} // a copy, so that a peek with other limits does not change the ledger
		fork.fit(charges[i].Limits, p, c.now)
		c.ledgers[i] = fork
	}
	return c.peek()
}

// settle corrects a take that this node has decided. If Redis was charged for it since, what was used
// beyond the take is a debt in another ledger, and what was not used stays charged.
func (b *ledgers) settle(n *localReceipt, actual []int64, p share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.newCall(n.charges, p)
	defer c.store()
	for i, g := range c.ledgers {
		more := actual[i] - n.charges[i].N
		switch {
		case actual[i] < 0:
		case !n.ledgers[i].paid:
			g.account.Settle(n.shares[i], n.receipts[i], c.now, actual[i])
		case more > 0:
			g.account.Settle(g.shares, limit.Receipt{At: n.receipts[i].At}, c.now, more)
		}
	}
}
