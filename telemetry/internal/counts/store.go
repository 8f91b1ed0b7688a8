package counts

import (
	"context"
	"math/bits"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/store"
)

// lossModes are the modes of a store that can be lost.
var lossModes = [...]store.LossMode{"deny", "allow", "share"}

// lostGroups has a bit for each group of a cluster that is lost. So an event that comes twice, or
// that was dropped before the next one of its group, does not matter.
type lostGroups struct{ mask atomic.Uint64 }

func (g *lostGroups) count() int { return bits.OnesCount64(g.mask.Load()) }

// observeStore counts an event of a store, which may be nil.
func (m *Metrics) observeStore(ctx context.Context, e *store.Event) {
	if e == nil {
		return
	}
	m.missed(ctx, int64(e.Missed))
	group := uint64(1) << (e.Group & 63)
	switch e.Kind {
	case store.Lost:
		m.lost.mask.Or(group)
		m.losses(ctx, 1)
	case store.Back:
		m.lost.mask.And(^group)
	case store.Decided:
		if by, ok := m.decidedAlone[e.Mode]; ok {
			by.admitted(ctx, e.Allowed)
			by.denied(ctx, e.Denied)
		}
	case store.Reconciled:
		m.keys(ctx, int64(e.Keys))
		m.charged(ctx, e.Charged)
	}
}
