package limit

import (
	"slices"
	"sync"
)

// claims are the reservations of a book that may still hold a part of a bucket's backlog.
// Those of one key are in the order in which they were made, which is the order in
// which they drain. A bucket does not know which reservations its backlog belongs to,
// so each claim remembers the backlog that it left behind: its own part has drained
// when that has. A refund to one claim lets later claims drain earlier.
type claims struct {
	mu    sync.Mutex
	byKey map[uint64][]*claim
}

// claim is what a reservation has taken of one key.
type claim struct {
	hash     uint64
	limits   []Limit
	receipts []receipt // one for each limit
	settled  bool
}

// add adds a claim, if one of its limits is a bucket. It also removes the oldest claims
// of this key and of two others, as far as they are settled or have drained: so claims
// that are never settled do not accumulate.
func (c *claims) add(added *claim) {
	if !slices.ContainsFunc(added.limits, func(l Limit) bool { return l.algorithm.bursts() }) {
		return
	}
	now := added.receipts[0].at
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
	c.prune(added.hash, now)
	c.byKey[added.hash] = append(c.byKey[added.hash], added)
}

// prune removes the oldest claims of a key, as far as they are settled or have drained.
func (c *claims) prune(hash uint64, now int64) {
	open := c.byKey[hash]
	for len(open) > 0 && (open[0].settled || open[0].hasDrained(now)) {
		open[0] = nil
		open = open[1:]
	}
	if len(open) == 0 {
		delete(c.byKey, hash)
	} else {
		c.byKey[hash] = open
	}
}

// hasDrained reports whether the claim holds nothing any more.
func (c *claim) hasDrained(now int64) bool {
	for i := range c.receipts {
		if r := &c.receipts[i]; int64(r.backlog.drainsIn()) > now-r.at {
			return false
		}
	}
	return true
}

// refund lowers the backlogs of the claims after one that was refunded, by what it was
// refunded of a limit.
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

// drop marks a claim as settled at now.
func (c *claims) drop(dropped *claim, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped.settled = true
	c.prune(dropped.hash, now)
}
