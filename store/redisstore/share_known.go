package redisstore

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// known is what Redis last said of the keys that this node has asked for. It is
// where the node goes on if Redis is lost. It knows 65,536 keys at most, and
// forgets those first that are full again soonest, of a few.
type known struct {
	seed   maphash.Seed
	shards [64]knownShard
}

type knownShard struct {
	mu    sync.Mutex
	keys  map[string]*heard
	asked map[string][]*question // that have no answer yet
	tick  uint64                 // how many answers were heard
	_     [32]byte               // so that no two share a cache line
}

// mostHeard is how many keys a shard knows.
const mostHeard = 1024

// heard is what Redis said of a key.
//
// Answers are not heard in the order in which Redis gave them. One is newer than
// all that were heard before it was asked for; of others that is not known, and what
// is used is what the largest says. So that it goes though some call is always
// under way, answers are of two ages: one that was asked for after the first of each
// was heard is newer than all of older, which goes, and begins the next.
type heard struct {
	at     int64 // when, by this node's clock
	limits []limit.Limit
	each   []said // of each limit
	older  []said // before that; empty if all of it has gone
	first  uint64 // tick of the first answer in each
	last   uint64 // tick of the last
}

// said is what is used of a limit, and until when. That of a bucket is told by when
// it will have drained.
type said struct{ used, until int64 }

// question is a charge of a call that has no answer yet. Redis may grant it.
type question struct {
	n      int64
	index  int     // among those of its key
	began  uint64  // tick
	ledger *ledger // that was begun meanwhile, if any
}

func newKnown() *known {
	k := &known{seed: maphash.MakeSeed()}
	for i := range k.shards {
		k.shards[i].keys = map[string]*heard{}
		k.shards[i].asked = map[string][]*question{}
	}
	return k
}

func (k *known) shard(key string) *knownShard {
	return &k.shards[maphash.String(k.seed, key)%uint64(len(k.shards))]
}

// ask notes that Redis is about to be asked for charges, to take them or to look. What
// comes of a take must be told, by hear or drop.
func (k *known) ask(charges []store.Charge, take bool) []question {
	all := make([]question, len(charges))
	for i := range charges {
		c, q := &charges[i], &all[i]
		s := k.shard(c.Key)
		s.mu.Lock()
		q.began = s.tick
		if take && c.N > 0 {
			q.n, q.index = c.N, len(s.asked[c.Key])
			s.asked[c.Key] = append(s.asked[c.Key], q)
		}
		s.mu.Unlock()
	}
	return all
}

// drop notes that Redis has not answered.
func (k *known) drop(charges []store.Charge, all []question) {
	for i := range all {
		s := k.shard(charges[i].Key)
		s.mu.Lock()
		s.drop(charges[i].Key, &all[i])
		s.mu.Unlock()
	}
}

func (s *knownShard) drop(key string, q *question) {
	if q.n == 0 {
		return
	}
	all := s.asked[key]
	last := all[len(all)-1]
	all[q.index], last.index = last, q.index
	s.asked[key] = all[:len(all)-1]
	if len(all) == 1 {
		delete(s.asked, key)
	}
}

// hear remembers what Redis has said to charges, as of now.
func (k *known) hear(charges []store.Charge, all []question, decisions []limit.Decision, now int64) {
	for i := range charges {
		c, q := &charges[i], &all[i]
		n := min(len(c.Limits), len(decisions))
		s := k.shard(c.Key)
		s.mu.Lock()
		s.drop(c.Key, q)
		s.hear(c, q.began, decisions[:n], now)
		s.mu.Unlock()
		decisions = decisions[n:]
	}
}

func (s *knownShard) hear(c *store.Charge, began uint64, decisions []limit.Decision, now int64) {
	if len(decisions) < len(c.Limits) {
		return
	}
	h := s.keys[c.Key]
	if h == nil {
		if !slices.ContainsFunc(decisions, func(d limit.Decision) bool { return d.ResetAfter > 0 }) {
			return // a key that is full is the same as an unknown one
		}
		if len(s.keys) >= mostHeard {
			s.forget()
		}
		h = new(heard)
		s.keys[strings.Clone(c.Key)] = h
	}
	s.tick++
	h.turn(c.Limits, began, s.tick)
	h.at = max(h.at, now)
	for i, l := range c.Limits {
		h.each[i] = larger(l, h.each[i], saying(l, &decisions[i], now))
	}
}

// turn makes room for an answer at a tick, to a call that was made at another: what
// is older than it for certain goes.
func (h *heard) turn(limits []limit.Limit, began, tick uint64) {
	switch {
	case began >= h.last || !slices.Equal(h.limits, limits):
		h.older = h.older[:0]
		h.each = nothing(h.each, len(limits))
		h.first, h.at = tick, 0
	case began >= h.first:
		h.each, h.older = nothing(h.older, len(limits)), h.each
		h.first, h.at = tick, 0
	}
	h.limits, h.last = limits, tick
}

// nothing returns that nothing was said of n limits, in the place of what was.
func nothing(was []said, n int) []said { return append(was[:0], make([]said, n)...) }

