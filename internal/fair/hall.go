package fair

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Hall is a set of lines with the same flows. It sees to it that calls of one flow that have stepped aside in several
// lines are served in order too. Make it with [NewHall].
type Hall struct {
	mu       sync.Mutex // guards the hall and all of its lines
	arrivals int64
	aside    map[string][]*waiter // for each flow, the waiters that have stepped aside, in the order in which they are served
	asking   map[*waiter]bool     // waiters whose ask has not returned yet
	own      map[string]*Line     // for each flow, the line of the calls that wait for nothing but the flow's own limits
	ownWaits map[string]*ownWait  // the flows that wait for their own limits
	busy     atomic.Int32         // the number of these flows, and of waiters that are aside or asking
}

// NewHall returns a hall without lines.
func NewHall() *Hall {
	return &Hall{aside: map[string][]*waiter{}, asking: map[*waiter]bool{}, own: map[string]*Line{}, ownWaits: map[string]*ownWait{}}
}

// Idle reports whether no flow waits for its own limits, and no waiter is asking.
func (h *Hall) Idle() bool { return h.busy.Load() == 0 }

// Ahead reports whether a call of the flow waits for the flow's own limits, so that no new call of
// the flow should take anything.
func (h *Hall) Ahead(flow string) (a Ahead, waiting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := h.ownWaits[flow]
	if own == nil {
		return a, false
	}
	a = own.ahead()
	a.Own = true
	return a, true
}

// ownWait is the state of a flow that waits for its own limits.
type ownWait struct {
	lines  int // the number of lines in which the flow waits for its own limits
	denial     // the answer to the last waiter of the flow that asked
}

// setWaitsForOwn records whether a flow waits for its own limits in one of the lines. It does from the
// time at which they have denied its first waiter until something else denies a waiter of the flow,
// or no waiter of it is left.
func (h *Hall) setWaitsForOwn(f *flow, waits bool) {
	if f.waitsForOwn == waits {
		return
	}
	f.waitsForOwn = waits
	own := h.ownWaits[f.name]
	switch {
	case waits && own == nil:
		h.ownWaits[f.name] = &ownWait{lines: 1}
		h.busy.Add(1)
	case waits:
		own.lines++
	case own.lines > 1:
		own.lines--
	default:
		delete(h.ownWaits, f.name)
		h.busy.Add(-1)
	}
}

// Wait is [Line.Wait] for a call that waits for nothing but its flow's own limits.
func (h *Hall) Wait(ctx context.Context, t Ticket, ask func() (Answer, error)) error {
	h.mu.Lock()
	l := h.own[t.Flow]
	if l == nil {
		l = h.NewLine()
		h.own[t.Flow] = l
	}
	l.users++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(h.own, t.Flow)
		}
	}()
	return l.Wait(ctx, t, ask)
}

// Wake wakes the first waiter of a flow that has stepped aside, so that it asks again, because something was
// given back to the flow's own limits. Waiters of the flow that are asking may have asked a moment
// too early, so they ask once more.
func (h *Hall) Wake(flow string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.aside[flow]; len(q) > 0 {
		q[0].wake()
	}
	for w := range h.asking {
		if w.Flow == flow {
			w.wake()
		}
	}
}

// asks records that w is asking.
func (h *Hall) asks(w *waiter) {
	h.asking[w] = true
	h.busy.Add(1)
}

// hasAsked records that w has the answer.
func (h *Hall) hasAsked(w *waiter) {
	if !h.asking[w] {
		return
	}
	delete(h.asking, w)
	h.busy.Add(-1)
	if q := h.aside[w.Flow]; len(q) > 0 && q[0] != w {
		q[0].wake() // it may have stepped aside for w
	}
}

// asksBefore reports whether a waiter of the same flow that comes before w asks in another line.
func (h *Hall) asksBefore(w *waiter) bool {
	for other := range h.asking {
		if other != w && other.Flow == w.Flow && other.before(w) {
			return true
		}
	}
	return false
}

// goAside adds w to the waiters that have stepped aside.
func (h *Hall) goAside(w *waiter) {
	if w.aside {
		return
	}
	w.aside = true
	h.busy.Add(1)
	q := h.aside[w.Flow]
	at, _ := slices.BinarySearchFunc(q, w, func(a, b *waiter) int { return a.compare(b) })
	h.aside[w.Flow] = slices.Insert(q, at, w)
}

// comeBack removes w from the waiters that have stepped aside. If w was the first, the next one may
// ask.
func (h *Hall) comeBack(w *waiter) {
	if !w.aside {
		return
	}
	w.aside = false
	h.busy.Add(-1)
	q := h.aside[w.Flow]
	i := slices.Index(q, w)
	if q = slices.Delete(q, i, i+1); len(q) == 0 {
		delete(h.aside, w.Flow)
		return
	}
	h.aside[w.Flow] = q
	if i == 0 {
		q[0].wake()
	}
}
