package limit

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// table maps the hashes of keys to their counters. A counter is one word, and
// whatever else V is. The word says until when the counter is in use, so that
// one which is not can be taken for another key or forgotten, and it is the
// counter's lock. V is struct{} where the word says everything.
//
// Hashes are spread over segments by their upper bits, and a segment is an
// open-addressing table. A segment that fills up is replaced by a larger one,
// and a large one by two: extendible hashing. So no step that makes room, nor
// one that sweeps, handles more than a segment, and nobody waits for more.
type table[V any] struct {
	unit    uint64 // words count 1/unit of a nanosecond from their segment's base
	horizon uint64 // a segment is rebased when it is so many nanoseconds old
	most    uint64 // how much a counter can have in use, debts aside

	directory atomic.Pointer[directory[V]]
	changing  sync.Mutex // guards changes of the directory

	sweepAt  atomic.Int64 // when the next segment is due
	sweeping atomic.Uint64
}

// directory is indexed by the upper bits of a hash. Several entries in a row
// point to one segment where that is not yet split as far as others.
type directory[V any] struct {
	depth    uint // in bits
	segments []atomic.Pointer[segment[V]]
	only     *segment[V] // the one segment, of depth 0: a shorter way for limiters of few keys
}

func newDirectory[V any](only *segment[V]) *directory[V] {
	d := &directory[V]{segments: make([]atomic.Pointer[segment[V]], 1), only: only}
	d.segments[0].Store(only)
	return d
}

type segment[V any] struct {
	slots  []slot[V]
	base   int64  // the time from which words count, by clock
	depth  uint   // all its hashes have these many upper bits in common,
	prefix uint64 // namely these

	mu      sync.Mutex  // guards insertion and replacement
	used    int         // slots whose hash is set
	retired atomic.Bool // another has taken its place
}

type slot[V any] struct {
	value V             // guarded by the word's lock
	hash  atomic.Uint64 // zero in a slot that was never used
	word  atomic.Uint64
}

// A word's upper two bits are flags; the rest is until when it is in use.
const (
	locked  = 1 << 63        // somebody works on the counter
	awaited = 1 << 62        // somebody waits for it: it is not to be had by others, nor forgotten
	moved   = math.MaxUint64 // the counter is in another segment now

	until = awaited - 1
)

const (
	smallestSegment = 8
	largestSegment  = 1024 // counters in use, beyond which a segment is split
)

func newTable[V any](unit, most uint64) *table[V] {
	t := &table[V]{unit: unit, horizon: until / 2 / unit, most: most}
	t.directory.Store(newDirectory(newSegment[V](0, 0, clock()-grace, nil)))
	t.sweepAt.Store(clock() + sweepEvery)
	return t
}

// find returns the slot of a hash, or nil, and the segment to which it belongs.
// The slot may be taken for another hash or moved at any time. Whoever locks it
// must look at its hash again; whoever swaps its word without locking must have
// seen first the word, then still the same hash, and the word must not be zero,
// which is the only one that a slot can have under one hash and then another.
func (t *table[V]) find(hash uint64) (*segment[V], *slot[V]) {
	for {
		g := t.segment(hash)
		if s := g.find(hash); s != nil || !g.retired.Load() {
			return g, s
		}
	}
}

// segment returns the segment of a hash, which may be retired at any time.
func (t *table[V]) segment(hash uint64) *segment[V] {
	d := t.directory.Load()
	if d.only != nil {
		return d.only
	}
	return d.segments[hash>>(64-d.depth)].Load()
}

// prefetch asks for the memory in which the search for a hash will begin, if
// there are so many counters that it is likely to be far away.
func (g *segment[V]) prefetch(hash uint64) {
	if g.depth > 0 {
		prefetch(unsafe.Pointer(&g.slots[g.home(hash)]))
	}
}

