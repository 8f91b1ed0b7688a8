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
	mu   sync.Mutex
	keys map[string]*heard
	_    [48]byte // so that no two share a cache line
}

// mostHeard is how many keys a shard knows.
const mostHeard = 1024

// heard is what Redis said of a key.
type heard struct {
	at     int64 // when, by this node's clock
	limits []limit.Limit
	each   []said // of each limit
}

// said is what is used of a limit, and for how many nanoseconds.
type said struct{ used, reset int64 }

func newKnown() *known {
	k := &known{seed: maphash.MakeSeed()}
	for i := range k.shards {
		k.shards[i].keys = map[string]*heard{}
	}
	return k
}

func (k *known) shard(key string) *knownShard {
	return &k.shards[maphash.String(k.seed, key)%uint64(len(k.shards))]
}

// hear remembers what Redis has said to charges, as of now.
func (k *known) hear(charges []store.Charge, decisions []limit.Decision, now int64) {
	for i := range charges {
		c := &charges[i]
		n := len(c.Limits)
		if n > len(decisions) {
			return
		}
		s := k.shard(c.Key)
		s.mu.Lock()
		s.hear(c, decisions[:n], now)
		s.mu.Unlock()
		decisions = decisions[n:]
	}
}

func (s *knownShard) hear(c *store.Charge, decisions []limit.Decision, now int64) {
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
	h.at, h.limits = now, c.Limits
	if len(h.each) != len(decisions) {
		h.each = make([]said, len(decisions))
	}
	for i := range decisions {
		d := &decisions[i]
		h.each[i] = said{c.Limits[i].Count() - d.Remaining, int64(d.ResetAfter)}
		if bucket(c.Limits[i]) {
			h.each[i].used = drains(c.Limits[i], int64(d.ResetAfter))
		}
	}
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
func (h *heard) until() int64 {
	last := int64(0)
	for _, each := range h.each {
		last = max(last, each.reset)
	}
	return h.at + last
}

// of returns what was heard of a key, if anything of it still counts at now.
func (k *known) of(key string, now int64) *heard {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.keys[key]
	if h == nil || now >= h.until() {
		return nil
	}
	return &heard{h.at, h.limits, slices.Clone(h.each)}
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
		case h.each[i].reset == 0 || slices.Contains(h.limits[:i], l):
		case l.Algorithm() == limit.SlidingLog:
			logs = append(logs, i)
		default:
			part, _ := p.of(l)
			all = append(all, use{[]limit.Limit{part}, h.began(i), p.used(l, h.each[i].used)})
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

// began returns as of when a limit must have been used to be full when Redis
// said it would be.
func (h *heard) began(i int) int64 {
	l := h.limits[i]
	if l.Algorithm() == limit.SlidingLog || l.Windowing() == limit.Anchored {
		return h.at + h.each[i].reset - int64(l.Period())
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
