package redisstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// observations are what Redis last said about the keys that this node has asked for. The node starts
// from them if Redis is lost. There are observations of at most 65,536 keys. To make room for another
// key, the node examines a few keys and forgets the one that is full again soonest. The lock of ledgers
// guards the observations.
type observations struct {
	keys    map[string]*observation
	pending map[string][]*pendingTake // takes without an answer yet
	tick    uint64                    // the number of answers that were recorded
}

const maxObserved = 65536

// observation is what Redis said about a key.
//
// Answers are not recorded in the order in which Redis gave them. An answer is certainly newer than
// all answers that were recorded before its call began. The order of other answers is unknown, and
// the largest usage among them counts. So that old usage disappears even if some call is always under
// way, an observation has two generations of answers. An answer to a call that began after the first
// answer in newer was recorded is newer than all answers in older. Then older is dropped, newer becomes
// older, and the answer begins the next generation.
type observation struct {
	at     int64 // when the last answer was recorded, by this node's clock
	limits []limit.Limit
	newer  []usage // one for each limit
	older  []usage // the generation before; empty if it was dropped
	first  uint64  // the tick of the first answer in newer
	last   uint64  // the tick of the last answer
}

// usage is what is used of a limit, and until when it counts. For a bucket, until is the time at which
// the bucket has drained, and used is zero.
type usage struct{ used, until int64 }

// pendingTake is a charge that Redis was asked for and has not answered yet.
type pendingTake struct {
	n      int64
	index  int     // its index among the pending takes of its key
	began  uint64  // the tick at which the call began
	ledger *ledger // the ledger of the key if one was begun since, or nil
	ended  bool    // Redis has answered, or nobody waits for its answer any more
}

func newObservations() *observations {
	return &observations{keys: map[string]*observation{}, pending: map[string][]*pendingTake{}}
}

// beginTake records that Redis is about to be asked for charges, to take them or to peek. record must
// follow.
func (k *observations) beginTake(charges []store.Charge, take bool) []pendingTake {
	all := make([]pendingTake, len(charges))
	for i := range charges {
		c, q := &charges[i], &all[i]
		q.began = k.tick
		if take && c.N > 0 {
			q.n, q.index = c.N, len(k.pending[c.Key])
			k.pending[c.Key] = append(k.pending[c.Key], q)
		}
	}
	return all
}

// record records Redis's decisions on charges, as of now. There are none if Redis has not answered.
func (k *observations) record(charges []store.Charge, all []pendingTake, decisions []limit.Decision, now int64) {
	for i := range charges {
		c, q := &charges[i], &all[i]
		k.drop(c.Key, q)
		if n := len(c.Limits); n > 0 && n <= len(decisions) {
			k.recordOne(c, q.began, decisions[:n], now)
			decisions = decisions[n:]
		}
	}
}

// drop removes a pending take.
func (k *observations) drop(key string, q *pendingTake) {
	q.ended = true
	if q.n == 0 {
		return
	}
	all := k.pending[key]
	last := all[len(all)-1]
	all[q.index], last.index = last, q.index
	k.pending[key] = all[:len(all)-1]
	if len(all) == 1 {
		delete(k.pending, key)
	}
}

func (k *observations) recordOne(c *store.Charge, began uint64, decisions []limit.Decision, now int64) {
	h := k.keys[c.Key]
	if h == nil {
		if !slices.ContainsFunc(decisions, func(d limit.Decision) bool { return d.ResetAfter > 0 }) {
			return // a full key is the same as an unknown one
		}
		if len(k.keys) >= maxObserved {
			k.evict()
		}
		h = new(observation)
		k.keys[strings.Clone(c.Key)] = h
	}
	k.tick++
	h.rotate(c.Limits, began, k.tick)
	h.at = max(h.at, now)
	for i, l := range c.Limits {
		h.newer[i] = larger(l, h.newer[i], usageOf(l, &decisions[i], now))
	}
}

// recordDebt adds an amount to what Redis has last said about the key of a charge, because Redis was charged for it
// since. An answer to a call that began before may include the debt or not.
func (k *observations) recordDebt(c *store.Charge, n, now int64) {
	h := k.keys[c.Key]
	if h == nil || !slices.Equal(h.limits, c.Limits) {
		return
	}
	k.tick++
	h.last = k.tick
	for i, l := range h.limits {
		u := &h.newer[i]
		if !isBucket(l) {
			u.used += min(n, max(l.Count()-u.used, 0))
			continue
		}
		u.until = max(u.until, now)
		u.until += min(scale(n, int64(l.Period()), l.Count(), 1), maxAmount-u.until)
	}
}

// rotate prepares the observation for an answer with a tick, to a call that began at an earlier tick:
// it drops usage that is certainly older.
func (h *observation) rotate(limits []limit.Limit, began, tick uint64) {
	switch {
	case began >= h.last || !slices.Equal(h.limits, limits):
		h.older = h.older[:0]
		h.newer = zeroUsages(h.newer, len(limits))
		h.first, h.at = tick, 0
	case began >= h.first:
		h.newer, h.older = zeroUsages(h.older, len(limits)), h.newer
		h.first, h.at = tick, 0
	}
	h.limits, h.last = limits, tick
}

// zeroUsages returns n zero usages, and reuses the memory of was.
func zeroUsages(was []usage, n int) []usage { return append(was[:0], make([]usage, n)...) }