// saying returns what a decision says of a limit. What is leased counts as used.
func saying(l limit.Limit, d *limit.Decision, now int64) said {
	reset := int64(d.ResetAfter)
	if !bucket(l) {
		return said{l.Count() - d.Remaining, now + reset}
	}
	if used := l.Burst() - d.Remaining; used > drains(l, reset) { // some of it is leased
		reset = scale(used, int64(l.Period()), l.Count(), 1)
	}
	return said{until: now + reset}
}

// larger returns what was said to be more, of two of which either may be the newer.
// Of two windows it is the later one.
func larger(l limit.Limit, a, b said) said {
	if a.until < b.until {
		a, b = b, a
	}
	if l.Algorithm() == limit.FixedWindow && a.until-b.until > int64(l.Period())/2 {
		return a
	}
	return said{max(a.used, b.used), a.until}
}

// forget forgets one key: of a few, wherever the map begins this time, the one
// that is full again soonest.
func (s *knownShard) forget() {
	var soonest string
	var until int64
	looked := 0
	for key, h := range s.keys {
		if at := h.until(); looked == 0 || at < until {
			soonest, until = key, at
		}
		if looked++; looked == 8 {
			break
		}
	}
	delete(s.keys, soonest)
}

// until returns from when on nothing of what was heard counts.
func (h *heard) until() (last int64) {
	for _, each := range h.each {
		last = max(last, each.until)
	}
	for _, each := range h.older {
		last = max(last, each.until)
	}
	return last
}

// of returns what was heard of a key, if anything of it still counts at now.
func (k *known) of(key string, now int64) *heard {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(key, now)
}

func (s *knownShard) of(key string, now int64) *heard {
	h := s.keys[key]
	if h == nil || now >= h.until() {
		return nil
	}
	all := &heard{at: h.at, limits: h.limits, each: slices.Clone(h.each)}
	for i, older := range h.older {
		if now < older.until {
			all.each[i] = larger(h.limits[i], all.each[i], older)
		}
	}
	return all
}

// begin lets g go on where Redis was: from what was heard of its key, and with all
// calls that have no answer yet.
func (k *known) begin(g *ledger, p place, now int64) {
	s := k.shard(g.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.of(g.key, now); h != nil {
		g.goOn(h, p)
	}
	for _, q := range s.asked[g.key] {
		q.ledger = g
		g.asked = append(g.asked, q)
	}
}

// names adds all keys that begin with prefix and of which anything counts.
func (k *known) names(prefix string, now int64, add func(key string)) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for key, h := range s.keys {
			if strings.HasPrefix(key, prefix) && now < h.until() {
				add(key)
			}
		}
		s.mu.Unlock()
	}
}

// reset forgets all keys that begin with prefix.
func (k *known) reset(prefix string) {
	for i := range k.shards {
		s := &k.shards[i]
		s.mu.Lock()
		for key := range s.keys {
			if strings.HasPrefix(key, prefix) {
				delete(s.keys, key)
			}
		}
		s.mu.Unlock()
	}
}

// use is that so much was used of some limits at a time.
type use struct {
	limits []limit.Limit
	at, n  int64
}

// uses returns the node's part of what was used, oldest first. The parts of all
// nodes are no less than all of it, for no shorter time.
func (h *heard) uses(p place) []use {
	var all []use
	var logs []int
	for i, l := range h.limits {
		switch {
		case h.each[i].until <= h.at || slices.Contains(h.limits[:i], l):
		case l.Algorithm() == limit.SlidingLog:
			logs = append(logs, i)
		default:
			part, _ := p.of(l)
			all = append(all, use{[]limit.Limit{part}, h.began(i), p.used(l, h.used(i))})
		}
	}
	all = append(all, h.logged(logs, p)...)
	slices.SortStableFunc(all, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	return all
}

// used returns the node's part of what was used of a limit, rounded up. If all of
// the limit is used, so is all of the part. A bucket's takes as long to drain.
func (p place) used(l limit.Limit, n int64) int64 {
	return max(scale(n, p.share(l.Burst()), l.Burst(), 1), scale(n, p.share(l.Count()), l.Count(), 1))
}

// used returns what is used of a limit.
func (h *heard) used(i int) int64 {
	if l := h.limits[i]; bucket(l) {
		return drains(l, h.each[i].until-h.at)
	}
	return h.each[i].used
}

// began returns as of when a limit must have been used to be full when Redis
// said it would be.
func (h *heard) began(i int) int64 {
	l := h.limits[i]
	if l.Algorithm() == limit.SlidingLog || l.Windowing() == limit.Anchored {
		return h.each[i].until - int64(l.Period())
	}
	return h.at
}

// logged returns what was used of sliding logs. All of them see one log: what
// only a longer window holds had just left the next shorter one.
func (h *heard) logged(logs []int, p place) (all []use) {
	slices.SortFunc(logs, func(a, b int) int { return cmp.Compare(h.limits[a].Period(), h.limits[b].Period()) })
	var parts []limit.Limit
	for _, i := range logs {
		part, _ := p.of(h.limits[i])
		parts = append(parts, part)
	}
	counted, left := int64(0), int64(most)
	for _, i := range logs {
		n := p.used(h.limits[i], h.each[i].used)
		if n > counted {
			all = append(all, use{parts, min(h.began(i), left), n - counted})
			counted = n
		}
		left = h.at - int64(h.limits[i].Period())
	}
	return all
}
