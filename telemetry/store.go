package telemetry

import (
	"math/bits"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// storeModes is what a store may be told to do when it is lost.
var storeModes = [...]redisstore.StoreLoss{redisstore.Deny, redisstore.Allow, redisstore.Share}

// lostGroups is the groups of a cluster that are lost, a bit each: so it does not
// matter if an event comes twice, or was dropped before the next of its group.
type lostGroups struct{ mask atomic.Uint64 }

func (g *lostGroups) count() int { return bits.OnesCount64(g.mask.Load()) }

// storeNews is what an event of a store adds to the counters.
type storeNews struct {
	losses, keys, charged, missed int64

	mode             redisstore.StoreLoss
	admitted, denied int64
}

// note takes down which groups are lost after an event, and returns what it adds.
// There may be no event.
func (g *lostGroups) note(e *redisstore.Event) storeNews {
	if e == nil {
		return storeNews{}
	}
	news := storeNews{missed: int64(e.Missed), mode: e.Mode}
	group := uint64(1) << (e.Group & 63)
	switch e.Kind {
	case redisstore.Lost:
		g.mask.Or(group)
		news.losses = 1
	case redisstore.Back:
		g.mask.And(^group)
	case redisstore.Decided:
		news.admitted, news.denied = e.Allowed, e.Denied
	case redisstore.Reconciled:
		news.keys, news.charged = int64(e.Keys), e.Charged
	}
	return news
}
