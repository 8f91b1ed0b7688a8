package store

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// prepared is a key with its limits, made ready.
type prepared struct {
	key   string
	plan  *limit.Plan // nil in an unprepared charge, until its account is known
	hash  uint64
	shard uint64

	owner atomic.Pointer[Memory] // the first store that was asked for it, or nil
	entry *entry                 // the key's in owner, as far as is known; its shard's lock guards it
}

// Prepare checks a key and its limits, and returns a charge of nothing that
// stores need not check again. Copies of the charge are prepared too: set N in
// a copy. Prepare keeps a copy of the limits.
//
// A charge that is prepared once and used often is fastest with one [Memory].
func Prepare(key string, limits []limit.Limit) (Charge, error) {
	if err := Validate([]Charge{{Key: key, Limits: limits}}); err != nil {
		return Charge{}, err
	}
	p := &prepared{key: key, plan: limit.PlanOf(limits), hash: hashOf(key), shard: shardOf(key)}
	return Charge{Key: key, Limits: p.plan.Limits(), prepared: p}, nil
}

// prepare prepares the charges that are not yet, which must be valid, with room for
// some of them. Their plan is made when their account is known: it is likely to have
// it.
func prepare(charges []Charge, room []prepared) []Charge {
	if len(charges) > len(room) {
		room = make([]prepared, len(charges))
	}
	for i := range charges {
		if c := &charges[i]; c.prepared == nil {
			c.prepared = &room[i]
			c.prepared.key, c.prepared.hash, c.prepared.shard = c.Key, hashOf(c.Key), shardOf(c.Key)
		}
	}
	return charges
}

// seed is that of all hashes of keys in this process.
var seed = maphash.MakeSeed()

// hashOf returns the hash by which a table finds a key.
func hashOf(key string) uint64 { return maphash.String(seed, key) / shards }

// shardOf returns the shard of a key. Keys that differ only after their last slash
// have one: so all that is counted of a project, or of a model, is locked at once.
func shardOf(key string) uint64 {
	if end := strings.LastIndexByte(key, '/'); end > 0 {
		key = key[:end]
	}
	return maphash.String(seed, key) % shards
}

// checkPrepared returns what is wrong with charges that should be prepared.
func checkPrepared(ctx context.Context, charges []Charge) error {
	if err := ctx.Err(); err != nil {
		return notAsked(err)
	}
	for i := range charges {
		c := &charges[i]
		if c.prepared == nil {
			return fmt.Errorf("%w: the charge of %q is not prepared", ErrInvalid, c.Key)
		}
		if c.N < 0 {
			return Validate(charges)
		}
		for k := range charges[:i] {
			if other := charges[k].prepared; other.hash == c.prepared.hash && other.key == c.prepared.key {
				return Validate(charges)
			}
		}
	}
	return nil
}
