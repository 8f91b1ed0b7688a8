package limit

// changes says which entries of a history differ from those that were written last. Entries are named by their index.
type changes struct {
	oldest  int64   // the oldest entry that was written
	same    int64   // entries before this one are as they were written, but for those in amended
	amended []int64 // entries whose amounts have changed
	whole   bool    // everything has changed
}

const (
	nearEnd     = 32  // how far from the end of what was written an amended entry is written together with those after it
	mostAmended = 256 // beyond that, everything is written
)

// written notes that the history was written as it is now.
func (h *history) written() {
	if h.changes == nil {
		h.changes = new(changes)
	}
	*h.changes = changes{oldest: h.oldest, same: h.next, amended: h.changes.amended[:0]}
}

// changedFrom notes that the entries from the i-th on have changed.
func (h *history) changedFrom(i int64) {
	if c := h.changes; c != nil {
		c.same = min(c.same, i)
	}
}

// changedAmount notes that the amount of the i-th entry has changed.
func (h *history) changedAmount(i int64) {
	c := h.changes
	switch {
	case c == nil || i >= c.same:
	case i >= c.same-nearEnd:
		c.same = i
	case len(c.amended) == mostAmended:
		c.whole = true
	default:
		c.amended = append(c.amended, i)
	}
}

// changedAll notes that all entries have changed.
func (h *history) changedAll() {
	if h.changes != nil {
		h.changes.whole = true
	}
}

// asWritten reports whether no entry has changed since the history was written, though some may have been forgotten.
func (h *history) asWritten() bool {
	c := h.changes
	return c != nil && !c.whole && c.same == h.next && len(c.amended) == 0
}
