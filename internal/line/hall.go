package line

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Hall is a number of lines. The zero Hall is ready for use.
type Hall struct {
	mu       sync.Mutex // guards all of its lines
	arrivals int64
	aside    map[string][]*waiter // of each flow, those who come first first
	asking   map[*waiter]bool     // those whose answer is not known yet
	own      map[string]*Line     // of flows that wait for nothing that they share
	lacking  map[string]*lack     // of flows that wait for what is their own
	lackings atomic.Int32         // how many there are
	wakeable atomic.Int32         // who is aside or asking
}

// Idle reports whether nobody waits for what is its flow's own, and nobody asks.
func (h *Hall) Idle() bool { return h.wakeable.Load() == 0 && h.lackings.Load() == 0 }

// Ahead reports whether anybody of a flow waits for what is its own.
func (h *Hall) Ahead(flow string) (a Ahead, waiting bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.lacking[flow]
	if d == nil {
		return a, false
	}
	return Ahead{time.Until(d.due), d.by}, true
}

// lack is that a flow waits for what is its own.
type lack struct {
	lines int // in which it does
	told      // the last of it who asked
}

// lacks notes whether a flow waits in one of the lines for what is its own. It does
// from when its first was told so until somebody of it is told otherwise, or nobody
// of it is left.
func (h *Hall) lacks(f *flow, does bool) {
	if f.lacks == does {
		return
	}
	f.lacks = does
	d := h.lacking[f.name]
	switch {
	case does && d == nil:
		if h.lacking == nil {
			h.lacking = map[string]*lack{}
		}
		h.lacking[f.name] = &lack{lines: 1}
		h.lackings.Add(1)
	case does:
		d.lines++
	case d.lines > 1:
		d.lines--
	default:
		delete(h.lacking, f.name)
		h.lackings.Add(-1)
	}
}

// Wait is a line's for who waits for nothing but what is its flow's own.
func (h *Hall) Wait(ctx context.Context, t Ticket, ask func() (Answer, error)) error {
	h.mu.Lock()
	l := h.own[t.Flow]
	if l == nil {
		l = h.NewLine()
		if h.own == nil {
			h.own = map[string]*Line{}
		}
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

// Wake lets the first of a flow who has stepped aside ask again: something of the
// flow's own was given back. Who is asking may have been a moment too early for
// it, and asks once more.
func (h *Hall) Wake(flow string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q := h.aside[flow]; len(q) > 0 {
		q[0].look()
	}
	for w := range h.asking {
		if w.Flow == flow {
			w.look()
		}
	}
}

// WakeAll is Wake for all flows.
func (h *Hall) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range h.aside {
		q[0].look()
	}
	for w := range h.asking {
		w.look()
	}
}

// asks notes that w asks, and hasAsked that it knows the answer.
func (h *Hall) asks(w *waiter) {
	if h.asking == nil {
		h.asking = map[*waiter]bool{}
	}
	h.asking[w] = true
	h.wakeable.Add(1)
}

func (h *Hall) hasAsked(w *waiter) {
	if h.asking[w] {
		delete(h.asking, w)
		h.wakeable.Add(-1)
	}
}

func (h *Hall) goAside(w *waiter) {
	if w.aside {
		return
	}
	w.aside = true
	h.wakeable.Add(1)
	if h.aside == nil {
		h.aside = map[string][]*waiter{}
	}
	q := h.aside[w.Flow]
	at, _ := slices.BinarySearchFunc(q, w, func(a, b *waiter) int { return a.compare(b) })
	h.aside[w.Flow] = slices.Insert(q, at, w)
}

// comeBack takes w out of those who have stepped aside, and lets the next ask.
func (h *Hall) comeBack(w *waiter) {
	if !w.aside {
		return
	}
	w.aside = false
	h.wakeable.Add(-1)
	q := h.aside[w.Flow]
	i := slices.Index(q, w)
	if q = slices.Delete(q, i, i+1); len(q) == 0 {
		delete(h.aside, w.Flow)
		return
	}
	h.aside[w.Flow] = q
	if i == 0 {
		q[0].look()
	}
}
