package telemetry

import (
	"math/bits"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// storeModes are the possible behaviours of a store that is lost.
var storeModes = [...]redisstore.StoreLoss{redisstore.Deny, redisstore.Allow, redisstore.Share}

// lostGroups has a bit for each group of a cluster that is lost, so an event that comes twice, or
// was dropped before the next one of its group, does not matter.
type lostGroups struct{ mask atomic.Uint64 }

func (g *lostGroups) count() int { return bits.OnesCount64(g.mask.Load()) }

// storeDelta is what an event of a store adds to the counters.
type storeDelta struct {
	losses, keys, charged, missed int64

	mode             redisstore.StoreLoss
	admitted, denied int64
}

// record updates the lost groups after an event, and returns what the event adds. The event may be
// nil.
func (g *lostGroups) record(e *redisstore.Event) storeDelta {
	if e == nil {
		return storeDelta{}
	}
	delta := storeDelta{missed: int64(e.Missed), mode: e.Mode}
	group := uint64(1) << (e.Group & 63)
	switch e.Kind {
	case redisstore.Lost:
		g.mask.Or(group)
		delta.losses = 1
	case redisstore.Back:
		g.mask.And(^group)
	case redisstore.Decided:
		delta.admitted, delta.denied = e.Allowed, e.Denied
	case redisstore.Reconciled:
		delta.keys, delta.charged = int64(e.Keys), e.Charged
	}
	return delta
}
