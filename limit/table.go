package limit

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// table maps the hashes of keys to their counters. A counter is one word and a V. The
// word holds the time until which the counter is in use: after that, the counter can be
// forgotten, or its slot given to another key. The word is also the counter's lock. V is
// struct{} if the word is the whole counter.
//
// The upper bits of a hash select a segment, which is an open-addressing table. A
// segment that fills up is replaced by a larger one, and a large one by two: extendible
// hashing. So a step that grows or sweeps the table works on one segment, and no
// decision waits for more than that.
type table[V any] struct {
	unit    uint64 // words count parts of 1/unit of a nanosecond from the base of their segment
	horizon uint64 // the age in nanoseconds at which a segment is rebased
	most    uint64 // the most that a counter can have in use, without debts

	directory atomic.Pointer[directory[V]]
	changing  sync.Mutex // guards changes of the directory

	sweepAt  atomic.Int64  // the time at which the next segment is swept
	sweeping atomic.Uint64 // counts the segments that were swept
}

// directory is indexed by the upper bits of a hash. Neighbouring entries point to one
// segment if it is not yet split as far as others.
type directory[V any] struct {
	depth    uint // how many bits of a hash are its index
	segments []atomic.Pointer[segment[V]]
	only     *segment[V] // the only segment, of depth 0: a shorter way for limiters with few keys
}

func newDirectory[V any](only *segment[V]) *directory[V] {
	d := &directory[V]{segments: make([]atomic.Pointer[segment[V]], 1), only: only}
	d.segments[0].Store(only)
	return d
}

// segment holds the counters of all hashes whose upper bits are its prefix.
type segment[V any] struct {
	slots  []slot[V]
	base   int64  // the reading of clock from which words count
	depth  uint   // the length of prefix, in bits
	prefix uint64 // the upper bits that all hashes of the segment have

	mu      sync.Mutex  // guards insertion and replacement
	used    int         // the number of slots whose hash is set
	retired atomic.Bool // the segment was replaced by others
}

type slot[V any] struct {
	value V             // guarded by the word's lock
	hash  atomic.Uint64 // zero if the slot was never used
	word  atomic.Uint64
}

// The upper two bits of a word are flags. The others are the time until which the counter
// is in use.
const (
	locked  = 1 << 63        // a goroutine has locked the counter
	awaited = 1 << 62        // a call waits for the counter: others may not take from it, and it is not forgotten
	moved   = math.MaxUint64 // the counter is in another segment now

	until = awaited - 1 // the bits of the time
)

const (
	smallestSegment = 8
	largestSegment  = 1024 // with more counters in use than this, a segment is split
)

func newTable[V any](unit, most uint64) *table[V] {
	t := &table[V]{unit: unit, horizon: until / 2 / unit, most: most}
	t.directory.Store(newDirectory(newSegment[V](0, 0, clock()-grace, nil)))
	t.sweepAt.Store(clock() + sweepEvery)
	return t
}

// find returns the segment of a hash, and the slot of the hash there, or nil if there is
// none. At any time, the slot may be given to another hash, or the counter may move. So a
// caller that locks the slot must compare the slot's hash again. A caller that swaps the
// word without locking must load the word first and then find the same hash, and the
// word must not be zero: zero is the only word that a slot can have under one hash and
// then again under another.
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

// prefetch loads the memory where the search for a hash begins into the cache, if there
// are so many counters that it is probably not there.
func (g *segment[V]) prefetch(hash uint64) {
	if g.depth > 0 {
		prefetch(unsafe.Pointer(&g.slots[g.home(hash)]))
	}
}

// home returns the index of the slot where the search for a hash begins.
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

// grace is how long a full counter is kept. So the counters of busy keys stay where they
// are, and a clock reading from just before another goroutine rebuilt the segment is
// not before the segment's base.
const grace = int64(time.Second)

// idle returns a word: a counter whose word is not larger can be forgotten.
func (t *table[V]) idle(g *segment[V], now int64) uint64 { return t.ticks(g, now-grace) }

// ticks returns a time in the units of the segment's words.
func (t *table[V]) ticks(g *segment[V], now int64) uint64 {
	return min(uint64(max(now-g.base, 0)), 2*t.horizon) * t.unit
}

