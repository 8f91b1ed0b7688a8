package limit

import (
	"slices"
	"sync"
)

// claims are the takes of reservations that may still be a part of a bucket's backlog. The
// claims of one key are in the order in which they were taken, which is the order in
// which they drain. A bucket does not know which takes its backlog consists of. So each
// claim remembers the backlog that the bucket had after its take: the claim has drained
// when that backlog has. A refund to one claim lets later claims drain earlier.
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

// add adds a claim, if one of its limits is a bucket. It also prunes the claims of this
// key and of two others, so that claims that are never settled do not accumulate.
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
		others++
		if others > 2 {
			break
		}
		c.prune(hash, now)
	}
	c.prune(added.hash, now)
	c.byKey[added.hash] = append(c.byKey[added.hash], added)
}

// prune removes the oldest claims of a key, as far as they are settled or have drained.
func (c *claims) prune(hash uint64, now int64) {
	rest := c.byKey[hash]
	for len(rest) > 0 && (rest[0].settled || rest[0].hasDrained(now)) {
		rest[0] = nil
		rest = rest[1:]
	}
	if len(rest) == 0 {
		delete(c.byKey, hash)
	} else {
		c.byKey[hash] = rest
	}
}

// hasDrained reports whether nothing of the claim counts any more.
func (c *claim) hasDrained(now int64) bool {
	for i := range c.receipts {
		if r := &c.receipts[i]; int64(r.backlog.drainsIn()) > now-r.at {
			return false
		}
	}
	return true
}

// refund records that a claim was refunded b of a limit: it lowers the backlogs of all
// later claims.
func (c *claims) refund(to *claim, l Limit, b backlog) {
	if b == (backlog{}) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.byKey[to.hash]
	for _, later := range all[slices.Index(all, to)+1:] {
		for i := range later.receipts {
			if r := &later.receipts[i]; later.limits[i] == l {
				r.backlog = l.difference(r.backlog, b)
			}
		}
	}
}

// settle marks a claim as settled.
func (c *claims) settle(settled *claim, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settled.settled = true
	c.prune(settled.hash, now)
}
