package redisstore

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// ledger is what a key has used at this node while Redis was lost. The lock of ledgers guards it.
type ledger struct {
	key    string
	limits []limit.Limit // the limits of the key, as of the last take
	share  share
	shares []limit.Limit // the node's share of each of limits
	empty  bool          // the node's share of some limit is zero, so nothing passes

	// account is what was used of the shares, by which the node decides. reported is the part of it
	// that Redis knows. Redis must be charged for the difference.
	account  limit.Account
	reported limit.Account

	pending []*pendingTake // takes from before the ledger was begun that Redis may still grant

	paying  chan struct{} // holds a value while a caller charges Redis
	bill    *bill         // a bill that was sent to Redis and not answered
	removed bool
	paid    bool // the ledger was removed because Redis was charged for everything
}

// bill is an amount that Redis must be charged for, under some limits of a key.
type bill struct {
	limits  []limit.Limit
	n       int64
	receipt store.Receipt // by which Redis is charged; nil before the bill was sent
}

// seed lets a new ledger start from what Redis last said about its key.
func (g *ledger) seed(h *observation, p share) {
	g.fit(h.limits, p, h.at)
	for _, u := range h.pastUses(p) {
		impose(&g.account, u.limits, u.at, u.n)
		impose(&g.reported, u.limits, u.at, u.n)
	}
}

// resolve records whether Redis has granted a take that was pending when the ledger was begun.
func (g *ledger) resolve(q *pendingTake, granted bool, now int64) {
	g.pending = slices.DeleteFunc(g.pending, func(other *pendingTake) bool { return other == q })
	if granted {
		impose(&g.account, g.shares, now, q.n)
		impose(&g.reported, g.shares, now, q.n)
	}
}

// pendingUse returns how much Redis may still grant.
func (g *ledger) pendingUse() (n int64) {
	for _, q := range g.pending {
		n += min(q.n, maxAmount-n)
	}
	return n
}

// admit charges n, whatever the limits say: as a take if they have room for it, and otherwise as a
// debt.
func (g *ledger) admit(now, n int64) limit.Receipt {
	for _, part := range g.shares {
		if !g.account.Check(part, now, n).Allowed {
			impose(&g.account, g.shares, now, n)
			return limit.Receipt{N: n, At: now}
		}
	}
	return g.account.Take(g.shares, now, n)
}

// fit adapts the ledger to other limits, or to another share of them.
func (g *ledger) fit(limits []limit.Limit, p share, now int64) {
	if g.share == p && slices.Equal(g.limits, limits) {
		return
	}
	g.limits, g.share, g.empty = limits, p, false
	g.shares = make([]limit.Limit, len(limits))
	for i, l := range limits {
		part, some := p.limit(l)
		g.shares[i] = part
		g.empty = g.empty || !some
	}
	g.account.Fit(g.shares, now)
	g.reported.Fit(g.shares, now)
}

// impose charges n to all limits, whether they have room for it or not.
func impose(a *limit.Account, limits []limit.Limit, now, n int64) {
	logged := false
	for i, l := range limits {
		one := limits[i : i+1]
		switch {
		case l.Algorithm() == limit.SlidingLog:
			if !logged {
				a.Take(logs(limits), now, n) // a log accepts any amount
			}
			logged = true
		case slices.Contains(limits[:i], l):
		default:
			fits := min(n, a.Check(l, now, 0).Remaining)
			a.Take(one, now, fits)
			a.Settle(one, limit.Receipt{At: now}, now, n-fits)
		}
	}
}

func logs(limits []limit.Limit) []limit.Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l limit.Limit) bool { return l.Algorithm() != limit.SlidingLog })
}

// nextBill returns what to charge Redis for next: the bill that was sent and not answered, or a new
// one, or nil if Redis knows everything.
//
// An amount that counts only in the longer of a key's windows is charged to these alone, except for
// sliding logs, which share one log. If Redis were charged for one of several limits of the same
// shape, it might take that limit for a new version of another: so all of them are charged for the
// largest amount among them.
func (g *ledger) nextBill(now int64) *bill {
	if g.bill != nil {
		return g.bill
	}
	each := make([]int64, len(g.shares))
	for i, part := range g.shares {
		owed := difference(&g.account, &g.reported, part, now)
		for k := range each {
			if shapeOf(part) == shapeOf(g.shares[k]) {
				each[k] = max(each[k], owed)
				each[i] = max(each[i], each[k])
			}
		}
	}
	b := new(bill)
	for _, n := range each {
		b.n = max(b.n, n)
	}
	if b.n == 0 {
		return nil
	}
	for i, n := range each {
		if n == b.n {
			b.limits = append(b.limits, g.limits[i])
		}
	}
	return b
}

// difference returns how much more of a limit one account has used than another.
func difference(a, b *limit.Account, l limit.Limit, now int64) int64 {
	if isBucket(l) {
		ns := a.Check(l, now, 0).ResetAfter - b.Check(l, now, 0).ResetAfter
		return drainedIn(l, max(int64(ns), 0))
	}
	return max(a.Check(l, now, 0).Used-b.Check(l, now, 0).Used, 0)
}

// markSent records that a bill is on its way to Redis. The counts of its limits may have changed since
// the bill was made, so the limits are compared by their shapes.
func (g *ledger) markSent(b *bill, r store.Receipt, now int64) {
	b.receipt = r
	g.bill = b
	var parts []limit.Limit
	for _, part := range g.shares {
		if slices.ContainsFunc(b.limits, func(l limit.Limit) bool { return shapeOf(l) == shapeOf(part) }) {
			parts = append(parts, part)
		}
	}
	impose(&g.reported, parts, now, b.n)
}
