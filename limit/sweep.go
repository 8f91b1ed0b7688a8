package limit

import "time"

const (
	sweepEvery = int64(time.Millisecond) // the shortest time between two segments
	sweepAll   = int64(10 * time.Second) // the time in which all segments are swept, if they are few
)

// sweep looks at one segment if that is due, and rebuilds it without its full counters if
// these are half of it. Every decision calls sweep, so it must cost next to nothing if
// no segment is due. Looking delays no other decision. A rebuild delays those on the
// same segment, by microseconds.
func (t *table[V]) sweep(now int64) {
	due := t.sweepAt.Load()
	if now < due {
		return
	}
	d := t.directory.Load()
	pause := max(sweepAll/int64(len(d.segments)), sweepEvery)
	// Catch up after a quiet time, but not on more than one round.
	next := max(due, now-pause*int64(len(d.segments))) + pause
	if !t.sweepAt.CompareAndSwap(due, next) {
		return
	}
	g := d.segments[t.sweeping.Add(1)%uint64(len(d.segments))].Load()
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if g.retired.Load() || len(g.slots) == smallestSegment {
		return
	}
	if inUse := t.inUse(g, now); inUse <= g.used/2 {
		t.rebuild(g, now)
	}
}

func (t *table[V]) inUse(g *segment[V], now int64) int {
	n, idle := 0, t.idle(g, now)
	for i := range g.slots {
		if g.slots[i].word.Load() > idle {
			n++
		}
	}
	return n
}

// len returns how many counters the table holds.
func (t *table[V]) len() int {
	n := 0
	var last *segment[V]
	d := t.directory.Load()
	for i := range d.segments {
		if g := d.segments[i].Load(); g != last {
			g.mu.Lock()
			n += g.used
			g.mu.Unlock()
			last = g
		}
	}
	return n
}
