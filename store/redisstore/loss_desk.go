package redisstore

import (
	"slices"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// note is the receipt of what was taken here.
type note struct {
	books    *books
	charges  []store.Charge
	ledgers  []*ledger
	parts    [][]limit.Limit // of the charges' limits, as of the take
	receipts []limit.Receipt
	settled  atomic.Bool
}

// desk is the ledgers of some charges, while their shards are locked.
type desk struct {
	books   *books
	now     int64
	shards  []*bookShard // of each charge
	ledgers []*ledger
	locked  []*bookShard // in the order in which they are locked, each once
}

// lock locks the shards of the charges' keys, in one order whatever theirs. A key
// that has no ledger gets one of the charge's limits, which is not kept yet.
func (b *books) lock(charges []store.Charge, p place) desk {
	b.open.Add(1) // so that who asks Redis from now on looks for a ledger
	d := desk{
		books:   b,
		shards:  make([]*bookShard, len(charges)),
		ledgers: make([]*ledger, len(charges)),
		locked:  make([]*bookShard, 0, len(charges)),
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

// fit makes the ledgers those of the charges' limits.
func (d *desk) fit(charges []store.Charge, p place) {
	for i, g := range d.ledgers {
		g.fit(charges[i].Limits, p, d.now)
	}
}

func (d *desk) unlock() {
	for _, s := range d.locked {
		s.mu.Unlock()
	}
	d.books.open.Add(-1)
}

// keep keeps the ledgers that are new and in use, and forgets a few that are full
// again: at least as many as come.
func (d *desk) keep() {
	for i, g := range d.ledgers {
		s := d.shards[i]
		if s.ledgers[g.key] != nil || d.now >= g.account.FullAt() {
			continue
		}
		s.ledgers[g.key] = g
		d.books.open.Add(1)
		d.books.forget(s, d.now)
	}
}

func (d *desk) accounts() []*limit.Account {
	accounts := make([]*limit.Account, len(d.ledgers))
	for i, g := range d.ledgers {
		accounts[i] = &g.account
	}
	return accounts
}

// shares returns the charges with the node's parts as their limits.
func (d *desk) shares(charges []store.Charge) []store.Charge {
	shares := slices.Clone(charges)
	for i, g := range d.ledgers {
		shares[i].Limits = g.parts
	}
	return shares
}

// note returns the receipt of what was taken.
func (d *desk) note(charges []store.Charge, receipts []limit.Receipt) *note {
	n := &note{books: d.books, charges: slices.Clone(charges), ledgers: d.ledgers, receipts: receipts}
	n.parts = make([][]limit.Limit, len(charges))
	for i, g := range d.ledgers {
		n.parts[i] = g.parts
	}
	return n
}

// take charges all of the charges to the node's parts of their limits, or none. A
// denial has no note.
func (b *books) take(charges []store.Charge, p place) (*note, []limit.Decision) {
	d := b.lock(charges, p)
	defer d.unlock()
	defer d.keep()
	d.fit(charges, p)
	if d.closed(charges) || !d.room(charges) {
		return nil, d.peek(charges)
	}
	receipts, decisions := store.Take(d.accounts(), d.shares(charges), d.now)
	d.say(decisions, charges)
	if receipts == nil {
		return nil, decisions
	}
	return d.note(charges, receipts), decisions
}

// peek returns what is said of the limits if Redis grants all that it may yet.
func (d *desk) peek(charges []store.Charge) []limit.Decision {
	return d.say(store.Peek(d.accounts(), d.beside(charges), d.now), charges)
}

// room reports whether there is room for the charges beside what Redis may grant yet.
func (d *desk) room(charges []store.Charge) bool {
	if !slices.ContainsFunc(d.ledgers, func(g *ledger) bool { return len(g.asked) > 0 }) {
		return true
	}
	return store.Allowed(store.Peek(d.accounts(), d.beside(charges), d.now))
}

// beside returns the charges with the node's parts as their limits, and with what
// Redis may grant yet of the same keys.
func (d *desk) beside(charges []store.Charge) []store.Charge {
	all := d.shares(charges)
	for i, g := range d.ledgers {
		if n := &all[i].N; *n > 0 {
			*n += min(g.held(), max(most-*n, 0))
		}
	}
	return all
}

// closed reports whether anything is asked of a limit of which the node's part is
// nothing.
func (d *desk) closed(charges []store.Charge) bool {
	for i, g := range d.ledgers {
		if g.closed && charges[i].N > 0 {
			return true
		}
	}
	return false
}

// say turns what the parts say into what is said of the limits.
func (d *desk) say(decisions []limit.Decision, charges []store.Charge) []limit.Decision {
	at := 0
	for i, g := range d.ledgers {
		n := charges[i].N
		for _, l := range g.limits {
			say(&decisions[at], g, l, n)
			at++
		}
	}
	return decisions
}

// say turns what a node's part of a limit says to n into what is said of the limit:
// the parts of the other nodes count as used.
func say(d *limit.Decision, g *ledger, l limit.Limit, n int64) {
	d.Limit = l
	part := g.place.share(l.Burst())
	if g.closed {
		if _, some := g.place.of(l); !some {
			part = 0
			d.Allowed, d.Remaining, d.RetryAfter = n == 0 && d.Used == 0, 0, 0
		}
	}
	d.Used += min(l.Burst()-part, most-d.Used)
	switch {
	case d.Allowed:
	case n > l.Burst():
		d.RetryAfter = limit.Never
	case d.RetryAfter == 0 || d.RetryAfter == limit.Never: // more than the part, but Redis may be back by then
		d.RetryAfter = l.Period()
	}
}

// admit charges all of the charges, whatever their limits say.
func (b *books) admit(charges []store.Charge) (*note, []limit.Decision) {
	d := b.lock(charges, whole)
	defer d.unlock()
	defer d.keep()
	d.fit(charges, whole)
	receipts := make([]limit.Receipt, len(charges))
	decisions := make([]limit.Decision, 0, 2*len(charges))
	for i, c := range charges {
		receipts[i] = d.ledgers[i].admit(d.now, c.N)
		for _, l := range c.Limits {
			says := d.ledgers[i].account.Check(l, d.now, 0)
			decisions = append(decisions, limit.Decision{Allowed: true, Limit: l, Used: says.Used, Remaining: says.Remaining, ResetAfter: says.ResetAfter, Since: says.Since})
		}
	}
	return d.note(charges, receipts), decisions
}

// owe returns the receipt of zero.
func (b *books) owe(charge store.Charge, p place) *note {
	charge.N = 0
	charges := []store.Charge{charge}
	d := b.lock(charges, p)
	defer d.unlock()
	return d.note(charges, []limit.Receipt{limit.ReceiptOf(0, d.now)})
}

// admit takes n where there is room for it. Elsewhere it is a debt.
func (g *ledger) admit(now, n int64) limit.Receipt {
	for _, part := range g.parts {
		if !g.account.Check(part, now, n).Allowed {
			impose(&g.account, g.parts, now, n)
			return limit.ReceiptOf(n, now)
		}
	}
	return g.account.Take(g.parts, now, n)
}

// peek returns what take would.
func (b *books) peek(charges []store.Charge, p place) []limit.Decision {
	d := b.lock(charges, p)
	defer d.unlock()
	for i, g := range d.ledgers {
		fork := &ledger{account: *g.account.Fork(d.now), asked: g.asked} // so that other limits leave the ledger as it is
		fork.fit(charges[i].Limits, p, d.now)
		d.ledgers[i] = fork
	}
	return d.peek(charges)
}

// settle corrects what was taken here. If Redis was charged for it since, what was
// used beyond it is a debt in another ledger, and what was not used stays.
func (b *books) settle(n *note, actual []int64, p place) {
	d := b.lock(n.charges, p)
	defer d.unlock()
	defer d.keep()
	for i, g := range d.ledgers {
		more := actual[i] - n.charges[i].N
		switch {
		case actual[i] < 0:
		case !n.ledgers[i].paid:
			g.account.Settle(n.parts[i], n.receipts[i], d.now, actual[i])
		case more > 0:
			g.account.Settle(g.parts, limit.ReceiptOf(0, n.receipts[i].At), d.now, more)
		}
	}
}
