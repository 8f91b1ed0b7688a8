package store

import "slices"

// table holds the entries of keys. It is a linear hash table: it has about as many
// chains as keys, and grows and shrinks by one chain at a time. So no call does much
// more than another, and the memory of forgotten keys goes back to the heap.
type table struct {
	pages  []*page
	chains uint64 // how many chains are in use
	mask   uint64 // the smallest 2^k-1 that no chain's index exceeds
	keys   uint64 // how many entries there are
	hand   uint64 // the index of the chain that is swept next
	walks  int    // how many walks are under way: no entry may move to a chain that they have visited
}

// page is a number of chains that are allocated together.
type page [pageLen]*entry

const pageLen = 64

// entry holds what one key has used.
type entry struct {
	next  *entry // in its chain; gone if it is in no chain
	key   string
	purse purse
}

// gone marks an entry that is in no table, because it is new or was forgotten: its next
// is gone.
var gone = new(entry)

// index returns the index of the chain of a hash.
func (t *table) index(hash uint64) uint64 {
	i := hash & t.mask
	if i >= t.chains { // the chain that this one will be split from has its entries
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

// keep inserts an entry if anything of its key is in use, and forgets a few that are
// full: up to two for each that is added, so that most of the entries are in use.
func (t *table) keep(hash uint64, e *entry, now int64) {
	if now < e.purse.FullAt() {
		t.insert(hash, e)
		t.sweep(now, forNew)
	}
}

// insert inserts an entry. The table has no entry of its key.
func (t *table) insert(hash uint64, e *entry) {
	t.keys++
	if t.keys > t.chains {
		t.grow()
	}
	chain := t.chain(t.index(hash))
	e.next, *chain = *chain, e
}

// grow adds a chain, and moves to it those entries of the chain that is split which
// belong there.
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

// shrink removes the last chain, and appends its entries to the chain that it was split
// from.
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

// sweep forgets the entries that are full in the next chains, as many as chains says. It reports whether it
// has forgotten an entry or removed a chain, and whether it has come to the last chain.
func (t *table) sweep(now int64, chains int) (some, last bool) {
	before := t.keys + t.chains
	last = t.chains == 0
	for range min(uint64(chains), t.chains) {
		if t.hand >= t.chains {
			t.hand = 0
		}
		t.forget(t.hand, func(e *entry) bool { return now >= e.purse.FullAt() })
		t.hand++
		if t.chains > 1 && t.chains > 2*t.keys && t.walks == 0 {
			t.shrink()
		}
		last = last || t.hand >= t.chains
	}
	return t.keys+t.chains < before, last
}

// forget removes those entries of a chain for which a function returns true.
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
