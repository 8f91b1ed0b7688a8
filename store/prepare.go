package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
)

// prepared is a key with its limits, made ready for a Memory.
type prepared struct {
	key   string
	plan  *limit.Plan // nil until the account is known, if the caller has not prepared the charge
	hash  uint64
	shard uint64

	// owner is the first Memory that was asked for the key, or nil. It alone keeps
	// the key's entry here. The lock of the key's shard guards entry.
	owner atomic.Pointer[Memory]
	entry *entry
}

// Prepare checks a key and its limits, and returns a charge of zero that stores need
// not check again. Copies of the charge are prepared too: set N in a copy. Prepare
// keeps a copy of the limits.
//
// A charge that is prepared once and used often is fastest in one [Memory].
func Prepare(key string, limits []limit.Limit) (Charge, error) {
	if err := Validate([]Charge{{Key: key, Limits: limits}}); err != nil {
		return Charge{}, err
	}
	p := &prepared{key: key, plan: limit.PlanOf(limits), hash: hashOf(key), shard: shardOf(key)}
	return Charge{Key: key, Limits: p.plan.Limits(), prepared: p}, nil
}

// prepareValid prepares those of the charges that the caller has not prepared. All of
// them are valid. It uses room for them if that is large enough.
func prepareValid(charges []Charge, room []prepared) []Charge {
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

// checkPrepared returns what is wrong with a call whose charges must be prepared, or
// nil.
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
			return errNegative(c)
		}
		for k := range charges[:i] {
			if other := charges[k].prepared; other.hash == c.prepared.hash && other.key == c.prepared.key {
				return errTwice(c)
			}
		}
	}
	return nil
}