// home returns where in the segment the search for a hash begins.
func (g *segment[V]) home(hash uint64) int {
	return int(hash & math.MaxUint32 * uint64(len(g.slots)) >> 32)
}

func (g *segment[V]) find(hash uint64) *slot[V] {
	for i := g.home(hash); ; i++ {
		if i == len(g.slots) {
			i = 0
		}
		switch s := &g.slots[i]; s.hash.Load() {
		case hash:
			return s
		case 0:
			return nil
		}
	}
}

// grace is how long a counter that is full is kept. Keys that come often stay
// where they are, and a reading of the clock that was taken just before another
// goroutine rebuilt the segment is not before its base.
const grace = int64(time.Second)

// idle returns the largest word of a counter that may be forgotten.
func (t *table[V]) idle(g *segment[V], now int64) uint64 { return t.ticks(g, now-grace) }

// ticks returns a time as words of the segment count it.
func (t *table[V]) ticks(g *segment[V], now int64) uint64 {
	return min(uint64(max(now-g.base, 0)), 2*t.horizon) * t.unit
}

// lock finds the counter of a hash and locks it. Where there is none it makes
// one that is full, if make is set, or holds nothing.
func (t *table[V]) lock(hash uint64, make bool) held[V] {
	for {
		g, s := t.find(hash)
		if s == nil && !make {
			return held[V]{}
		}
		if s == nil {
			if s = t.insert(g, hash); s != nil {
				return held[V]{g, s, 0}
			}
			continue
		}
		if h, ok := g.lock(s, hash); ok {
			return h
		}
		runtime.Gosched()
	}
}

func (g *segment[V]) lock(s *slot[V], hash uint64) (held[V], bool) {
	word := s.word.Load()
	if word&locked != 0 || !s.word.CompareAndSwap(word, word|locked) {
		return held[V]{}, false
	}
	if s.hash.Load() != hash {
		s.word.Store(word)
		return held[V]{}, false
	}
	return held[V]{g, s, word}, true
}

// held is a counter that its holder has locked, or nothing.
type held[V any] struct {
	segment *segment[V]
	slot    *slot[V]
	word    uint64 // without the lock, as unlock will leave it
}

func (h *held[V]) unlock() {
	if h.slot != nil {
		h.slot.word.Store(h.word)
	}
}

// set says until when the counter is in use.
func (h *held[V]) set(ticks uint64) { h.word = h.word&awaited | min(ticks, until) }

func (h *held[V]) await(yes bool) {
	h.word &^= awaited
	if yes && h.slot != nil {
		h.word |= awaited
	}
}

// insert makes a counter for a hash, and returns it locked; or nil where the
// segment had to change first, and the search for the hash must start anew.
func (t *table[V]) insert(g *segment[V], hash uint64) *slot[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired.Load() {
		return nil
	}
	now := clock()
	idle := t.idle(g, now)
	var free *slot[V]
	var freeWord uint64
	for i := g.home(hash); ; i++ {
		if i == len(g.slots) {
			i = 0
		}
		s := &g.slots[i]
		switch s.hash.Load() {
		case hash:
			return nil
		case 0:
			if free != nil {
				return g.reuse(free, freeWord, hash)
			}
			if g.crowded() {
				t.rebuild(g, now)
				return nil
			}
			s.word.Store(locked)
			s.hash.Store(hash)
			g.used++
			return s
		}
		if word := s.word.Load(); free == nil && word <= idle {
			free, freeWord = s, word
		}
	}
}

// reuse takes a slot whose counter is full for another hash. Whoever has read
// its word and not yet used it finds that it has changed.
func (g *segment[V]) reuse(s *slot[V], word, hash uint64) *slot[V] {
	if !s.word.CompareAndSwap(word, locked) {
		return nil
	}
	var none V
	s.value = none
	s.hash.Store(hash)
	return s
}

func (g *segment[V]) crowded() bool { return (g.used+1)*5 > len(g.slots)*4 }

