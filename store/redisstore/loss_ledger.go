package redisstore

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// ledger is what a key has used at this node while Redis was lost. Its shard's
// lock guards it.
type ledger struct {
	key    string
	limits []limit.Limit // as they were last charged
	share  share
	shares []limit.Limit // the node's, of each of limits
	empty  bool          // some part is nothing, so nothing passes

	// account is what was used of the parts, by which the node decides. told is
	// what Redis knows of it. So Redis is owed the difference.
	account  limit.Account
	reported limit.Account

	pending []*pendingTake // before the ledger was begun, and Redis may grant it yet

	bill    *bill    // that may have reached Redis, or not
	payment *payment // that is under way
	gone    bool     // nobody will look at it again
	paid    bool     // because Redis has what was used
}

// bill is what Redis is owed of some of a key's limits.
type bill struct {
	limits  []limit.Limit
	n       int64
	receipt store.Receipt // once Redis has been asked for it
}

// seed lets the ledger, which is new, go on where Redis was when it was last heard of.
func (g *ledger) seed(h *observation, p share) {
	g.fit(h.limits, p, h.at)
	for _, u := range h.pastUses(p) {
		impose(&g.account, u.limits, u.at, u.n)
		impose(&g.reported, u.limits, u.at, u.n)
	}
}

// resolve notes that what Redis was asked for before the ledger was begun was
// granted, or was not.
func (g *ledger) resolve(q *pendingTake, granted bool, now int64) {
	g.pending = slices.DeleteFunc(g.pending, func(other *pendingTake) bool { return other == q })
	if granted {
		impose(&g.account, g.shares, now, q.n)
		impose(&g.reported, g.shares, now, q.n)
	}
}

// pendingUse returns how much Redis may grant yet.
func (g *ledger) pendingUse() (n int64) {
	for _, q := range g.pending {
		n += min(q.n, maxAmount-n)
	}
	return n
}

// fit makes the ledger one of other limits, or of another part of them.
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
				a.Take(logs(limits), now, n) // a log has room for anything
			}
			logged = true
		case slices.Contains(limits[:i], l):
		default:
			fits := min(n, a.Check(l, now, 0).Remaining)
			a.Take(one, now, fits)
			a.Settle(one, limit.ReceiptOf(0, now), now, n-fits)
		}
	}
}

func logs(limits []limit.Limit) []limit.Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l limit.Limit) bool { return l.Algorithm() != limit.SlidingLog })
}

// nextBill returns what Redis is owed: the bill that is open, or the next one, or nil
// if there is none.
//
// What only the longer of a key's windows still hold is owed to them alone, but
// for sliding logs, which are one log. Limits of one shape might take each other's
// place if they came alone: they are owed what the one is that is owed most.
func (g *ledger) nextBill(now int64) *bill {
	if g.bill != nil {
		return g.bill
	}
	each := make([]int64, len(g.shares))
	for i, part := range g.shares {
		owed := difference(&g.account, &g.reported, part, now)
		for k := range each {
			if part.Shape() == g.shares[k].Shape() {
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
func difference(a, told *limit.Account, l limit.Limit, now int64) int64 {
	if isBucket(l) {
		ns := a.Check(l, now, 0).ResetAfter - told.Check(l, now, 0).ResetAfter
		return drainedIn(l, max(int64(ns), 0))
	}
	return max(a.Check(l, now, 0).Used-told.Check(l, now, 0).Used, 0)
}

// markSent notes that a bill is on its way, with a receipt of Redis. The counts of its
// limits may have changed since it was made.
func (g *ledger) markSent(b *bill, r store.Receipt, now int64) {
	b.receipt = r
	g.bill = b
	var parts []limit.Limit
	for _, part := range g.shares {
		if slices.ContainsFunc(b.limits, func(l limit.Limit) bool { return l.Shape() == part.Shape() }) {
			parts = append(parts, part)
		}
	}
	impose(&g.reported, parts, now, b.n)
}
