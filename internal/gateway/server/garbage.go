package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

const (
	minGarbage     = 40 << 20 // bytes of garbage that do not start a collection
	defaultPercent = 100      // Go's own GOGC
)

// tuneGC lets Go collect garbage when there is as much garbage as live memory, which is
// Go's default, but not before there are minGarbage bytes: a gateway has little live memory,
// and Go would collect many times a second. After setGateway, it also keeps Go's memory close
// to what the configuration allows for bodies. The environment variables GOGC and GOMEMLIMIT
// take precedence. stop restores Go's defaults.
func tuneGC() (t *gcTuner, stop func()) {
	t = &gcTuner{}
	t.adjust(&cycle{t})
	return t, func() {
		t.stopped.Store(true)
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(defaultPercent)
		}
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(math.MaxInt64)
		}
	}
}

type gcTuner struct {
	stopped atomic.Bool
	gateway atomic.Pointer[gateway.Gateway] // nil before setGateway
}

// setGateway sets the gateway whose bodies are in memory.
func (t *gcTuner) setGateway(g *gateway.Gateway) {
	t.gateway.Store(g)
	runtime.GC() // runs adjust
}

// cycle is an object that nothing refers to: its finalizer runs after each collection.
type cycle struct{ tuner *gcTuner }

// adjust sets when the next collection starts. It runs after each collection.
func (t *gcTuner) adjust(c *cycle) {
	if t.stopped.Load() {
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percentFor(liveMemory()))
	}
	if g := t.gateway.Load(); g != nil && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(otherMemory(g.Bodies()), g.Config().Server.MaxBodies))
	}
	runtime.SetFinalizer(c, t.adjust)
}

// percentFor returns how much garbage there may be, in percent of the live memory.
func percentFor(live uint64) int {
	return int(max(minGarbage*100/max(live, 1<<20), defaultPercent))
}

// memoryLimit returns how many bytes Go may use: for bodies an eighth more than the
// gateway may hold, and for everything else as much garbage as live memory.
func memoryLimit(other, maxBodies int64) int64 {
	return maxBodies + maxBodies/8 + 2*other + min(minGarbage, maxBodies/8)
}

// otherMemory returns how many bytes are in use for everything but bodies.
func otherMemory(bodies int64) int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	outsideHeap := int64(samples[0].Value.Uint64())
	for _, heap := range samples[1:] {
		outsideHeap -= int64(heap.Value.Uint64())
	}
	return outsideHeap + max(int64(liveMemory())-bodies, 0)
}

// liveMemory returns how many bytes of the heap the last collection found in use.
func liveMemory() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
