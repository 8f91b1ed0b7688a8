package store

import (
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

// isPrepared reports whether the charge still has the key and the limits with which it was prepared.
func (c *Charge) isPrepared() bool {
	p := c.prepared
	if p == nil || p.key != c.Key {
		return false
	}
	limits := p.plan.Limits()
	return len(c.Limits) == len(limits) && (len(limits) == 0 || &c.Limits[0] == &limits[0])
}

// Prepare checks a key and its limits, and returns a charge of zero that stores need
// not check again. Copies of the charge are prepared too: set N in a copy. A copy with
// another key or other limits is an ordinary charge. Prepare keeps a copy of the limits.
//
// A charge that is prepared once and used often is fastest in one [Memory].
func Prepare(key string, limits []limit.Limit) (Charge, error) {
	if err := Validate([]Charge{{Key: key, Limits: limits}}); err != nil {
		return Charge{}, err
	}
	p := &prepared{key: key, plan: limit.PlanOf(limits), hash: hashOf(key), shard: shardOf(key)}
	return Charge{Key: key, Limits: p.plan.Limits(), prepared: p}, nil
}
