package store

import (
	"math/bits"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
)

// lockedAccounts is the accounts of some charges, while their shards are locked.
type lockedAccounts struct {
	store  *Memory
	locked uint64 // the shards, as bits

	// One of each for each charge: see places and accounts.
	charges      int
	fewPlaces    [few]place
	fewAccounts  [few]accounts.Charge
	manyPlaces   []place
	manyAccounts []accounts.Charge
}

// place is where the entry of a key is, or will be.
type place struct {
	hash  uint64
	shard uint64
	entry *entry
	isNew bool
}

func (h *lockedAccounts) places() []place {
	if h.manyPlaces != nil {
		return h.manyPlaces
	}
	return h.fewPlaces[:h.charges]
}

func (h *lockedAccounts) accounts() []accounts.Charge {
	if h.manyAccounts != nil {
		return h.manyAccounts
	}
	return h.fewAccounts[:h.charges]
}

// lock locks the shards of the charges' keys, in one order whatever theirs,
// unless the store is closed.
func (h *lockedAccounts) lock(m *Memory, charges []Charge) error {
	h.store, h.charges = m, len(charges)
	if len(charges) > few {
		h.manyPlaces, h.manyAccounts = make([]place, len(charges)), make([]accounts.Charge, len(charges))
	}
	places := h.places()
	for i := range charges {
		places[i].hash, places[i].shard = hashOf(charges[i].Key), shardOf(charges[i].Key)
		h.locked |= 1 << places[i].shard
	}
	for rest := h.locked; rest != 0; rest &= rest - 1 {
		m.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	if m.closed.Load() {
		h.unlock()
		return ErrClosed
	}
	return nil
}

// open opens the accounts of the charges, which may be new.
func (h *lockedAccounts) open(charges []Charge) {
	places, opened := h.places(), h.accounts()
	for i := range charges {
		p := &places[i]
		if p.entry = h.store.find(p.shard, p.hash, charges[i].Key); p.entry == nil {
			p.entry, p.isNew = &entry{key: charges[i].Key}, true
		}
		opened[i] = accounts.Charge{Account: p.entry.purse.Account(), Limits: charges[i].Limits, N: charges[i].N}
	}
}

// keep remembers the accounts that are new and in use, and forgets a few that are
// full: more than come, so that those in use are most of all.
func (h *lockedAccounts) keep(now int64) {
	places := h.places()
	for i := range places {
		if p := &places[i]; p.isNew && now < p.entry.purse.FullAt() {
			t := &h.store.shards[p.shard].table
			t.insert(p.hash, p.entry)
			t.sweep(now, forNew)
		}
	}
}

func (h *lockedAccounts) unlock() {
	for rest := h.locked; rest != 0; rest &= rest - 1 {
		h.store.shards[bits.TrailingZeros64(rest)].mu.Unlock()
	}
}

func (h *lockedAccounts) now() int64 { return h.store.timeOf(h.locked, h.store.clock()) }
