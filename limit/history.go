package limit

import (
	"math"
	"slices"
	"time"
)

// history is the sliding log of a key: when how much passed, in a ring, oldest
// first. One history serves every window of the key. Each window knows where
// it begins and what is in it, so a decision looks at nothing but the entries
// that have just left it.
type history struct {
	ring    []entry // a power of two long; entry i stands at i modulo its length
	oldest  int64   // index of the oldest entry
	next    int64   // index of the next one
	windows []slidingWindow
	dropped int64 // entries up to that time have left every window, or are not known

	fewWindows [3]slidingWindow // as many as most keys have, in the room that windows begins with
}

type entry struct{ at, n int64 }

type slidingWindow struct {
	period time.Duration
	first  int64 // index of the oldest entry in it
	sum    int64
}

const (
	firstEntries = 4
	mostEntries  = 4096 // beyond which neighbours merge
)

// newHistory returns an empty history: of what was up to a time, nothing is known.
func newHistory(dropped int64) *history {
	h := &history{dropped: dropped}
	h.windows = h.fewWindows[:0]
	return h
}

func (h *history) entry(i int64) *entry { return &h.ring[i&int64(len(h.ring)-1)] }

// window returns the window of the given length as of now.
func (h *history) window(period time.Duration, now int64) *slidingWindow {
	h.rewind(now)
	for i := range h.windows {
		if w := &h.windows[i]; w.period == period {
			h.slide(w, now)
			return w
		}
	}
	h.windows = append(h.windows, slidingWindow{period: period, first: h.oldest})
	w := &h.windows[len(h.windows)-1]
	for i := h.oldest; i < h.next; i++ {
		w.sum = correct(w.sum, h.entry(i).n)
	}
	h.slide(w, now)
	return w
}

// slide takes out of w what has left it at now: an entry counts for exactly a
// period.
func (h *history) slide(w *slidingWindow, now int64) {
	for w.first < h.next {
		e := h.entry(w.first)
		if e.at > now-int64(w.period) {
			return
		}
		w.first++
		h.lower(w, e.n)
	}
}

// lower takes n off a window's sum. One that was too large to count is counted
// anew.
func (h *history) lower(w *slidingWindow, n int64) {
	if w.sum < maxCount {
		w.sum -= n
		return
	}
	w.sum = 0
	for i := w.first; i < h.next && w.sum < maxCount; i++ {
		w.sum = correct(w.sum, h.entry(i).n)
	}
}

// rewind moves entries that are in the future of a clock that went back to now.
func (h *history) rewind(now int64) {
	for i := h.next - 1; i >= h.oldest && h.entry(i).at > now; i-- {
		h.entry(i).at = now
	}
	h.dropped = min(h.dropped, now-1)
}

// check answers as if n was taken of a limit, and takes nothing. A nil history
// is an empty one.
func (h *history) check(l Limit, now, n int64) verdict {
	if h == nil {
		return h.says(&l, &slidingWindow{}, now, n)
	}
	return h.says(&l, h.window(l.period, now), now, n)
}

// says is what a limit says to n, by its window.
func (h *history) says(l *Limit, w *slidingWindow, now, n int64) verdict {
	v := verdict{Used: w.sum, Remaining: max(l.count-w.sum, 0)}
	if w.sum > 0 {
		v.ResetAfter = time.Duration(h.entry(h.next-1).at-now) + l.period
	}
	switch {
	case l.never(n):
		v.RetryAfter = Never
	case n > l.count-w.sum:
		v.RetryAfter = h.retry(w, now, w.sum-l.count+n)
	case n == 0:
		v.Allowed = true
	default:
		v.Allowed = true
		v.Used += n
		v.Remaining -= n
		v.ResetAfter = l.period
	}
	return v
}

// slid returns the window at i as of now, where rewind was called.
func (h *history) slid(i int, now int64) *slidingWindow {
	w := &h.windows[i]
	if w.first < h.next && h.entry(w.first).at <= now-int64(w.period) {
		h.slide(w, now)
	}
	return w
}

// layOut moves the windows of periods to the front, and makes those that are
// missing.
func (h *history) layOut(periods []time.Duration, now int64) {
	for i, period := range periods {
		h.window(period, now)
		k := slices.IndexFunc(h.windows, func(w slidingWindow) bool { return w.period == period })
		h.windows[i], h.windows[k] = h.windows[k], h.windows[i]
	}
}

// retry returns when so much has left w.
func (h *history) retry(w *slidingWindow, now, much int64) time.Duration {
	i := w.first
	for much -= h.entry(i).n; much > 0; much -= h.entry(i).n {
		i++
	}
	return time.Duration(h.entry(i).at-now) + w.period
}

// add enters that n passed at now.
func (h *history) add(now, n int64) {
	if h.next > h.oldest && h.entry(h.next-1).at == now && h.inAllWindows(h.next-1) {
		last := h.entry(h.next - 1)
		last.n = correct(last.n, n)
	} else {
		h.makeRoom(now)
		*h.entry(h.next) = entry{now, correct(0, n)}
		h.next++
	}
	for i := range h.windows {
		h.windows[i].sum = correct(h.windows[i].sum, n)
	}
}

func (h *history) inAllWindows(i int64) bool {
	for _, w := range h.windows {
		if i < w.first {
			return false
		}
	}
	return true
}

// tidy forgets entries of a ring that is full, and merges those of one that is as
// large as it may be.
func (h *history) tidy(now int64) {
	if h.full() {
		h.drop(now)
	}
	if h.full() && len(h.ring) >= mostEntries {
		h.merge()
	}
}

