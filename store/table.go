package store

import (
	"iter"
	"slices"

	"dappco.re/go/core/go-ratelimit/limit"
)

// table is what some keys have used. It is a linear hash table: there are about
// as many chains as keys, and it grows and shrinks by one of them at a time. So
// no call does much more than another, and the room of keys that are gone goes
// back to the heap.
type table struct {
	pages  []*page
	chains uint64 // in use
	mask   uint64 // the least of the form 2^k-1 which all their indexes fit
	keys   uint64
	hand   uint64 // the chain that is swept next
}

// page is chains that are allocated together.
type page [pageLen]*entry

const pageLen = 64

// entry is a key in its chain.
type entry struct {
	next  *entry
	key   string
	purse limit.Purse
}

// gone is the next of an entry that is in no table: it is new, or was forgotten.
var gone = new(entry)

// index returns the chain of a hash.
func (t *table) index(hash uint64) uint64 {
	i := hash & t.mask
	if i >= t.chains { // it is not split yet
		i &= t.mask >> 1
	}
	return i
}

func (t *table) chain(i uint64) **entry {
	return &t.pages[i/pageLen][i%pageLen]
}

// find returns the entry of a key, or nil.
func (t *table) find(hash uint64, key string) *entry {
	if t.chains == 0 {
		return nil
	}
	e := *t.chain(t.index(hash))
	for e != nil && e.key != key {
		e = e.next
	}
	return e
}

// add adds an entry, of a key that has none, and forgets a few that are full: more
// than come, so that those in use are most of all.
func (t *table) add(hash uint64, e *entry, now int64) {
	t.insert(hash, e)
	t.sweep(now, forNew)
}

// insert adds an entry, of a key that has none.
func (t *table) insert(hash uint64, e *entry) {
	t.keys++
	if t.keys > t.chains {
		t.grow()
	}
	chain := t.chain(t.index(hash))
	e.next, *chain = *chain, e
}

// grow adds a chain, and moves to it what belongs there from the one that is
// split.
func (t *table) grow() {
	added := t.chains
	if added/pageLen == uint64(len(t.pages)) {
		t.pages = append(t.pages, new(page))
	}
	t.chains++
	if added > t.mask {
		t.mask = t.mask<<1 | 1
	}
	if added == 0 {
		return
	}
	split := t.chain(added & (t.mask >> 1))
	all := *split
	*split = nil
	for e := all; e != nil; {
		next := e.next
		chain := t.chain(t.index(hashOf(e.key)))
		e.next, *chain = *chain, e
		e = next
	}
}

// shrink takes off the last chain, and joins what is in it to the one that it was
// split from.
func (t *table) shrink() {
	t.chains--
	last := t.chain(t.chains)
	end := t.chain(t.chains & (t.mask >> 1))
	for *end != nil {
		end = &(*end).next
	}
	*end, *last = *last, nil
	if t.chains-1 <= t.mask>>1 {
		t.mask >>= 1
	}
	if t.chains%pageLen == 0 {
		t.pages = slices.Delete(t.pages, len(t.pages)-1, len(t.pages))
	}
}

// sweep looks at the next chains, as many as it is told, and forgets what is full
// in them. It reports whether there was anything to forget, or to shrink.
func (t *table) sweep(now int64, chains int) bool {
	before := t.keys + t.chains
	for range min(uint64(chains), t.chains) {
		if t.hand >= t.chains {
			t.hand = 0
		}
		t.forget(t.hand, func(e *entry) bool { return now >= e.purse.FullAt() })
		t.hand++
		if t.chains > 1 && t.chains > 2*t.keys {
			t.shrink()
		}
	}
	return t.keys+t.chains < before
}

// forget removes entries from a chain.
func (t *table) forget(chain uint64, which func(e *entry) bool) {
	for at := t.chain(chain); *at != nil; {
		if e := *at; which(e) {
			*at, e.next = e.next, gone
			t.keys--
		} else {
			at = &e.next
		}
	}
}

// all returns every entry, in no order.
func (t *table) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range t.chains {
			for e := *t.chain(i); e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}
