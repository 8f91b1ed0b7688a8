package server

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// leastGarbage is how many bytes of garbage are left alone.
const leastGarbage = 64 << 20

// usualPercent is Go's.
const usualPercent = 100

// mindGarbage has garbage collected once there is as much of it as of what is in use, as
// Go does, but not before there is leastGarbage: a gateway has little in use, and would
// collect many times a second. Whoever has set GOGC knows better. It ends with stop.
func mindGarbage() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	m := &minder{}
	m.collected(&cycle{m})
	return func() {
		m.stopped.Store(true)
		debug.SetGCPercent(usualPercent)
	}
}

type minder struct{ stopped atomic.Bool }

// cycle is garbage of which a collection tells.
type cycle struct{ minder *minder }

// collected adjusts when the next collection is, after each.
func (m *minder) collected(c *cycle) {
	if m.stopped.Load() {
		return
	}
	debug.SetGCPercent(percentOf(inUse()))
	runtime.SetFinalizer(c, m.collected)
}

// percentOf returns how much garbage there may be, in percent of what is in use.
func percentOf(inUse uint64) int {
	return int(max(leastGarbage*100/max(inUse, 1<<20), usualPercent))
}

// inUse returns how many bytes were, when garbage was last collected.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
