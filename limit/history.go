package limit

import (
	"math"
	"slices"
	"time"
)

// history is the sliding log of a key: the times and amounts of what passed, in a ring,
// oldest first. It serves all windows of the key. Each window has the index of its first
// entry and the sum of its entries, so a decision only visits the entries that have just
// left a window.
type history struct {
	ring    []entry // its length is a power of two; entry i is at index i modulo the length
	oldest  int64   // the index of the oldest entry
	next    int64   // the index after the newest entry
	windows []slidingWindow
	dropped int64    // entries up to this time may be missing
	changes *changes // since it was written; nil: it was not

	fewWindows [3]slidingWindow // the first array of windows, so that most keys need no other
}

// entry is an amount n that passed at a time.
type entry struct{ at, n int64 }

// slidingWindow is one window over the entries of a history.
type slidingWindow struct {
	period time.Duration
	first  int64 // the index of its oldest entry
	sum    int64 // the amount of its entries
}

const (
	firstEntries = 4    // the length of the first ring
	mostEntries  = 4096 // in a longer ring, neighbours merge
)

// newHistory returns an empty history. It does not know what passed up to dropped.
func newHistory(dropped int64) *history {
	h := &history{dropped: dropped}
	h.windows = h.fewWindows[:0]
	return h
}

func (h *history) entry(i int64) *entry { return &h.ring[i&int64(len(h.ring)-1)] }

// window returns the window of a period at now. If there is none, it adds one.
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

// slide removes the entries from w that are not in it any more at now. An entry is in a
// window for exactly the window's period.
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

// lower subtracts n from the sum of a window. A sum that had reached maxCount is computed
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

// rewind adapts the history if the clock went back: entries in the future count as of
// now.
func (h *history) rewind(now int64) {
	for i := h.next - 1; i >= h.oldest && h.entry(i).at > now; i-- {
		h.entry(i).at = now
		h.changedFrom(i)
	}
	h.dropped = min(h.dropped, now-1)
}

// check returns the verdict of a limit on a take of n, and takes nothing. A nil history is
// empty.
func (h *history) check(l Limit, now, n int64) Verdict {
	if h == nil {
		return h.verdict(&l, &slidingWindow{}, now, n)
	}
	return h.verdict(&l, h.window(l.period, now), now, n)
}

