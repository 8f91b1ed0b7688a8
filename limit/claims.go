package limit

import (
	"slices"
	"sync"
)

// claims are the reservations of a book that may still hold a part of a
// bucket's backlog, in the order in which they were made, which is the order in
// which they drain. A bucket does not know whose its backlog is, so each claim
// remembers the backlog that it left behind: its own part has drained when that
// has. A refund to one lets those behind it drain earlier.
type claims struct {
	mu    sync.Mutex
	byKey map[uint64][]*claim
}

type claim struct {
	hash     uint64
	limits   []Limit
	receipts []receipt // one for each limit
	over     bool      // settled
}

// add enters a claim that was just made. So that claims which nobody settles
// are not kept for ever, it drops the first that are over or have drained, of
// this key and of two others.
func (c *claims) add(made *claim) {
	if !slices.ContainsFunc(made.limits, func(l Limit) bool { return l.algorithm.bursts() }) {
		return
	}
	now := made.receipts[0].at
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[uint64][]*claim{}
	}
	others := 0
	for hash := range c.byKey {
		if others++; others > 2 {
			break
		}
		c.prune(hash, now)
	}
	c.prune(made.hash, now)
	c.byKey[made.hash] = append(c.byKey[made.hash], made)
}

func (c *claims) prune(hash uint64, now int64) {
	open := c.byKey[hash]
	for len(open) > 0 && (open[0].over || open[0].drained(now)) {
		open[0] = nil
		open = open[1:]
	}
	if len(open) == 0 {
		delete(c.byKey, hash)
	} else {
		c.byKey[hash] = open
	}
}

// drained reports whether the claim holds nothing any more.
func (c *claim) drained(now int64) bool {
	for i := range c.receipts {
		if r := &c.receipts[i]; int64(r.backlog.drained()) > now-r.at {
			return false
		}
	}
	return true
}

// refund tells the claims that were made after one of a limit what it was
// refunded.
func (c *claims) refund(to *claim, l Limit, b backlog) {
	if b == (backlog{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.byKey[to.hash]
	for _, later := range open[slices.Index(open, to)+1:] {
		for i := range later.receipts {
			if r := &later.receipts[i]; later.limits[i] == l {
				r.backlog = l.difference(r.backlog, b)
			}
		}
	}
}

// drop notes that a claim was settled at now.
func (c *claims) drop(settled *claim, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled.over = true
	c.prune(settled.hash, now)
}
