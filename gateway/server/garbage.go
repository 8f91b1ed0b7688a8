package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/gateway"
)

// leastGarbage is how many bytes of garbage are left alone.
const leastGarbage = 64 << 20

// usualPercent is Go's.
const usualPercent = 100

// mindGarbage has garbage collected once there is as much of it as of what is in use, as
// Go does, but not before there is leastGarbage: a gateway has little in use, and would
// collect many times a second. Once it knows the gateway, it also keeps memory close to
// what may be held of bodies. Whoever has set GOGC or GOMEMLIMIT knows better. It ends
// with stop.
func mindGarbage() (m *minder, stop func()) {
	m = &minder{}
	m.collected(&cycle{m})
	return m, func() {
		m.stopped.Store(true)
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(usualPercent)
		}
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(math.MaxInt64)
		}
	}
}

type minder struct {
	stopped atomic.Bool
	gateway atomic.Pointer[gateway.Gateway] // whose bodies are in memory; nil: there is none yet
}

// know tells whose bodies are in memory.
func (m *minder) know(g *gateway.Gateway) {
	m.gateway.Store(g)
	runtime.GC() // after which it is heeded
}

// cycle is garbage of which a collection tells.
type cycle struct{ minder *minder }

// collected adjusts when the next collection is, after each.
func (m *minder) collected(c *cycle) {
	if m.stopped.Load() {
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percentOf(inUse()))
	}
	if g := m.gateway.Load(); g != nil && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limitOf(elsewhere(g.Bodies()), g.Config().Server.MaxBodies))
	}
	runtime.SetFinalizer(c, m.collected)
}

// percentOf returns how much garbage there may be, in percent of what is in use.
func percentOf(inUse uint64) int {
	return int(max(leastGarbage*100/max(inUse, 1<<20), usualPercent))
}

// limitOf returns how many bytes Go may use: for bodies an eighth more than may be held,
// and for everything else as much garbage as is in use.
func limitOf(elsewhere, maxBodies int64) int64 {
	return maxBodies + maxBodies/8 + 2*elsewhere + min(leastGarbage, maxBodies/8)
}

// elsewhere returns how many bytes are in use for other things than bodies, which have
// so many bytes.
func elsewhere(bodies int64) int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	apart := int64(samples[0].Value.Uint64())
	for _, heap := range samples[1:] {
		apart -= int64(heap.Value.Uint64())
	}
	return apart + max(int64(inUse())-bodies, 0)
}

// inUse returns how many bytes were, when garbage was last collected.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