// lock finds the counter of a hash and locks it. If there is none, lock creates a full
// counter if create is set, and otherwise returns the zero lockedSlot.
func (t *table[V]) lock(hash uint64, create bool) lockedSlot[V] {
	for {
		g, s := t.find(hash)
		if s == nil && !create {
			return lockedSlot[V]{}
		}
		if s == nil {
			if s = t.insert(g, hash); s != nil {
				return lockedSlot[V]{g, s, 0}
			}
			continue
		}
		if h, ok := g.lock(s, hash); ok {
			return h
		}
		runtime.Gosched()
	}
}

// lock locks a slot, unless it is locked already or belongs to another hash now.
func (g *segment[V]) lock(s *slot[V], hash uint64) (lockedSlot[V], bool) {
	word := s.word.Load()
	if word&locked != 0 || !s.word.CompareAndSwap(word, word|locked) {
		return lockedSlot[V]{}, false
	}
	if s.hash.Load() != hash {
		s.word.Store(word)
		return lockedSlot[V]{}, false
	}
	return lockedSlot[V]{g, s, word}, true
}

// lockedSlot is a slot that the caller has locked. The zero lockedSlot stands for a hash
// that has no slot.
type lockedSlot[V any] struct {
	segment *segment[V]
	slot    *slot[V]
	word    uint64 // the word that unlock will store
}

func (h *lockedSlot[V]) unlock() {
	if h.slot != nil {
		h.slot.word.Store(h.word)
	}
}

// set sets the time until which the counter is in use.
func (h *lockedSlot[V]) set(ticks uint64) { h.word = h.word&awaited | min(ticks, until) }

// setAwaited records whether a call waits for the counter.
func (h *lockedSlot[V]) setAwaited(yes bool) {
	h.word &^= awaited
	if yes && h.slot != nil {
		h.word |= awaited
	}
}

// insert creates a counter for a hash, and returns its slot, locked. It returns nil if
// another goroutine was first, or if the segment had to be rebuilt: then the search for
// the hash must start anew.
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
			if g.filled() {
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

// reuse gives a slot whose counter is full to another hash. A goroutine that has read the
// word and not yet swapped it finds that it has changed.
func (g *segment[V]) reuse(s *slot[V], word, hash uint64) *slot[V] {
	if !s.word.CompareAndSwap(word, locked) {
		return nil
	}
	var none V
	s.value = none
	s.hash.Store(hash)
	return s
}

// filled reports whether one more counter would use more than four fifths of the slots.
func (g *segment[V]) filled() bool { return (g.used+1)*5 > len(g.slots)*4 }

// survivor is a counter that moves from one segment to another.
type survivor[V any] struct {
	value V
	hash  uint64
	word  uint64
}

// rebuild replaces a segment by one or two segments with only the counters that are in
// use. The caller has locked the segment's mu.
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

// freeze waits until a slot is not locked, marks it as moved, and returns the word that it
// had.
func (s *slot[V]) freeze() uint64 {
	for {
		word := s.word.Load()
		if word&locked == 0 && s.word.CompareAndSwap(word, moved) {
			return word
		}
		runtime.Gosched()
	}
}

// splitAt separates the counters whose hash has a bit clear from those that have it set.
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

// newSegment returns a segment of counters. Five eighths of its slots are used.
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
			i++
			if i == len(g.slots) {
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

// replace replaces a segment by low, or by low and high.
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

// doubled returns a directory of the same segments that uses one more bit of a hash.
func (d *directory[V]) doubled() *directory[V] {
	twice := &directory[V]{depth: d.depth + 1, segments: make([]atomic.Pointer[segment[V]], 2*len(d.segments))}
	for i := range twice.segments {
		twice.segments[i].Store(d.segments[i/2].Load())
	}
	return twice
}

// current reports whether the words of a counter's segment can express the time of a
// decision. If past is set, the decision is as of an earlier time, which may be before
// the segment's base.
func (t *table[V]) current(h lockedSlot[V], now int64, past bool) bool {
	if h.slot == nil {
		return true
	}
	age := now - h.segment.base
	return age <= int64(t.horizon) && (past || age >= 0)
}

// rebase makes the words of a segment count from now.
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
