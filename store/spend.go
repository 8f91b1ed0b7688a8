package store

import (
	"context"
	"fmt"
	"unsafe"

	"dappco.re/go/core/go-ratelimit/limit"
)

// Spend is Take of one charge that is never settled, for one of very many keys that
// share their limits: it charges the amount and the limits of c, which is prepared, to
// key instead of c's own key. It appends the verdicts of all limits to verdicts, and
// reports whether all limits allow. It allocates nothing if the key has used anything.
// Neither key nor verdicts are kept.
func (m *Memory) Spend(ctx context.Context, key []byte, c Charge, verdicts []limit.Verdict) (_ []limit.Verdict, allowed bool, err error) {
	switch err := ctx.Err(); {
	case err != nil:
		return verdicts, false, notAsked(err)
	case c.N < 0:
		return verdicts, false, errNegative(string(key), c.N)
	case !c.isPrepared():
		return verdicts, false, fmt.Errorf("%w: the charge of %q is not prepared", ErrInvalid, c.Key)
	}
	name := unsafe.String(unsafe.SliceData(key), len(key)) // key without a copy of it
	hash, shard := hashOf(name), shardOf(name)
	now, err := m.lockNow(1 << shard)
	if err != nil {
		return verdicts, false, err
	}
	first, plan, t := len(verdicts), c.prepared.plan, &m.shards[shard].table
	verdicts = grow(verdicts, plan)
	if e := t.find(hash, name); e != nil {
		allowed = e.purse.Spend(plan, now, c.N, verdicts[first:])
	} else {
		var p purse
		allowed = p.Spend(plan, now, c.N, verdicts[first:])
		if now < p.FullAt() {
			t.keep(hash, &entry{key: string(key), purse: p}, now)
		}
	}
	m.unlock(1 << shard)
	m.sweep(now)
	return verdicts, allowed, nil
}