// survivor is a counter on its way from one segment to another.
type survivor[V any] struct {
	value V
	hash  uint64
	word  uint64
}

// rebuild replaces a segment, whose mu is held, by one or two in which only
// the counters in use are left.
func (t *table[V]) rebuild(g *segment[V], now int64) {
	survivors := make([]survivor[V], 0, g.used)
	idle := t.idle(g, now)
	for i := range g.slots {
		s := &g.slots[i]
		if word := s.freeze(); word > idle {
			rest := word&until - min(word&until, idle)
			if now < g.base { // the clock went back
				rest = min(rest, t.most+uint64(grace)*t.unit)
			}
			survivors = append(survivors, survivor[V]{s.value, s.hash.Load(), word&awaited | rest})
		}
	}
	base := now - grace
	if len(survivors) <= largestSegment {
		t.replace(g, newSegment(g.depth, g.prefix, base, survivors), nil)
	} else {
		low, high := splitAt(survivors, 63-g.depth)
		t.replace(g,
			newSegment(g.depth+1, g.prefix<<1, base, low),
			newSegment(g.depth+1, g.prefix<<1|1, base, high))
	}
	g.retired.Store(true)
}

// freeze marks a slot as moved, once nobody works on it, and returns its word.
func (s *slot[V]) freeze() uint64 {
	for {
		word := s.word.Load()
		if word&locked == 0 && s.word.CompareAndSwap(word, moved) {
			return word
		}
		runtime.Gosched()
	}
}

func splitAt[V any](all []survivor[V], bit uint) (low, high []survivor[V]) {
	for _, s := range all {
		if s.hash>>bit&1 == 0 {
			low = append(low, s)
		} else {
			high = append(high, s)
		}
	}
	return low, high
}

// newSegment returns a segment that is five eighths full.
func newSegment[V any](depth uint, prefix uint64, base int64, all []survivor[V]) *segment[V] {
	g := &segment[V]{
		slots:  make([]slot[V], max(len(all)*8/5+1, smallestSegment)),
		base:   base,
		depth:  depth,
		prefix: prefix,
		used:   len(all),
	}
	for _, from := range all {
		i := g.home(from.hash)
		for g.slots[i].hash.Load() != 0 {
			if i++; i == len(g.slots) {
				i = 0
			}
		}
		to := &g.slots[i]
		to.value = from.value
		to.hash.Store(from.hash)
		to.word.Store(from.word)
	}
	return g
}

// replace puts low in a segment's place, or low and high.
func (t *table[V]) replace(g, low, high *segment[V]) {
	t.changing.Lock()
	defer t.changing.Unlock()
	d := t.directory.Load()
	switch {
	case high != nil && g.depth == d.depth:
		d = d.doubled()
	case d.only != nil:
		d = newDirectory(low)
	}
	span := 1 << (d.depth - g.depth)
	entries := d.segments[g.prefix<<(d.depth-g.depth):][:span]
	for i := range entries {
		if high != nil && i >= span/2 {
			entries[i].Store(high)
		} else {
			entries[i].Store(low)
		}
	}
	t.directory.Store(d)
}

func (d *directory[V]) doubled() *directory[V] {
	twice := &directory[V]{depth: d.depth + 1, segments: make([]atomic.Pointer[segment[V]], 2*len(d.segments))}
	for i := range twice.segments {
		twice.segments[i].Store(d.segments[i/2].Load())
	}
	return twice
}

// current reports whether the words of a counter's segment can tell the time,
// which may be past for a decision that is made as of an earlier time.
func (t *table[V]) current(h held[V], now int64, past bool) bool {
	if h.slot == nil {
		return true
	}
	age := now - h.segment.base
	return age <= int64(t.horizon) && (past || age >= 0)
}

// rebase lets the words of a segment count from now.
func (t *table[V]) rebase(g *segment[V], now int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.retired.Load() {
		t.rebuild(g, now)
	}
}
