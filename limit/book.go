package limit

import (
	"slices"
	"sync"
	"sync/atomic"
)

// book holds the counters of one limiter, by the hashes of its keys.
type book struct {
	id     uint64 // books are locked in the order of their ids
	offset int64  // added to a reading of clock, it gives Unix nanoseconds
	valid  bool   // all keys have the same limits, which are valid

	// A book has words if one bucket limit governs every key and its counter fits
	// a word. Otherwise it has cells.
	gcra  gcra
	words *table[struct{}]
	cells *table[*counters]

	claims claims // its mutex is locked after all others

	waiting sync.Mutex // guards lines; locked before any counter is
	lines   map[uint64]*line
}

var books atomic.Uint64

// newBook returns a book for limits that all keys have. Without limits, the limiter
// chooses them for each request.
func newBook(limits []Limit) *book {
	b := &book{id: books.Add(1), offset: unixOffset(), lines: map[uint64]*line{}}
	b.valid = len(limits) > 0 && !slices.ContainsFunc(limits, func(l Limit) bool { return l.Validate() != nil })
	if b.valid && len(limits) == 1 {
		if g, ok := inOneWord(limits[0]); ok {
			b.gcra, b.words = g, newTable[struct{}](g.unit, g.room)
			return b
		}
	}
	b.cells = newTable[*counters](1, until)
	return b
}

// lineLen returns the number of calls that wait for a counter.
func (b *book) lineLen(hash uint64) int {
	b.waiting.Lock()
	defer b.waiting.Unlock()
	if l := b.lines[hash]; l != nil {
		return l.waiters.Len()
	}
	return 0
}

func (b *book) sweep(now int64) {
	if b.words != nil {
		b.words.sweep(now)
		return
	}
	b.cells.sweep(now)
}

func (b *book) len() int {
	if b.words != nil {
		return b.words.len()
	}
	return b.cells.len()
}

// spend is the whole decision on a counter of one word that is neither locked nor
// awaited. It takes n if n may pass and why is not toPeek, and returns the backlog
// afterwards. If ok is false, it has done nothing, and decide must be asked.
func (b *book) spend(hash uint64, n int64, why purpose) (backlog uint64, allowed, ok bool) {
	t := b.words
	g := t.segment(hash)
	g.prefetch(hash) // the memory arrives while the clock is read
	now := clock()
	if now >= t.sweepAt.Load() {
		t.sweep(now)
	}
	cost := uint64(n) * b.gcra.each
	for {
		s := g.find(hash)
		if s == nil {
			return 0, true, why == toPeek && !g.retired.Load()
		}
		word := s.word.Load()
		age := uint64(now - g.base)
		if word == 0 || word > until || s.hash.Load() != hash || age > t.horizon {
			return 0, false, false
		}
		ticks := age * t.unit
		from := max(word, ticks)
		backlog = from - ticks
		allowed = backlog+cost <= b.gcra.room
		if !allowed || why == toPeek {
			return backlog, allowed, true
		}
		if s.word.CompareAndSwap(word, from+cost) {
			return backlog + cost, true, true
		}
	}
}
