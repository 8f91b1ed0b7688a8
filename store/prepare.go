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

// readied is a charge that was prepared for one take.
type readied struct {
	Charge
	prepared
}

// readyValid prepares charges, all of which are valid, unless the caller has prepared them.
func readyValid(charges []Charge) []readied {
	ready := make([]readied, len(charges))
	for i, c := range charges {
		r := &ready[i]
		r.Charge = c
		if c.prepared == nil {
			r.prepared.key, r.prepared.hash, r.prepared.shard = c.Key, hashOf(c.Key), shardOf(c.Key)
			r.Charge.prepared = &r.prepared
		}
	}
	return ready
}

// amounts appends the charges with their own amounts to list.
func amounts(ready []readied, list []Amount) []Amount {
	for i := range ready {
		list = append(list, Amount{Of: &ready[i].Charge, N: ready[i].N})
	}
	return list
}

// checkPrepared returns the set of the shards of charges, which must be prepared, or what is
// wrong with the call.
func checkPrepared(ctx context.Context, charges []Amount) (set uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, notAsked(err)
	}
	for i := range charges {
		c := &charges[i]
		p := c.Of.prepared
		if p == nil {
			return 0, fmt.Errorf("%w: the charge of %q is not prepared", ErrInvalid, c.Of.Key)
		}
		if c.N < 0 {
			return 0, errNegative(c.Of.Key, c.N)
		}
		set |= 1 << p.shard
	}
	return set, nil
}