// usageOf returns the usage in a decision on a limit.
func usageOf(l limit.Limit, d *limit.Decision, now int64) usage {
	reset := now + int64(d.ResetAfter)
	if isBucket(l) {
		return usage{until: reset}
	}
	return usage{l.Count() - d.Remaining, reset}
}

// larger returns the larger of two usages whose order is unknown. If they are of two different fixed
// windows, it returns that of the later window.
func larger(l limit.Limit, a, b usage) usage {
	if a.until < b.until {
		a, b = b, a
	}
	if l.Algorithm() == limit.FixedWindow && a.until-b.until > int64(l.Period())/2 {
		return a
	}
	return usage{max(a.used, b.used), a.until}
}

// evict examines eight keys, in the random order of the map, and forgets the one that is full again
// soonest.
func (k *observations) evict() {
	var soonest string
	var until int64
	examined := 0
	for key, h := range k.keys {
		if at := h.validUntil(); examined == 0 || at < until {
			soonest, until = key, at
		}
		examined++
		if examined == 8 {
			break
		}
	}
	delete(k.keys, soonest)
}

// validUntil returns the time from which on nothing in the observation counts.
func (h *observation) validUntil() (last int64) {
	for _, each := range h.newer {
		last = max(last, each.until)
	}
	for _, each := range h.older {
		last = max(last, each.until)
	}
	return last
}

// at returns the observation of a key, with both generations in newer, or nil if nothing of it counts
// at now.
func (k *observations) at(key string, now int64) *observation {
	h := k.keys[key]
	if h == nil || now >= h.validUntil() {
		return nil
	}
	all := &observation{at: h.at, limits: h.limits, newer: slices.Clone(h.newer)}
	for i, older := range h.older {
		if now < older.until {
			all.newer[i] = larger(h.limits[i], all.newer[i], older)
		}
	}
	return all
}

// seed lets a new ledger start from what Redis said about its key, and from all pending takes.
func (k *observations) seed(g *ledger, p share, now int64) {
	if h := k.at(g.key, now); h != nil {
		g.seed(h, p)
	}
	for _, q := range k.pending[g.key] {
		q.ledger = g
		g.pending = append(g.pending, q)
	}
}

// appendKeys appends all keys that begin with prefix and of which anything counts at now.
func (k *observations) appendKeys(keys []string, prefix string, now int64) []string {
	for key, h := range k.keys {
		if strings.HasPrefix(key, prefix) && now < h.validUntil() {
			keys = append(keys, key)
		}
	}
	return keys
}

// reset forgets all keys that begin with prefix.
func (k *observations) reset(prefix string) {
	maps.DeleteFunc(k.keys, func(key string, _ *observation) bool { return strings.HasPrefix(key, prefix) })
}

// pastUse is an amount that was used of some limits at a time.
type pastUse struct {
	limits []limit.Limit
	at, n  int64
}

// pastUses returns the node's share of what was used, oldest first. The shares of all nodes together
// are at least what was used, and count for at least as long.
func (h *observation) pastUses(p share) []pastUse {
	var all []pastUse
	var logs []int
	for i, l := range h.limits {
		switch {
		case h.newer[i].until <= h.at || slices.Contains(h.limits[:i], l):
		case l.Algorithm() == limit.SlidingLog:
			logs = append(logs, i)
		default:
			part, _ := p.limit(l)
			all = append(all, pastUse{[]limit.Limit{part}, h.usedSince(i), p.used(l, h.used(i))})
		}
	}
	all = append(all, h.logUses(logs, p)...)
	slices.SortStableFunc(all, func(a, b pastUse) int { return cmp.Compare(a.at, b.at) })
	return all
}

// used returns the node's share of what was used of a limit, rounded up. If the whole limit is used,
// so is the whole share. The share of a bucket takes as long to drain as the bucket.
func (p share) used(l limit.Limit, n int64) int64 {
	return max(scale(n, p.of(l.Burst()), l.Burst(), 1), scale(n, p.of(l.Count()), l.Count(), 1))
}

// used returns what is used of the i-th limit.
func (h *observation) used(i int) int64 {
	if l := h.limits[i]; isBucket(l) {
		return drainedIn(l, h.newer[i].until-h.at)
	}
	return h.newer[i].used
}

// usedSince returns the time at which the i-th limit must have been used if it is full again when Redis
// has said.
func (h *observation) usedSince(i int) int64 {
	l := h.limits[i]
	if l.Algorithm() == limit.SlidingLog || isAnchored(l) {
		return h.newer[i].until - int64(l.Period())
	}
	return h.at
}

// logUses returns what was used of sliding logs. All of them share one log: an amount that is only in a
// longer window is assumed to have just left the next shorter one.
func (h *observation) logUses(logs []int, p share) (all []pastUse) {
	slices.SortFunc(logs, func(a, b int) int { return cmp.Compare(h.limits[a].Period(), h.limits[b].Period()) })
	var parts []limit.Limit
	for _, i := range logs {
		part, _ := p.limit(h.limits[i])
		parts = append(parts, part)
	}
	counted, left := int64(0), int64(maxAmount)
	for _, i := range logs {
		n := p.used(h.limits[i], h.newer[i].used)
		if n > counted {
			all = append(all, pastUse{parts, min(h.usedSince(i), left), n - counted})
			counted = n
		}
		left = h.at - int64(h.limits[i].Period())
	}
	return all
}
