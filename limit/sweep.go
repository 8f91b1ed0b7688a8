package limit

import "time"

const (
	sweepEvery = int64(time.Millisecond) // the shortest time between the sweeps of two segments
	sweepAll   = int64(10 * time.Second) // the time in which all segments are swept, unless they are too many for that
)

// sweep examines one segment if that is due, and rebuilds it without its full counters if
// at least half of its counters are full. Every decision calls sweep, so it must cost
// next to nothing if no segment is due. Examining a segment delays no other decision. A
// rebuild delays decisions on the same segment, by microseconds.
func (t *table[V]) sweep(now int64) {
	due := t.sweepAt.Load()
	if now < due {
		return
	}
	d := t.directory.Load()
	pause := max(sweepAll/int64(len(d.segments)), sweepEvery)
	// After a time without decisions, the sweeps that were missed follow quickly, but
	// no more of them than there are segments.
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

// inUse returns the number of counters of a segment that may not be forgotten.
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