// verdict returns the verdict of a limit on a take of n. w is the limit's window at now.
func (h *history) verdict(l *Limit, w *slidingWindow, now, n int64) Verdict {
	v := Verdict{Used: w.sum, Remaining: max(l.count-w.sum, 0)}
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

// slid returns the i-th window at now. The caller has called rewind.
func (h *history) slid(i int, now int64) *slidingWindow {
	w := &h.windows[i]
	if w.first < h.next && h.entry(w.first).at <= now-int64(w.period) {
		h.slide(w, now)
	}
	return w
}

// layOut moves the windows of the given periods to the front, in the order of periods, and
// adds the windows that are missing.
func (h *history) layOut(periods []time.Duration, now int64) {
	for i, period := range periods {
		h.window(period, now)
		k := slices.IndexFunc(h.windows, func(w slidingWindow) bool { return w.period == period })
		h.windows[i], h.windows[k] = h.windows[k], h.windows[i]
	}
}

// retry returns the time until an amount of n has left w.
func (h *history) retry(w *slidingWindow, now, n int64) time.Duration {
	i := w.first
	for n -= h.entry(i).n; n > 0; n -= h.entry(i).n {
		i++
	}
	return time.Duration(h.entry(i).at-now) + w.period
}

// add adds an entry of n at now.
func (h *history) add(now, n int64) {
	if h.next > h.oldest && h.entry(h.next-1).at == now && h.inAllWindows(h.next-1) {
		last := h.entry(h.next - 1)
		last.n = correct(last.n, n)
		h.changedFrom(h.next - 1)
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

// tidy frees entries of a full ring: it forgets the entries that have left all windows. If
// the ring is still full and has mostEntries, it merges neighbours.
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
	h.tidy(now)
	if h.full() {
		h.grow()
	}
}

func (h *history) full() bool { return h.next-h.oldest == int64(len(h.ring)) }

// drop forgets the entries that have left all windows.
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

func (h *history) grow() { h.growTo(2 * len(h.ring)) }

// growTo makes a ring of n entries, a power of two.
func (h *history) growTo(n int) {
	ring := make([]entry, max(n, firstEntries))
	for i := h.oldest; i < h.next; i++ {
		ring[i&int64(len(ring)-1)] = *h.entry(i)
	}
	h.ring = ring
}

// merge merges the entries that fall into one cell of a grid. A cell is as wide as 1/2048
// of the smallest window that its entries are in, times the number of windows, so about
// half of the ring stays filled. A merged entry has the latest of the times: so entries
// leave their windows late, by at most two cells, and never early. Two, because entries
// that have left a small window may merge once more, in the wider cells of the next.
func (h *history) merge() {
	h.changedAll()
	newest := h.entry(h.next - 1).at
	into := h.oldest // the index of the next entry that is kept
	var end int64    // the end of the cell of the last entry that was kept
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
				continue // the width of cells has not changed
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
		h.windows[k].first = min(h.windows[k].first, into) // an empty window begins after the newest entry
	}
	h.next = into
}

// edge returns the least index, from i on, of an entry that is the first of a window.
func (h *history) edge(i int64) int64 {
	edge := int64(math.MaxInt64)
	for _, w := range h.windows {
		if w.first >= i {
			edge = min(edge, w.first)
		}
	}
	return edge
}

// cell returns the width of the cells in which entries of an age merge, and the least age
// with this width.
func (h *history) cell(age int64) (width, until int64) {
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

// settle corrects the entry of a take, in all windows that it is in.
func (h *history) settle(now int64, r receipt, actual int64) {
	h.rewind(now)
	if actual <= r.n && r.at <= h.dropped || r.at <= now-h.longestPeriod() {
		return // the entry has left all windows, or the history was forgotten since
	}
	i := h.search(r.at)
	if after := h.search(r.at + 1); after > i { // of several entries at this time, rewind has moved all but the last
		i = after - 1
	}
	if i == h.next {
		if actual > r.n { // the entry was forgotten since, or the take was of zero
			h.add(r.at, actual-r.n)
		}
		return
	}
	h.amend(i, actual-r.n)
}

// amend adds delta to the i-th entry, in all windows that it is in.
func (h *history) amend(i, delta int64) {
	e := h.entry(i)
	before := e.n
	e.n = correct(before, delta)
	h.changedAmount(i)
	for k := range h.windows {
		if w := &h.windows[k]; w.first <= i && e.n > before {
			w.sum = correct(w.sum, e.n-before)
		} else if w.first <= i {
			h.lower(w, before-e.n)
		}
	}
	h.trim()
}

// isLastAt reports whether there is an entry i, and it is the last one of a time.
func (h *history) isLastAt(i, at int64) bool {
	return i >= h.oldest && i < h.next && h.entry(i).at == at && (i+1 == h.next || h.entry(i+1).at > at)
}

// search returns the index of the first entry that is not before a time.
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

// trim removes the newest entries whose amounts are zero, so that fullAt does not depend
// on them.
func (h *history) trim() {
	for h.next > h.oldest && h.entry(h.next-1).n == 0 {
		h.next--
		h.changedFrom(h.next)
	}
	for k := range h.windows {
		h.windows[k].first = min(h.windows[k].first, h.next)
	}
}

func (h *history) clone() *history {
	c := *h
	c.ring, c.windows, c.changes = slices.Clone(h.ring), slices.Clone(h.windows), nil
	return &c
}

// view returns a copy for one decision at now that takes nothing. It shares the entries with h, however many there are,
// where such a decision does not change them: none is in the future, and none is to be merged.
func (h *history) view(now int64) *history {
	if h.next > h.oldest && h.entry(h.next-1).at > now || h.full() && len(h.ring) >= mostEntries {
		return h.clone()
	}
	c := *h
	c.windows, c.changes = slices.Clone(h.windows), nil
	return &c
}

// fullAt returns the time at which all entries have left all windows.
func (h *history) fullAt() int64 {
	if h.next == h.oldest {
		return 0
	}
	return h.entry(h.next-1).at + h.longestPeriod()
}

func (h *history) longestPeriod() (period int64) {
	for _, w := range h.windows {
		period = max(period, int64(w.period))
	}
	return period
}