// makeRoom makes room in the ring for one more entry.
func (h *history) makeRoom(now int64) {
	if h.tidy(now); h.full() {
		h.grow()
	}
}

func (h *history) full() bool { return h.next-h.oldest == int64(len(h.ring)) }

// drop forgets the entries that have left every window.
func (h *history) drop(now int64) {
	first := h.next
	for i := range h.windows {
		h.slide(&h.windows[i], now)
		first = min(first, h.windows[i].first)
	}
	if first > h.oldest {
		h.dropped = h.entry(first - 1).at
		h.oldest = first
	}
}

func (h *history) grow() {
	ring := make([]entry, max(2*len(h.ring), firstEntries))
	for i := h.oldest; i < h.next; i++ {
		ring[i&int64(len(ring)-1)] = *h.entry(i)
	}
	h.ring = ring
}

// merge makes one entry of those that fall into one cell of a grid: as wide as
// 1/2048, times the number of windows, of the smallest window that they are in.
// So about half of the ring stays filled. Of merged entries the latest time
// stands: they leave their windows late, by a cell of the grid that they were
// on as they were young and one of that which they are on now, and never early.
func (h *history) merge() {
	newest := h.entry(h.next - 1).at
	into := h.oldest // where the next entry that is kept goes
	var end int64    // of the cell that the last one which was kept is in
	cell, until := int64(0), int64(math.MaxInt64)
	edge := h.edge(h.oldest)
	for i := h.oldest; i < h.next; i++ {
		e := *h.entry(i)
		apart := i == h.oldest
		if i == edge {
			apart = true
			for k := range h.windows {
				if w := &h.windows[k]; w.first == i {
					w.first = into
				}
			}
			edge = h.edge(i + 1)
		}
		if !apart && e.at < end {
			last := h.entry(into - 1)
			*last = entry{e.at, correct(last.n, e.n)}
			if newest-e.at >= until {
				continue // its cell is as wide as before
			}
		} else {
			*h.entry(into) = e
			into++
		}
		if newest-e.at < until {
			cell, until = h.cell(newest - e.at)
		}
		end = floor(e.at, cell) + cell
	}
	for k := range h.windows {
		h.windows[k].first = min(h.windows[k].first, into) // of those with nothing in them
	}
	h.next = into
}

// edge returns the index of the first entry from i on with which a window begins.
func (h *history) edge(i int64) int64 {
	edge := int64(math.MaxInt64)
	for _, w := range h.windows {
		if w.first >= i {
			edge = min(edge, w.first)
		}
	}
	return edge
}

// cell returns how wide the grid is on which entries of an age are merged, and
// down to which age that is so.
func (h *history) cell(age int64) (wide, until int64) {
	smallest := int64(maxPeriod)
	for _, w := range h.windows {
		if int64(w.period) > age {
			smallest = min(smallest, int64(w.period))
		} else {
			until = max(until, int64(w.period))
		}
	}
	return max(smallest/(mostEntries/2)*int64(len(h.windows)), 1), until
}

// settle corrects the entry that a take made, in whichever windows hold it.
func (h *history) settle(now int64, r receipt, actual int64) {
	h.rewind(now)
	if actual <= r.n && r.at <= h.dropped || r.at <= now-h.longest() {
		return // it has left every window, and perhaps the history was forgotten since
	}
	i := h.search(r.at)
	if after := h.search(r.at + 1); after > i { // of those that a rewind has moved to its time it is the last
		i = after - 1
	}
	if i == h.next {
		if actual > r.n { // forgotten since, or nothing was taken
			h.add(r.at, actual-r.n)
		}
		return
	}
	h.amend(i, actual-r.n)
}

// amend adds to an entry, or takes off it if delta is negative.
func (h *history) amend(i, delta int64) {
	e := h.entry(i)
	before := e.n
	e.n = correct(before, delta)
	for k := range h.windows {
		if w := &h.windows[k]; w.first <= i && e.n > before {
			w.sum = correct(w.sum, e.n-before)
		} else if w.first <= i {
			h.lower(w, before-e.n)
		}
	}
	h.trim()
}

// holds reports whether the entry at an index is the last one of a time, and in any
// window.
func (h *history) holds(i, at, now int64) bool {
	return at > now-h.longest() && i >= h.oldest && i < h.next && h.entry(i).at == at && (i+1 == h.next || h.entry(i+1).at > at)
}

// search returns the index of the first entry at a time or later.
func (h *history) search(at int64) int64 {
	low, high := h.oldest, h.next
	for low < high {
		if middle := low + (high-low)/2; h.entry(middle).at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// trim takes off the newest entries if nothing is left of them, so that the
// newest says when everything has left.
func (h *history) trim() {
	for h.next > h.oldest && h.entry(h.next-1).n == 0 {
		h.next--
	}
	for k := range h.windows {
		h.windows[k].first = min(h.windows[k].first, h.next)
	}
}

func (h *history) clone() *history {
	c := *h
	c.ring, c.windows = slices.Clone(h.ring), slices.Clone(h.windows)
	return &c
}

// fullAt returns when nothing is left in any window.
func (h *history) fullAt() int64 {
	if h.next == h.oldest {
		return 0
	}
	return h.entry(h.next-1).at + h.longest()
}

func (h *history) longest() (period int64) {
	for _, w := range h.windows {
		period = max(period, int64(w.period))
	}
	return period
}
